"""The pipeline as processes on a real broker: what the design says the tests must show."""

import concurrent.futures
import contextlib
import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from millrace.launch import program_command, program_environment
from millrace.testing import LocalBroker
from tests.lib.pipeline_processes import SERVICES, Answer, Pipeline, call
from tests.lib.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

CHECKS = ("FRAUD", "INVENTORY", "ORDER_DETAILS")
STOCK = {"plenty": 1_000_000, "gone": 0, "few": 40, **{f"p{n}": 1_000_000 for n in range(10)}}


def order(product_id: str = "plenty", customer_id: str = "c", **changes: Any) -> dict[str, Any]:
    line = {"product_id": product_id, "quantity": 1, "unit_price": "1.50"}
    return {"customer_id": customer_id, "lines": [line], **changes}


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    folder = tmp_path_factory.mktemp("pipeline")
    with LocalBroker() as broker, Pipeline(broker.bootstrap_servers, folder) as running:
        running.start(*SERVICES, arguments=("--allow-faults", "1"))
        running.put_stock(STOCK)
        yield running


@pytest.fixture
def empty_pipeline(tmp_path: Path) -> Iterator[Pipeline]:
    """Broker and registry; the test starts the services it wants."""
    with LocalBroker() as broker, Pipeline(broker.bootstrap_servers, tmp_path) as running:
        yield running


def assert_judged_once(pipeline: Pipeline, order_ids: list[str]) -> dict[str, str]:
    """Check the topics for each order; return the final states."""
    history = pipeline.events("orders", "orders/order_event")
    verdicts = pipeline.events("order-validations", "orders/order_validation")
    decisions = pipeline.events("order-decisions", "orders/order_decision")
    for order_id in order_ids:
        assert [event["version"] for event in history[order_id]] == [1, 2]
        assert sorted(event["check"] for event in verdicts[order_id]) == list(CHECKS)
        assert len(decisions[order_id]) == 1
    return {order_id: history[order_id][-1]["state"] for order_id in order_ids}


def test_valid_order_is_validated_through_the_blocking_get(pipeline: Pipeline) -> None:
    posted = pipeline.post(order(customer_id="one"))
    assert posted.status == 201
    answer = pipeline.validated(posted.body["id"])
    assert (answer.status, answer.body["state"]) == (200, "VALIDATED")


def test_ten_valid_orders_in_a_row_come_out_otherwise_equal(pipeline: Pipeline) -> None:
    for number in range(10):
        posted = pipeline.post(order(customer_id=f"ten-{number}", country="Norway")).body
        answer = pipeline.validated(posted["id"]).body
        assert answer["state"] == "VALIDATED"
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
        "v0": [(3, 5, "VALIDATED"), (1, 75, "VALIDATED")],
        "v1": [(1, 75, "VALIDATED"), (1, 75, "VALIDATED"), (50, 75, "FAILED")],
        "v2": [(10, 100, "VALIDATED"), (10, 100, "FAILED"), (1, 5, "FAILED")],
    }.items():
        for quantity, price, state in amounts:
            line = {"product_id": "plenty", "quantity": quantity, "unit_price": price}
            posted = pipeline.post({"customer_id": customer, "lines": [line]}).body
            assert pipeline.validated(posted["id"]).body["state"] == state


def test_product_nobody_knows_fails_both_checks(pipeline: Pipeline) -> None:
    posted = pipeline.post(order("POST", customer_id="unknown")).body
    assert pipeline.validated(posted["id"]).body["state"] == "FAILED"

    def verdicts() -> dict[str, str]:
        events = pipeline.events("order-validations", "orders/order_validation")[posted["id"]]
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
    assert pipeline.validated(posted["id"]).body["state"] == "VALIDATED"
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
        program_command("millrace", "load", *where, *rate, *slow, "--catalogue", "--report", file),
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
    assert set(report["states"]) <= {"VALIDATED", "FAILED"}  # Nobody asks for money here.
    assert report["latency_ms"]["p50"] > 300
    assert call("PUT", pipeline.urls["fraud"] + "/faults", {"delay_ms": -1}).status == 422
    assert "VALIDATED or FAILED, p50" in run.stdout


