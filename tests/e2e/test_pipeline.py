"""The pipeline as processes on three real brokers: what the design says the tests must show.

One pipeline serves them all: what a test ends it starts again, and it looks at its own orders only.
"""

import concurrent.futures
import contextlib
import json
import re
import subprocess
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import confluent_kafka.admin
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from millstream.launch import program_command, program_environment
from millstream.testing import LocalCluster
from tests.lib.connect_worker import ConnectWorker
from tests.lib.pipeline_processes import (
    JUDGES,
    MAILBOX,
    SERVICES,
    Answer,
    Pipeline,
    call,
)
from tests.lib.trace_collector import TraceCollector, running_collector
from tests.lib.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

CHECKS = ("FRAUD", "INVENTORY", "ORDER_DETAILS")
STOCK = {"plenty": 1_000_000, "gone": 0, **{f"p{n}": 1_000_000 for n in range(10)}}
FEW = 15
# A test waits for it whenever services are killed.
SESSION_MS = 3_000
AWAY = 16  # Twice as many as are posted side by side.
GOOD = ("VALIDATED", "PAID")
"""Valid, and maybe paid for by now."""


def order(product_id: str = "plenty", customer_id: str = "c", **changes: Any) -> dict[str, Any]:
    line = {"product_id": product_id, "quantity": 1, "unit_price": "1.50"}
    return {"customer_id": customer_id, "lines": [line], **changes}


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    allowed = {"group.min.session.timeout.ms": SESSION_MS}
    with LocalCluster(brokers=3, has_links=False, **allowed) as running:
        yield running


