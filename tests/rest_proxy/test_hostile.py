"""What comes from outside and means no good: the proxy refuses it, and goes on."""

import contextlib
import json
import socket
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from millstream.testing import LocalBroker, LocalRestProxy, LocalStack
from tests.lib.rest_calls import JSON, V2, Answer, RestCalls, records_type
from tests.lib.waiting import until

pytestmark = pytest.mark.slow

JSON_RECORDS = records_type("json")


def memory_bytes(pid: int) -> int:
    """Return what a process has in memory for itself, as Linux counts it."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return 1024 * int(line.split()[1])
    raise AssertionError("no Pss")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Sec_Fetch_Site": "same-origin"}, 200),
        ({}, 200),
    ],
)
def test_a_page_of_another_origin_changes_nothing(
    rest: RestCalls, topic: str, headers: dict[str, str], status: int
) -> None:
    records = {"records": [{"value": 1}]}
    answer = rest.post(f"/topics/{topic}", records, JSON_RECORDS, **headers)
    assert answer.status == status, answer
    if status == 403:
        assert "access.control.allow.origin" in answer.body["message"]


def test_a_page_of_another_origin_consumes_nothing(rest: RestCalls) -> None:
    path = "/consumers/g/instances/none/records"
    assert rest.get(path, Origin="http://evil.example").status == 403
    assert rest.get(path, Sec_Fetch_Site="cross-site").status == 403
    assert rest.get(path).code == 40403


def test_the_proxy_s_own_page_may_post(rest: RestCalls, topic: str) -> None:
    records = {"records": [{"value": 1}]}
    assert rest.post(f"/topics/{topic}", records, JSON_RECORDS, Origin=rest.url).status == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8082", "127.0.0.1.evil.example"])
def test_a_name_that_somebody_pointed_here_is_not_served(rest: RestCalls, host: str) -> None:
    answer = rest.get("/topics", Host=host)
    assert answer.status == 421
    assert "allowed.hosts" in answer.body["message"]
    assert rest.get("/topics", Host="localhost:9").status == 200


def test_allowed_origins_may_call_and_read_and_allowed_hosts_are_served(
    stack: LocalStack,
) -> None:
    settings = {
        "access.control.allow.origin": "http://ui.example",
        "allowed.hosts": "kafka.example",
    }
    with LocalRestProxy(stack.bootstrap_servers, settings=settings) as proxy:
        rest = RestCalls(proxy.url)
        origin = {"Origin": "http://ui.example"}
        asked = rest.call("OPTIONS", "/topics/t", None, None, **origin)
        assert asked.status == 204
        assert "POST" in asked.headers["Access-Control-Allow-Methods"]
        answer = rest.get("/topics", **origin)
        assert answer.headers["Access-Control-Allow-Origin"] == "http://ui.example"
        assert rest.post("/consumers/g", {}, **origin).status == 200
        assert rest.post("/consumers/g", {}, Origin="http://other.example").status == 403
        assert rest.get("/topics", Host="kafka.example").status == 200


def test_ten_megabytes_of_json_stop_nobody_else(rest: RestCalls, topic: str) -> None:
    """Every probe is answered while the body is read, checked and sent."""
    body = json.dumps({"records": [{"value": {"n": n, "text": "x" * 80}} for n in range(90_000)]})
    assert len(body) > 10_000_000
    slowest = 0.0
    is_over = threading.Event()

    def probe() -> None:
        nonlocal slowest
        while not is_over.is_set():
            began = time.monotonic()
            assert rest.get("/health/live").status == 200
            slowest = max(slowest, time.monotonic() - began)

    prober = threading.Thread(target=probe)
    prober.start()
    try:
        began = time.monotonic()
        answer = rest.post(f"/topics/{topic}", body.encode(), JSON_RECORDS)
        took = time.monotonic() - began
    finally:
        is_over.set()
        prober.join()
    assert (answer.status, len(answer.body["offsets"])) == (200, 90_000)
    assert {each["error"] for each in answer.body["offsets"]} == {None}
    assert slowest < took / 2, (slowest, took)


def test_bodies_are_bounded(rest: RestCalls, topic: str) -> None:
    assert rest.post(f"/topics/{topic}", b" " * (33 << 20), JSON_RECORDS).code == 413
    assert rest.post("/consumers/g", b" " * (2 << 20), V2).code == 413
    cluster_id = rest.get("/v3/clusters").body["data"][0]["cluster_id"]
    path = f"/v3/clusters/{cluster_id}/topics"
    assert rest.post(path, b" " * (2 << 20), JSON).code == 413


def test_half_a_body_is_let_go(rest: RestCalls, topic: str) -> None:
    parts = urlsplit(rest.url)
    address = (parts.hostname or "", parts.port or 0)
    for path, kind in ((f"/topics/{topic}", JSON_RECORDS), ("/consumers/g", V2)):
        with socket.create_connection(address) as half:
            head = f"POST {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: {kind}\r\n"
            half.sendall(f"{head}Content-Length: 1000\r\n\r\n{{".encode())
    assert rest.get("/health/ready").status == 200
    assert rest.get("/topics").status == 200


def test_a_consumer_that_never_reads_its_answer_blocks_nobody(rest: RestCalls, topic: str) -> None:
    """The system closes its connection after a minute (`common.http.accepting`)."""
    records = {"records": [{"value": "x" * 100_000}] * 100}
    for _ in range(2):
        assert rest.post(f"/topics/{topic}", records, JSON_RECORDS).status == 200
    told = {"format": "json", "auto.offset.reset": "earliest"}
    place = rest.post("/consumers/deaf", told).body["base_uri"]
    partitions = {"partitions": [{"topic": topic, "partition": each} for each in (0, 1)]}
    rest.post(f"{place}/assignments", partitions)
    parts = urlsplit(rest.url)
    with socket.create_connection((parts.hostname or "", parts.port or 0)) as deaf:
        path = place.removeprefix(rest.url) + "/records?timeout=1000"
        deaf.sendall(f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
        assert deaf.recv(15) == b"HTTP/1.1 200 OK"
        assert rest.get("/topics").status == 200
        # What it has been given is not given again, and the instance is free.
        assert len(rest.get(f"{place}/records?timeout=100").body) < 200
        assert rest.delete(place.removeprefix(rest.url)).status == 204


def test_a_hundred_instances_that_nobody_calls_again_are_gone_and_so_is_their_memory(
    stack: LocalStack,
) -> None:
    settings = {"consumer.instance.timeout.ms": "1500", "consumer.request.timeout.ms": "100"}
    with LocalRestProxy(stack.bootstrap_servers, settings=settings) as proxy:
        rest = RestCalls(proxy.url)
        rest.post("/topics/idle", {"records": [{"value": "x" * 1000}] * 500}, JSON_RECORDS)

        def round_of_hundred(number: int) -> int:
            for each in range(100):
                told = {"auto.offset.reset": "earliest", "name": f"i-{each}"}
                made = rest.post(f"/consumers/round-{number}-{each}", told)
                path = made.body["base_uri"]
                partitions = {"partitions": [{"topic": "idle", "partition": 0}]}
                assert rest.post(f"{path}/assignments", partitions).status == 204
            deadline = time.monotonic() + 30
            while "millstream_rest_proxy_consumer_instances 0.0" not in rest.get("/metrics").body:
                assert time.monotonic() < deadline
                time.sleep(0.1)
            return memory_bytes(proxy.pid)

        round_of_hundred(0)
        first, second = round_of_hundred(1), round_of_hundred(2)
        assert second < first + (3 << 20), (first, second)


def test_there_are_so_many_instances_and_no_more(stack: LocalStack) -> None:
    settings = {"consumer.instances.max": "2"}
    with LocalRestProxy(stack.bootstrap_servers, settings=settings) as proxy:
        rest = RestCalls(proxy.url)
        codes = [rest.post("/consumers/g").status for _ in range(3)]
        assert codes == [200, 200, 429]
        assert "consumer.instances.max" in rest.post("/consumers/g").body["message"]


def test_without_kafka_the_proxy_says_so_and_goes_on_when_it_is_back(topic: str) -> None:
    with LocalBroker() as broker, LocalRestProxy(broker.bootstrap_servers) as proxy:
        rest = RestCalls(proxy.url)
        records = {"records": [{"value": 1}]}
        assert rest.post(f"/topics/{topic}", records, JSON_RECORDS).status == 200
        told = {"format": "json", "auto.offset.reset": "earliest"}
        instance = rest.post("/consumers/g", told).body["base_uri"]
        rest.post(f"{instance}/subscription", {"topics": [topic]})
        assert len(rest.get(f"{instance}/records").body) == 1
        broker.kill()
        assert rest.get("/health/live").status == 200
        waiting = rest.get("/health/ready")
        assert (waiting.status, waiting.body["missing"]) == (503, ["Kafka"])
        refused = rest.get("/topics")
        assert (refused.status, refused.code) == (503, 50302)
        broker.start()
        until(lambda: rest.get("/health/ready").status == 200)
        assert rest.post(f"/topics/{topic}", records, JSON_RECORDS).status == 200
        until(lambda: _values(rest.get(f"{instance}/records")) == [1])


def _values(answer: Answer) -> list[object]:
    return [each["value"] for each in answer.body] if answer.status == 200 else []


def test_addresses_in_answers_are_those_the_caller_uses(rest: RestCalls) -> None:
    told = {"X_Forwarded_Proto": "https", "X_Forwarded_Host": "kafka.example"}
    body = rest.get("/v3/clusters", X_Forwarded_Prefix="/rest", **told).body
    assert body["metadata"]["self"] == "https://kafka.example/rest/v3/clusters"
    made = rest.post("/consumers/forwarded", {"name": "a"}, **told).body
    assert made["base_uri"] == "https://kafka.example/consumers/forwarded/instances/a"
    rest.delete("/consumers/forwarded/instances/a")


def test_it_ends_in_good_order(stack: LocalStack) -> None:
    with LocalRestProxy(stack.bootstrap_servers) as proxy:
        rest = RestCalls(proxy.url)
        instance = rest.post("/consumers/leaver", {"auto.offset.reset": "earliest"}).body
        rest.post(f"{instance['base_uri']}/subscription", {"topics": ["_schemas"]})
        began = time.monotonic()
        proxy.stop()
        assert time.monotonic() - began < 10
        assert "rest proxy stopped" in proxy.log_tail()
        assert "Traceback" not in proxy.log_tail()


TWICE = {
    "$ref": "#/definitions/d0",
    "definitions": {
        **{f"d{n}": {"anyOf": [{"$ref": f"#/definitions/d{n + 1}"}] * 2} for n in range(40)},
        "d40": {"type": "null"},
    },
}


@pytest.mark.parametrize(
    ("schema", "value", "status"),
    [
        ({"type": "string", "pattern": "^(a+)+$"}, "a" * 40 + "!", 422),
        (
            {"type": "array", "uniqueItems": True},
            [each for number in range(6000) for each in ({"a": number}, [number])],
            200,
        ),
        (TWICE, 1, 422),
        ({"items": {"type": "integer"}}, list(range(20_000)), 200),
    ],
)
def test_a_schema_that_takes_long_stops_nobody_else(
    rest: RestCalls, topic: str, schema: object, value: object, status: int
) -> None:
    told = {"value_schema": json.dumps(schema), "records": [{"value": value}]}
    waits: list[float] = []
    posting = threading.Thread(
        target=lambda: answers.append(
            rest.post(f"/topics/{topic}", told, records_type("jsonschema"))
        )
    )
    answers: list[Answer] = []
    posting.start()
    while posting.is_alive():
        began = time.monotonic()
        assert rest.get("/health/live").status == 200
        waits.append(time.monotonic() - began)
    assert answers[0].status == status, answers
    if status == 422:
        assert answers[0].code == 42203 or "schema" in str(answers[0].body)


def test_a_million_records_are_refused_and_stop_nobody_else(rest: RestCalls, topic: str) -> None:
    body = b'{"records":[' + b",".join([b'{"value":1}'] * 1_000_000) + b"]}"
    answer = rest.post(f"/topics/{topic}", body, JSON_RECORDS)
    assert answer.code == 413
    assert "request.max.records" in answer.body["message"]


def test_streams_whose_reports_nobody_reads_take_little(stack: LocalStack, topic: str) -> None:
    """The proxy stops to read them."""
    record = json.dumps({"value": {"type": "STRING", "data": "x" * 10_000}}).encode()
    with LocalRestProxy(stack.bootstrap_servers) as proxy:
        rest = RestCalls(proxy.url)
        assert (
            rest.post(f"/topics/{topic}", {"records": [{"value": 1}]}, JSON_RECORDS).status == 200
        )
        cluster = rest.get("/v3/clusters").body["data"][0]["cluster_id"]
        parts = urlsplit(proxy.url)
        before, deaf = memory_bytes(proxy.pid), []
        for _ in range(30):
            stream = socket.create_connection((parts.hostname or "", parts.port or 0))
            stream.settimeout(2)
            head = f"POST /v3/clusters/{cluster}/topics/{topic}/records HTTP/1.1\r\n"
            head += f"Host: {parts.netloc}\r\nContent-Type: {JSON}\r\n"
            stream.sendall(f"{head}Content-Length: 1000000000\r\n\r\n".encode())
            deaf.append(stream)
        slowest = 0.0
        for stream in deaf:
            with contextlib.suppress(TimeoutError):
                stream.sendall(record * 500)
            began = time.monotonic()
            assert rest.get("/health/live").status == 200
            slowest = max(slowest, time.monotonic() - began)
        grown = memory_bytes(proxy.pid) - before
        for stream in deaf:
            stream.close()
    assert grown < 150 << 20, grown