def test_services_are_ready_and_stop_when_told(pipeline: Pipeline) -> None:
    for name in SERVICES:
        assert call("GET", pipeline.urls[name] + "/health/ready").status == 200
        assert call("GET", pipeline.urls[name] + "/health/live").status == 200
    ended = pipeline.end("order_details")
    assert ended.exit_status == 0
    assert "service stopped name=order-details" in pipeline.log("order_details")
    pipeline.start("order_details")


def test_order_that_cannot_finish_gives_504_and_finishes_later(pipeline: Pipeline) -> None:
    pipeline.end("fraud")
    posted = pipeline.post(order(customer_id="patient")).body
    answer = pipeline.validated(posted["id"], timeout_ms=100)
    assert answer.status == 504
    assert answer.headers["Content-Type"] == "application/problem+json"
    pipeline.start("fraud")
    assert pipeline.validated(posted["id"]).body["state"] == "VALIDATED"


def test_two_instances_each_order_is_readable_from_both(pipeline: Pipeline) -> None:
    pipeline.start("orders-2")
    try:
        for number in range(6):
            for name, other in (("orders", "orders-2"), ("orders-2", "orders")):
                posted = pipeline.post(order(customer_id=f"{name}-{number}"), name)
                assert posted.status == 201
                order_id = posted.body["id"]
                assert pipeline.get(f"/v1/orders/{order_id}", other).status == 200
                assert pipeline.validated(order_id, other).body["state"] == "VALIDATED"
    finally:
        pipeline.end("orders-2")


def stream(pipeline: Pipeline, count: int, disturb: Any) -> list[str]:
    """Post orders side by side, half of them for the product there are few of; disturb once."""

    def post(number: int) -> str:
        product = "few" if number % 2 else f"p{number % 10}"
        key = f"{id(disturb)}-{number}"
        body = order(product, customer_id=f"stream-{key}")
        answers: list[Answer] = []

        def is_taken() -> bool:
            # The one instance there is may be stopped or not listening yet.
            with contextlib.suppress(OSError):
                answers.append(pipeline.post(body, **{"Idempotency-Key": key}))
            return bool(answers) and answers[-1].status == 201

        until(is_taken, 60)
        assert {answer.status for answer in answers} <= {201, 503}
        return str(answers[-1].body["id"])

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        ids = [pool.submit(post, number) for number in range(count)]
        ids[count // 3].result()
        disturb()
        return [future.result() for future in ids]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("service", "kill"),
    [*((service, True) for service in SERVICES), ("orders", False), ("aggregator", False)],
)
def test_restart_in_mid_stream_loses_and_repeats_nothing(
    empty_pipeline: Pipeline, service: str, kill: bool
) -> None:
    pipeline = empty_pipeline
    pipeline.start(*SERVICES)
    pipeline.put_stock(STOCK)
    ids = stream(pipeline, 150, lambda: pipeline.restart(service, kill=kill))
    assert len(set(ids)) == 150
    for order_id in ids:
        assert pipeline.validated(order_id).status == 200
    until(lambda: all_checks_are_in(pipeline, ids))
    states = Counter(assert_judged_once(pipeline, ids).values())
    # Every second order was for one of the 40 there were; not one more was sold.
    assert states == {"VALIDATED": 75 + STOCK["few"], "FAILED": 75 - STOCK["few"]}


def all_checks_are_in(pipeline: Pipeline, order_ids: list[str]) -> bool:
    verdicts = pipeline.events("order-validations", "orders/order_validation")
    return all(
        {event["check"] for event in verdicts[order_id]} == set(CHECKS) for order_id in order_ids
    )