@pytest.fixture(scope="module")
def pipeline(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    folder = tmp_path_factory.mktemp("pipeline")
    with Pipeline(cluster.bootstrap_servers, folder, session_ms=SESSION_MS) as running:
        running.start_all("--allow-faults", "1")
        running.put_stock(STOCK)
        yield running


def judged(pipeline: Pipeline, order_ids: list[str]) -> dict[str, str]:
    """Check that each order was judged once, and return the verdicts."""
    history = pipeline.events("orders", "orders/order_event", order_ids)
    verdicts = pipeline.events("order-validations", "orders/order_validation", order_ids)
    decisions = pipeline.events("order-decisions", "orders/order_decision", order_ids)
    for order_id in order_ids:
        lived = [(event["version"], event["state"]) for event in history[order_id]]
        assert lived in (
            [(1, "CREATED"), (2, "FAILED")],
            [(1, "CREATED"), (2, "VALIDATED"), (3, "PAID")],
        )
        assert sorted(event["check"] for event in verdicts[order_id]) == list(CHECKS)
        assert len(decisions[order_id]) == 1
    return {order_id: history[order_id][1]["state"] for order_id in order_ids}


def assert_paid_and_told_once(pipeline: Pipeline, verdicts: dict[str, str]) -> None:
    """Check payments, the provider's books and the mails of these orders."""
    payments = pipeline.events("payments", "payments/payment", verdicts)
    mails = pipeline.events("order-confirmations", "mails/mail_sent", verdicts)
    held = {one for one, (_, is_refunded) in pipeline.charges().items() if not is_refunded}
    for order_id, verdict in verdicts.items():
        is_good = verdict == "VALIDATED"
        assert [one["result"] for one in payments[order_id]] == ["PAID"] * is_good
        assert (order_id in held) == is_good
        state = "PAID" if is_good else "FAILED"
        assert [one["state"] for one in mails[order_id]] == [state]
        found = [file.stem for file in (pipeline.folder / MAILBOX).glob(f"{order_id}.*.eml")]
        assert found == [f"{order_id}.{state}"]


def test_valid_order_is_validated_through_the_blocking_get(pipeline: Pipeline) -> None:
    posted = pipeline.post(order(customer_id="one"))
    assert posted.status == 201
    answer = pipeline.validated(posted.body["id"])
    assert answer.status == 200
    assert answer.body["state"] in GOOD


def test_each_topic_has_three_replicas_and_its_leaders_are_spread(pipeline: Pipeline) -> None:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": pipeline.bootstrap_servers})
    topics = admin.list_topics(timeout=30).topics
    for name in ("orders", "order-validations", "order-decisions", "payments"):
        partitions = list(topics[name].partitions.values())
        assert [sorted(one.replicas) for one in partitions] == 6 * [[1, 2, 3]]
        assert {one.replicas[0] for one in partitions} == {1, 2, 3}


def test_ten_valid_orders_in_a_row_come_out_otherwise_equal(pipeline: Pipeline) -> None:
    for number in range(10):
        posted = pipeline.post(order(customer_id=f"ten-{number}", country="Norway")).body
        answer = pipeline.validated(posted["id"]).body
        assert answer["state"] in GOOD
        changed = {"state", "version", "updated_at"}
        assert {k: v for k, v in answer.items() if k not in changed} == {
            k: v for k, v in posted.items() if k not in changed
        }


def test_ten_orders_without_stock_fail(pipeline: Pipeline) -> None:
    for number in range(10):
        posted = pipeline.post(order("gone", customer_id=f"none-{number}")).body
        answer = pipeline.validated(posted["id"]).body
        assert answer["state"] == "FAILED"
        assert [reason["code"] for reason in answer["reasons"]] == ["OUT_OF_STOCK"]


def test_fraud_vectors_of_the_design(pipeline: Pipeline) -> None:
    for customer, amounts in {
        "v0": [(3, 5, GOOD), (1, 75, GOOD)],
        "v1": [(1, 75, GOOD), (1, 75, GOOD), (50, 75, ("FAILED",))],
        "v2": [(10, 100, GOOD), (10, 100, ("FAILED",)), (1, 5, ("FAILED",))],
    }.items():
        for quantity, price, states in amounts:
            line = {"product_id": "plenty", "quantity": quantity, "unit_price": price}
            posted = pipeline.post({"customer_id": customer, "lines": [line]}).body
            assert pipeline.validated(posted["id"]).body["state"] in states


def test_product_nobody_knows_fails_both_checks(pipeline: Pipeline) -> None:
    posted = pipeline.post(order("POST", customer_id="unknown")).body
    assert pipeline.validated(posted["id"]).body["state"] == "FAILED"

    def verdicts() -> dict[str, str]:
        events = pipeline.events("order-validations", "orders/order_validation", [posted["id"]])[
            posted["id"]
        ]
        return {event["check"]: event["result"] for event in events}

    until(lambda: len(verdicts()) == 3)
    assert verdicts() == {"FRAUD": "PASS", "INVENTORY": "FAIL", "ORDER_DETAILS": "FAIL"}


def test_every_event_carries_the_trace(pipeline: Pipeline) -> None:
    trace_id = "c0ffee" + "0" * 26
    headers = {"traceparent": f"00-{trace_id}-00f067aa0ba902b7-01"}
    posted = pipeline.post(order(customer_id="traced"), **headers).body
    pipeline.validated(posted["id"])
    for topic in ("orders", "order-validations", "order-decisions"):
        mine = [one for one in pipeline.read(topic) if one.key == posted["id"].encode()]
        assert mine
        for record in mine:
            assert dict(record.headers)["traceparent"].split(b"-")[1] == trace_id.encode()


def test_poison_goes_aside_and_stops_nothing(pipeline: Pipeline) -> None:
    for topic in ("orders", "order-validations", "order-decisions"):
        pipeline.produce([(topic, f"poison-{n}", b"junk") for n in range(12)])
    posted = pipeline.post(order(customer_id="after-poison")).body
    assert pipeline.validated(posted["id"]).body["state"] in GOOD
    for topic in ("orders", "order-validations", "order-decisions"):
        until(lambda name=topic: len(pipeline.read(f"{name}.dead-letter")) >= 12)
        letter = dict(pipeline.read(f"{topic}.dead-letter")[0].headers)
        assert letter["dead-letter-topic"] == topic.encode()
        assert letter["dead-letter-reason"].startswith(b"MalformedEventError")


def test_a_load_is_judged_as_expected_though_one_check_is_slow_and_poison_comes(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    where = ("--orders-url", pipeline.urls["orders"], "--registry-url", pipeline.urls["registry"])
    rate = ("--bootstrap-servers", pipeline.bootstrap_servers, "--rate", "20", "--seconds", "3")
    slow = ("--slow", f"{pipeline.urls['fraud']}=300", "--poison", "2", "--declined", "0.1")
    file = tmp_path / "load.json"
    run = subprocess.run(
        program_command(
            "millstream", "load", *where, *rate, *slow, "--catalogue", "--report", file
        ),
        env=program_environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    report = json.loads(file.read_text())
    assert report["posted"] == 60
    assert report["judged"] == report["accepted"] == 60 - report["refused"]
    assert set(report["states"]) <= {"PAID", "FAILED"}
    assert report["ended"] == report["accepted"]
    results = [
        pipeline.decode(pipeline.reader("payments/payment"), one.value)["result"]
        for one in pipeline.read("payments")
    ]
    assert 0 < results.count("DECLINED") < report["states"]["FAILED"]
    assert report["latency_ms"]["p50"] > 300
    assert call("PUT", pipeline.urls["fraud"] + "/faults", {"delay_ms": -1}).status == 422
    assert "VALIDATED or FAILED, p50" in run.stdout
    assert "its final state, p50" in run.stdout


def test_services_are_ready_and_stop_when_told(pipeline: Pipeline) -> None:
    for name in SERVICES:
        assert call("GET", pipeline.urls[name] + "/health/ready").status == 200
        assert call("GET", pipeline.urls[name] + "/health/live").status == 200
    ended = pipeline.end("order_details")
    assert ended.exit_status == 0
    assert "service stopped name=order-details" in pipeline.log("order_details")
    pipeline.start("order_details")


def test_an_order_is_one_trace_through_services_streams_and_connect(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trace_id = "0af7651916cd43dd8448eb211c80319c"
    sink = tmp_path / "sink.json"
    sink.write_text(json.dumps(orders_into(tmp_path / "orders.txt")))
    registry = ("--registry-url", pipeline.urls["registry"])
    told = {
        "bootstrap.servers": pipeline.bootstrap_servers,
        "offset.storage.file.filename": str(tmp_path / "offsets"),
    }
    with running_collector() as collector, without(pipeline, "aggregator"):
        monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
        pipeline.start("aggregator-2")
        pipeline.add("streams", "streams", *registry, "--data-dir", str(tmp_path / "streams"))
        with ConnectWorker(tmp_path, told, sink):
            headers = {"traceparent": f"00-{trace_id}-b7ad6b7169203331-01"}
            posted = pipeline.post(order(customer_id="collected"), **headers).body
            assert pipeline.validated(posted["id"]).body["state"] in GOOD

            def mine() -> dict[tuple[str, str], Span]:
                services = ("aggregator", "streams", "connect")
                spans = [one for each in services for one in every(collector, trace_id, each)]
                return {(service, span.name): span for service, span in spans}

            decision = ("aggregator", "send order-decisions")
            wanted = {decision, ("streams", "process orders"), ("connect", "process orders")}
            until(lambda: wanted <= mine().keys(), shown=lambda: mine().keys())
        pipeline.end("streams")
        pipeline.end("aggregator-2")
        monkeypatch.undo()
    (decided,) = [
        one for one in pipeline.read("order-decisions") if one.key.decode() == posted["id"]
    ]
    span_id = dict(decided.headers)["traceparent"].split(b"-")[2].decode()
    assert mine()[decision].span_id.hex() == span_id
    # What reads the order is below the event that it reads.
    first = next(one for one in pipeline.read("orders") if one.key.decode() == posted["id"])
    event_id = dict(first.headers)["traceparent"].split(b"-")[2].decode()
    read = {span.parent_span_id.hex() for name, span in every(collector, trace_id, "connect")}
    assert event_id in read


def orders_into(file: Path) -> dict[str, str]:
    """Return a connector that writes the topic `orders` into a file."""
    return {
        "name": "orders-to-a-file",
        "connector.class": "FileStreamSink",
        "topics": "orders",
        "file": str(file),
    }


def every(collector: TraceCollector, trace_id: str, service: str) -> list[tuple[str, Span]]:
    """Return the spans of one service in a trace."""
    return [
        (name, span)
        for name, span in collector.spans
        if name == service and span.trace_id.hex() == trace_id
    ]


def test_reading_state_back_shows_how_far_it_is(pipeline: Pipeline) -> None:
    posted = pipeline.post(order(customer_id="restored")).body
    assert pipeline.validated(posted["id"]).body["state"] in GOOD
    pipeline.restart("inventory", kill=False)
    topic = "inventory-ledger-changelog"
    with urllib.request.urlopen(pipeline.urls["inventory"] + "/metrics", timeout=30) as answer:
        shown = dict(re.findall(r"^(\S+) (\S+)$", answer.read().decode(), re.MULTILINE))
    read = float(shown[f'millstream_restored_offsets{{topic="{topic}"}}'])
    assert read == float(shown[f'millstream_offsets_to_restore{{topic="{topic}"}}'])
    assert read > 0
    assert f"state is read back topic={topic} offsets={read:.0f} of={read:.0f}" in pipeline.log(
        "inventory"
    )


def test_order_that_cannot_finish_gives_504_and_finishes_later(pipeline: Pipeline) -> None:
    pipeline.end("fraud")
    posted = pipeline.post(order(customer_id="patient")).body
    answer = pipeline.validated(posted["id"], timeout_ms=100)
    assert answer.status == 504
    assert answer.headers["Content-Type"] == "application/problem+json"
    pipeline.start("fraud")
    assert pipeline.validated(posted["id"]).body["state"] in GOOD


def test_two_instances_each_order_is_readable_from_both(pipeline: Pipeline) -> None:
    pipeline.start("orders-2")
    try:
        for number in range(6):
            for name, other in (("orders", "orders-2"), ("orders-2", "orders")):
                posted = pipeline.post(order(customer_id=f"{name}-{number}"), name)
                assert posted.status == 201
                order_id = posted.body["id"]
                assert pipeline.get(f"/v1/orders/{order_id}", other).status == 200
                assert pipeline.validated(order_id, other).body["state"] in GOOD
    finally:
        pipeline.end("orders-2")


def stream(pipeline: Pipeline, name: str, count: int, disturb: Callable[[], object]) -> list[str]:
    """Post orders side by side, half of them for a product there are few of; disturb once."""
    few = f"few-{name}"
    pipeline.put_stock({few: FEW})
    pipeline.put_customers(f"{name}-{number}" for number in range(count))

    def post(number: int) -> str:
        body = order(few if number % 2 else f"p{number % 10}", customer_id=f"{name}-{number}")
        answers: list[Answer] = []

        def is_taken() -> bool:
            # The one instance there is may be stopped or not listening yet.
            with contextlib.suppress(OSError):
                key = {"Idempotency-Key": f"{name}-{number}"}
                answers.append(pipeline.post(body, **key))
            return bool(answers) and answers[-1].status == 201

        until(is_taken, 60)
        assert {answer.status for answer in answers} <= {201, 503}
        return str(answers[-1].body["id"])

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        ids = [pool.submit(post, number) for number in range(count)]
        ids[count // 3].result()
        disturb()
        return [future.result() for future in ids]


def assert_nothing_is_lost_or_repeated(pipeline: Pipeline, ids: list[str]) -> None:
    """Check orders of `stream`, every second of which was for one of the few there were."""
    assert len(set(ids)) == len(ids)
    # Files are asked first: reading topics whole again and again would keep the brokers busy.
    until(lambda: is_in_files(pipeline, ids), 60)
    until(lambda: is_all_told(pipeline, ids), 60)
    verdicts = judged(pipeline, ids)
    half = len(ids) // 2
    # Not one more was sold.
    assert Counter(verdicts.values()) == {"VALIDATED": half + FEW, "FAILED": half - FEW}
    assert_paid_and_told_once(pipeline, verdicts)
    ends = {"VALIDATED": (3, "PAID"), "FAILED": (2, "FAILED")}
    wanted = {one: ends[verdict] for one, verdict in verdicts.items()}
    until(lambda: {one: pipeline.documents().get(one) for one in ids} == wanted)


def is_in_files(pipeline: Pipeline, order_ids: list[str]) -> bool:
    """Return whether every order has a mail, and its end in the search index."""
    mailed = {file.name.partition(".")[0] for file in (pipeline.folder / MAILBOX).glob("*.eml")}
    documents = pipeline.documents()
    ended = {one for one, (_, state) in documents.items() if state in ("PAID", "FAILED")}
    return mailed & ended >= set(order_ids)


def is_all_told(pipeline: Pipeline, order_ids: list[str]) -> bool:
    """Return whether every check has spoken and every customer has a mail."""
    verdicts = pipeline.events("order-validations", "orders/order_validation", order_ids)
    mails = pipeline.events("order-confirmations", "mails/mail_sent", order_ids)
    return all(
        {event["check"] for event in verdicts[order_id]} == set(CHECKS) and mails[order_id]
        for order_id in order_ids
    )


def restart(pipeline: Pipeline, cluster: LocalCluster, names: Sequence[str], *, kill: bool) -> None:
    if "broker" in names:
        victim = cluster.active_controller()
        cluster.kill(victim)
        cluster.start(victim)
    else:
        pipeline.restart(*names, kill=kill)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "is_killed"),
    [
        (("orders", "inventory", "email"), True),
        (("fraud", "aggregator", "search"), True),
        (("order_details", "payments"), True),
        (("orders", "aggregator", "payments", "email"), False),
        (("broker",), True),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else None,
)
def test_restart_in_mid_stream_loses_and_repeats_nothing(
    pipeline: Pipeline, cluster: LocalCluster, names: tuple[str, ...], is_killed: bool
) -> None:
    """Several go at once, and wait for the same session; none shares a group with another."""
    label = f"{'-'.join(names)}-{'killed' if is_killed else 'stopped'}"
    ids = stream(pipeline, label, 40, lambda: restart(pipeline, cluster, names, kill=is_killed))
    assert_nothing_is_lost_or_repeated(pipeline, ids)


@pytest.mark.slow
def test_three_instances_of_everything_judge_the_same(pipeline: Pipeline) -> None:
    more = [f"{service}-{number}" for service in JUDGES for number in (2, 3)]
    pipeline.start(*more)
    try:
        ids = stream(pipeline, "three", 40, lambda: pipeline.end("inventory", kill=True))
        for order_id in ids:
            assert pipeline.validated(order_id, "orders-2", 60_000).status == 200
        assert_nothing_is_lost_or_repeated(pipeline, ids)
        rich = [{"product_id": "plenty", "quantity": 1, "unit_price": 1000}]
        states = [
            pipeline.validated(
                pipeline.post({"customer_id": "rich", "lines": rich}, name).body["id"]
            ).body["state"]
            for name in ("orders", "orders-2", "orders-3")
        ]
        assert states[0] in GOOD
        assert states[1:] == ["FAILED", "FAILED"]
    finally:
        for name in more:
            pipeline.end(name)
        if "inventory" not in pipeline.programs:
            pipeline.start_again("inventory")


@contextlib.contextmanager
def without(pipeline: Pipeline, *names: str) -> Iterator[None]:
    """End services for a while."""
    for name in names:
        pipeline.end(name)
    try:
        yield
    finally:
        pipeline.start_again(*names)


def test_aggregator_decides_by_distinct_checks_and_by_time(pipeline: Pipeline) -> None:
    writer = pipeline.writer("order-validations", "orders/order_validation")

    def check(order_id: str, name: str, result: str = "PASS") -> tuple[str, str, bytes]:
        event = {"order_id": order_id, "check": name, "result": result, "validator": "test"}
        if result == "FAIL":
            event |= {"code": "TEST", "reason": "the test says so"}
        return "order-validations", order_id, writer.encode(event)

    with without(pipeline, "fraud", "inventory", "order_details"):
        passed, failed, waiting = (pipeline.post(order()).body["id"] for _ in range(3))
        pipeline.produce(
            [
                *(check(passed, name) for name in CHECKS),
                *(check(failed, name) for name in CHECKS[:2]),
                check(failed, CHECKS[2], "FAIL"),
                *(check(waiting, name) for name in ("FRAUD", "FRAUD", "INVENTORY")),
            ]
        )
        assert pipeline.validated(passed).body["state"] in GOOD
        assert pipeline.validated(failed).body["reasons"] == [
            {"check": "ORDER_DETAILS", "code": "TEST", "detail": "the test says so"}
        ]
        assert pipeline.validated(waiting, timeout_ms=300).status == 504
        with without(pipeline, "aggregator"):
            pipeline.start("aggregator-2", arguments=("--validation-timeout-ms", "1"))
            answer = pipeline.validated(waiting).body
            pipeline.end("aggregator-2")
        assert (answer["state"], answer["reasons"][0]["code"]) == ("FAILED", "TIMEOUT")


def post_with_key(pipeline: Pipeline, number: int) -> Answer:
    key = {"Idempotency-Key": f"away-{number}"}
    return pipeline.post(order(customer_id=f"away-{number}"), **key)


def all_orders(pipeline: Pipeline) -> list[dict[str, Any]]:
    """Return every event of `orders`, but for what is none."""
    reader = pipeline.reader("orders/order_event")
    records = [one for one in pipeline.read("orders") if not one.key.startswith(b"poison-")]
    return [pipeline.decode(reader, one.value) for one in records]


def test_ten_megabytes_are_refused_and_nothing_is_done(pipeline: Pipeline) -> None:
    before = len(pipeline.read("orders"))
    answer = pipeline.post(order(customer_id="x" * 10_000_000))
    assert answer.status == 413
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert len(pipeline.read("orders")) == before


def test_brokers_that_go_away_give_503_and_their_return_is_noticed(
    pipeline: Pipeline, cluster: LocalCluster
) -> None:
    first = pipeline.post(order()).body
    assert pipeline.validated(first["id"]).body["state"] in GOOD
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        posting = [pool.submit(post_with_key, pipeline, number) for number in range(AWAY)]
        posting[4].result()
        cluster.kill(*cluster.node_ids)
        under_way = [each.result() for each in posting]
    assert {answer.status for answer in under_way} == {201, 503}
    refused = pipeline.post(order())
    assert refused.status == 503
    assert refused.headers["Retry-After"] == "1"
    assert call("GET", pipeline.urls["orders"] + "/health/ready").status == 503
    assert call("GET", pipeline.urls["orders"] + "/health/live").status == 200
    cluster.start()
    until(
        lambda: all(
            call("GET", pipeline.urls[name] + "/health/ready").status == 200 for name in SERVICES
        ),
        60,
    )
    # What was under way may fail only now, and is begun anew: 503 says to come again.
    answers: list[Answer] = []

    def is_accepted() -> bool:
        answers.append(pipeline.post(order(ordered_at=datetime.now(UTC).isoformat())))
        return answers[-1].status == 201

    until(is_accepted)
    assert pipeline.validated(answers[-1].body["id"]).body["state"] in GOOD
    assert pipeline.get(f"/v1/orders/{first['id']}").body["state"] in GOOD
    # Nothing is half done: each is one order, whatever its caller was told when the brokers went.
    again = [post_with_key(pipeline, number) for number in range(AWAY)]
    assert {answer.status for answer in again} <= {200, 201}
    ids = [answer.body["id"] for answer in again]
    for before, order_id in zip(under_way, ids, strict=True):
        assert before.status == 503 or before.body["id"] == order_id
    for order_id in ids:
        assert pipeline.validated(order_id).body["state"] in GOOD
    customers = {f"away-{number}" for number in range(AWAY)}
    created = [
        event
        for event in all_orders(pipeline)
        if event["customer_id"] in customers and event["version"] == 1
    ]
    assert sorted(event["order_id"] for event in created) == sorted(ids)