@pytest.mark.slow
def test_three_instances_of_everything_judge_the_same(empty_pipeline: Pipeline) -> None:
    pipeline = empty_pipeline
    names = [f"{service}-{number}" for service in SERVICES for number in (1, 2, 3)]
    pipeline.start(*[name for name in names if name != "orders-1"], "orders")
    pipeline.put_stock(STOCK)
    ids = stream(pipeline, 100, lambda: pipeline.end("inventory-1", kill=True))
    for order_id in ids:
        assert pipeline.validated(order_id, "orders-2", 60_000).status == 200
    until(lambda: all_checks_are_in(pipeline, ids), 60)
    states = Counter(assert_judged_once(pipeline, ids).values())
    assert states == {"VALIDATED": 50 + STOCK["few"], "FAILED": 50 - STOCK["few"]}
    rich = [{"product_id": "plenty", "quantity": 1, "unit_price": 1000}]
    states = [
        pipeline.validated(
            pipeline.post({"customer_id": "rich", "lines": rich}, name).body["id"]
        ).body["state"]
        for name in ("orders", "orders-2", "orders-3")
    ]
    assert states == ["VALIDATED", "FAILED", "FAILED"]


def test_aggregator_decides_by_distinct_checks_and_by_time(empty_pipeline: Pipeline) -> None:
    pipeline = empty_pipeline
    pipeline.start("orders", "aggregator", arguments=())
    writer = pipeline.writer("order-validations", "orders/order_validation")

    def check(order_id: str, name: str, result: str = "PASS") -> tuple[str, str, bytes]:
        event = {"order_id": order_id, "check": name, "result": result, "validator": "test"}
        if result == "FAIL":
            event |= {"code": "TEST", "reason": "the test says so"}
        return "order-validations", order_id, writer.encode(event)

    passed, failed, waiting = (pipeline.post(order()).body["id"] for _ in range(3))
    pipeline.produce(
        [
            *(check(passed, name) for name in CHECKS),
            *(check(failed, name) for name in CHECKS[:2]),
            check(failed, CHECKS[2], "FAIL"),
            *(check(waiting, name) for name in ("FRAUD", "FRAUD", "INVENTORY")),
        ]
    )
    assert pipeline.validated(passed).body["state"] == "VALIDATED"
    assert pipeline.validated(failed).body["reasons"] == [
        {"check": "ORDER_DETAILS", "code": "TEST", "detail": "the test says so"}
    ]
    assert pipeline.validated(waiting, timeout_ms=300).status == 504
    pipeline.end("aggregator")
    pipeline.start("aggregator", arguments=("--validation-timeout-ms", "1"))
    answer = pipeline.validated(waiting).body
    assert (answer["state"], answer["reasons"][0]["code"]) == ("FAILED", "TIMEOUT")


def test_broker_that_goes_away_gives_503_and_its_return_is_noticed(tmp_path: Path) -> None:
    with LocalBroker() as broker, Pipeline(broker.bootstrap_servers, tmp_path) as pipeline:
        pipeline.start(*SERVICES, arguments=())
        pipeline.put_stock(STOCK)
        first = pipeline.post(order()).body
        assert pipeline.validated(first["id"]).body["state"] == "VALIDATED"
        broker.kill()
        refused = pipeline.post(order())
        assert refused.status == 503
        assert refused.headers["Retry-After"] == "1"
        assert call("GET", pipeline.urls["orders"] + "/health/ready").status == 503
        assert call("GET", pipeline.urls["orders"] + "/health/live").status == 200
        broker.start()
        until(
            lambda: all(
                call("GET", pipeline.urls[name] + "/health/ready").status == 200
                for name in SERVICES
            ),
            60,
        )
        # What was under way may fail only now, and is begun anew: 503 says to come again.
        answers: list[Answer] = []

        def is_accepted() -> bool:
            answers.append(pipeline.post(order(ordered_at=datetime.now(UTC).isoformat())))
            return answers[-1].status == 201

        until(is_accepted)
        assert pipeline.validated(answers[-1].body["id"]).body["state"] == "VALIDATED"
        assert pipeline.get(f"/v1/orders/{first['id']}").body["state"] == "VALIDATED"
