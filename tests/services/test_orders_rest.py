"""The REST interface of orders against a bus in memory: one instance, and two."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from aiokafka.errors import KafkaTimeoutError
from yarl import URL

from common.http.application import build_app
from common.kafka.assignment import Directory
from common.process.telemetry import Metrics
from common.processing.outbox import Outgoing
from common.processing.service import Running
from services.orders.app import OrdersService
from services.orders.desk import OrderDesk
from services.orders.ids import partition_of
from services.orders.routes import add_routes
from services.orders.settings import OrdersSettings
from services.orders.worker import OrdersWorker
from tests.lib.pipeline_bus import Bus, FakeRegistry, Group, Instance, fake_events

GOOD = {
    "customer_id": "c1",
    "lines": [{"product_id": "p1", "quantity": 2, "unit_price": "2.55"}],
}
SETTINGS = OrdersSettings(produce_timeout_ms=500)  # More than a busy machine holds up a test.
BODY_LIMIT_BYTES = 20_000
BODY_SECONDS = 0.2


class FakeProcessor:
    """Writes to the bus at once; can be told to fail, or to hang until it is let go on."""

    is_restored = True

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.failure: Exception | None = None
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()

    async def write(self, record: Outgoing) -> None:
        await self.may_go_on.wait()
        if self.failure is not None:
            raise self.failure
        self.bus.append(record.topic, record.key, record.value, record.headers, record.partition)

    async def is_broker_reachable(self) -> bool:
        return self.failure is None


@dataclass
class Node:
    """One instance of the orders service."""

    client: TestClient
    instance: Instance
    processor: FakeProcessor
    running: Running
    url: str

    async def decide(self, order_id: str, decision: str = "VALIDATED") -> None:
        """Let the aggregator's decision come in."""
        writer = await self.instance.events.writer("order-decisions", "orders/order_decision")
        event = {"order_id": order_id, "decision": decision, "reasons": []}
        self.instance.bus.append("order-decisions", order_id.encode(), writer.encode(event))
        await self.catch_up()

    async def verdict(self, order_id: str, check: str, result: str) -> None:
        """Let a verdict of a validator come in."""
        writer = await self.instance.events.writer("order-validations", "orders/order_validation")
        event = {"order_id": order_id, "check": check, "result": result, "validator": "test"}
        if result == "FAIL":
            event |= {"code": "C", "reason": "why"}
        self.instance.bus.append("order-validations", order_id.encode(), writer.encode(event))
        await self.catch_up()

    async def catch_up(self) -> None:
        class Everything:
            def random(self) -> float:
                return 0.0

            def randint(self, low: int, high: int) -> int:
                return high

        while not self.instance.is_idle:
            await self.instance.step(Everything())


@asynccontextmanager
async def node(bus: Bus, directory: Directory, partitions: set[int]) -> AsyncIterator[Node]:
    events = fake_events(FakeRegistry())
    writer = await events.writer("orders", "orders/order_event")
    worker = OrdersWorker(bus.read_to_end, events, writer, Metrics())
    instance = Instance(bus, Group(), worker)
    instance.events = events
    await instance.take(partitions)
    processor = FakeProcessor(bus)
    running = Running(processor=processor)
    app = build_app(
        running.metrics.registry,
        running.missing,
        body_limit_bytes=BODY_LIMIT_BYTES,
        body_seconds=BODY_SECONDS,
        http_seconds=running.metrics.http_seconds,
    )
    add_routes(app, SETTINGS, running)
    async with TestClient(TestServer(app)) as client:
        url = str(client.make_url("")).rstrip("/")
        commands = await events.writer("order-commands", "orders/order_command")
        desk = OrderDesk(SETTINGS, worker, processor, commands)
        running.service = OrdersService(url, worker, desk, directory)
        yield Node(client, instance, processor, running, url)


def with_node(check: Callable[[Node], Awaitable[None]]) -> None:
    async def run() -> None:
        async with node(Bus(), Directory(), set(range(6))) as one:
            await check(one)

    asyncio.run(run())


def with_two_nodes(check: Callable[[Node, Node], Awaitable[None]]) -> None:
    async def run() -> None:
        bus, directory = Bus(), Directory()
        async with (
            node(bus, directory, {0, 1, 2}) as first,
            node(bus, directory, {3, 4, 5}) as second,
        ):
            owners = {first.url: {"orders": [0, 1, 2]}, second.url: {"orders": [3, 4, 5]}}
            directory.update(json.dumps(owners).encode())
            await check(first, second)

    asyncio.run(run())


async def problem(response: Any, status: int) -> dict[str, Any]:
    assert response.status == status, await response.text()
    assert response.content_type == "application/problem+json"
    body = await response.json(content_type=None)
    assert body["status"] == status
    assert body["title"]
    return body


def test_order_is_created_and_can_be_read_at_once() -> None:
    async def check(one: Node) -> None:
        response = await one.client.post("/v1/orders", json=GOOD)
        assert response.status == 201
        order = await response.json()
        assert response.headers["Location"] == f"/v1/orders/{order['id']}"
        assert (order["state"], order["version"], order["total"]) == ("CREATED", 1, "5.10")
        read = await one.client.get(response.headers["Location"])
        assert await read.json() == order

    with_node(check)


def test_event_carries_the_trace_of_the_request() -> None:
    async def check(one: Node) -> None:
        trace = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
        response = await one.client.post("/v1/orders", json=GOOD, headers={"traceparent": trace})
        assert (await response.json())["correlation_id"] == "a" * 32
        (record,) = one.instance.bus.all("orders")
        assert record.headers == (("traceparent", trace.encode()),)

    with_node(check)


@pytest.mark.parametrize("trace", ["", "00-xyz", "00-" + "0" * 32 + "-" + "b" * 16 + "-01"])
def test_trace_that_is_not_well_formed_is_replaced(trace: str) -> None:
    async def check(one: Node) -> None:
        await one.client.post("/v1/orders", json=GOOD, headers={"traceparent": trace})
        (record,) = one.instance.bus.all("orders")
        assert len(record.headers[0][1]) == 55

    with_node(check)


def test_wrong_fields_are_refused_each_with_an_entry() -> None:
    async def check(one: Node) -> None:
        response = await one.client.post("/v1/orders", json={"customer_id": "", "lines": []})
        body = await problem(response, 422)
        assert [error["pointer"] for error in body["errors"]] == ["#/customer_id", "#/lines"]
        assert not one.instance.bus.all("orders")

    with_node(check)


def test_body_that_is_no_json_is_refused() -> None:
    async def check(one: Node) -> None:
        headers = {"Content-Type": "application/json"}
        response = await one.client.post("/v1/orders", data=b"{", headers=headers)
        await problem(response, 400)

    with_node(check)


def test_body_that_comes_slowly_is_refused_and_nothing_is_written() -> None:
    async def check(one: Node) -> None:
        async def body() -> AsyncIterator[bytes]:
            yield json.dumps(GOOD).encode()[:-1]
            await asyncio.Event().wait()

        headers = {"Content-Type": "application/json"}
        response = await one.client.post("/v1/orders", data=body(), headers=headers)
        await problem(response, 408)
        assert not one.instance.bus.all("orders")

    with_node(check)


def test_body_of_another_type_or_too_large_is_refused() -> None:
    async def check(one: Node) -> None:
        await problem(await one.client.post("/v1/orders", data=b"x"), 415)
        large = {**GOOD, "country": "x" * BODY_LIMIT_BYTES}
        await problem(await one.client.post("/v1/orders", json=large), 413)

    with_node(check)


def test_paths_and_methods_that_are_not_there() -> None:
    async def check(one: Node) -> None:
        await problem(await one.client.get("/v2/orders"), 404)
        response = await one.client.delete("/v1/orders")
        await problem(response, 405)
        assert response.headers["Allow"] == "GET,HEAD,POST"

    with_node(check)


def test_unknown_order_is_404_everywhere() -> None:
    async def check(one: Node) -> None:
        for path in ("/v1/orders/x", "/v1/orders/x/validated?timeout=0", "/v1/orders/x/events"):
            await problem(await one.client.get(path), 404)

    with_node(check)


@pytest.mark.parametrize("timeout", ["", "-1", "1.5", "soon", "99999999999"])
def test_timeout_must_be_a_number_of_milliseconds(timeout: str) -> None:
    async def check(one: Node) -> None:
        await problem(await one.client.get("/v1/orders/x", params={"timeout": timeout}), 400)

    with_node(check)


def test_same_key_and_body_give_the_first_answer_and_one_order() -> None:
    async def check(one: Node) -> None:
        headers = {"Idempotency-Key": "k"}
        answers = await asyncio.gather(
            *(one.client.post("/v1/orders", json=GOOD, headers=headers) for _ in range(5))
        )
        first = await answers[0].json()
        await one.decide(first["id"])
        answers.append(await one.client.post("/v1/orders", json=GOOD, headers=headers))
        for answer in answers:
            assert answer.status == 201
            assert await answer.json() == first
        assert [record.key.decode() for record in one.instance.bus.all("orders")] == [
            first["id"],
            first["id"],
        ]

    with_node(check)


def test_same_key_with_another_body_is_a_conflict() -> None:
    async def check(one: Node) -> None:
        headers = {"Idempotency-Key": "k"}
        await one.client.post("/v1/orders", json=GOOD, headers=headers)
        other = {**GOOD, "customer_id": "c2"}
        await problem(await one.client.post("/v1/orders", json=other, headers=headers), 409)

    with_node(check)


def test_key_works_after_a_restart_too() -> None:
    async def check(one: Node) -> None:
        headers = {"Idempotency-Key": "k"}
        first = await (await one.client.post("/v1/orders", json=GOOD, headers=headers)).json()
        await one.instance.take(range(6))
        again = await one.client.post("/v1/orders", json=GOOD, headers=headers)
        assert await again.json() == first
        other = {**GOOD, "customer_id": "c2"}
        await problem(await one.client.post("/v1/orders", json=other, headers=headers), 409)

    with_node(check)


def test_key_must_have_a_length() -> None:
    async def check(one: Node) -> None:
        for key in ("", "k" * 256):
            headers = {"Idempotency-Key": key}
            await problem(await one.client.post("/v1/orders", json=GOOD, headers=headers), 400)

    with_node(check)


def test_blocking_get_answers_when_the_order_is_judged() -> None:
    async def check(one: Node) -> None:
        order = await (await one.client.post("/v1/orders", json=GOOD)).json()
        path = f"/v1/orders/{order['id']}/validated"
        waiting = [asyncio.ensure_future(one.client.get(path)) for _ in range(10)]
        await asyncio.sleep(0)
        await one.decide(order["id"])
        for response in await asyncio.gather(*waiting):
            assert (await response.json())["state"] == "VALIDATED"
        events = await (await one.client.get(f"/v1/orders/{order['id']}/events")).json()
        states = [(event["version"], event["state"]) for event in events["events"]]
        assert states == [(1, "CREATED"), (2, "VALIDATED")]
        assert events["checks"] == []

    with_node(check)


def test_late_check_joins_the_history_and_changes_nothing() -> None:
    async def check(one: Node) -> None:
        order = await (await one.client.post("/v1/orders", json=GOOD)).json()
        await one.decide(order["id"], "FAILED")
        await one.verdict(order["id"], "FRAUD", "FAIL")
        await one.verdict(order["id"], "INVENTORY", "PASS")
        await one.verdict(order["id"], "INVENTORY", "FAIL")
        for _ in range(2):
            path = f"/v1/orders/{order['id']}/events"
            history = await (await one.client.get(path)).json()
            assert [event["state"] for event in history["events"]] == ["CREATED", "FAILED"]
            assert history["checks"] == [
                {"check": "FRAUD", "result": "FAIL", "code": "C", "reason": "why"},
                {"check": "INVENTORY", "result": "PASS", "code": None, "reason": None},
            ]
            await one.instance.take(range(6))

    with_node(check)


def test_blocking_get_gives_up_with_504() -> None:
    async def check(one: Node) -> None:
        order = await (await one.client.post("/v1/orders", json=GOOD)).json()
        path = f"/v1/orders/{order['id']}/validated?timeout=1"
        await problem(await one.client.get(path), 504)

    with_node(check)


def test_decision_that_comes_again_or_late_changes_nothing() -> None:
    async def check(one: Node) -> None:
        order = await (await one.client.post("/v1/orders", json=GOOD)).json()
        for decision in ("FAILED", "FAILED", "VALIDATED"):
            await one.decide(order["id"], decision)
        assert len(one.instance.bus.all("orders")) == 2
        read = await (await one.client.get(f"/v1/orders/{order['id']}")).json()
        assert read["state"] == "FAILED"

    with_node(check)


@pytest.mark.parametrize("is_hanging", [True, False])
def test_broker_that_is_away_gives_503_and_not_a_hang(is_hanging: bool) -> None:
    async def check(one: Node) -> None:
        if is_hanging:
            one.processor.may_go_on.clear()
        one.processor.failure = KafkaTimeoutError()
        response = await one.client.post("/v1/orders", json=GOOD)
        await problem(response, 503)
        assert response.headers["Retry-After"] == "1"
        await problem(await one.client.get("/health/ready"), 503)
        assert (await one.client.get("/health/live")).status == 200

    with_node(check)


def test_order_that_took_too_long_is_the_one_that_a_second_request_gets() -> None:
    async def check(one: Node) -> None:
        key = {"Idempotency-Key": "k1"}
        one.processor.may_go_on.clear()
        await problem(await one.client.post("/v1/orders", json=GOOD, headers=key), 503)
        await problem(await one.client.post("/v1/orders", json=GOOD, headers=key), 503)
        one.processor.may_go_on.set()
        responses = [await one.client.post("/v1/orders", json=GOOD, headers=key) for _ in range(2)]
        assert [response.status for response in responses] == [201, 201]
        assert len(one.instance.bus.all("orders")) == 1

    with_node(check)


def test_service_that_starts_is_not_ready_and_takes_no_orders() -> None:
    async def check(one: Node) -> None:
        one.running.service = None
        one.running.processor = None
        await problem(await one.client.get("/health/ready"), 503)
        await problem(await one.client.post("/v1/orders", json=GOOD), 503)

    with_node(check)


def test_probes_metrics_and_description() -> None:
    async def check(one: Node) -> None:
        assert (await one.client.get("/health/ready")).status == 200
        metrics = await (await one.client.get("/metrics")).text()
        assert "millstream_verdicts_total" in metrics
        await one.client.get("/no/such/path")
        await one.client.get("/v1/orders/x")
        metrics = await (await one.client.get("/metrics")).text()
        for route in ("none", "/v1/orders/{order_id}"):
            labels = f'method="GET",route="{route}",status="404"'
            assert f"millstream_http_seconds_count{{{labels}}} 1.0" in metrics
        described = await (await one.client.get("/openapi.json")).json()
        assert described["openapi"] == "3.1.0"
        routes = {
            (route.method.lower(), route.resource.canonical)
            for route in one.client.server.app.router.routes()
            if route.method != "HEAD"
        }
        routes -= {("get", "/"), ("get", "/page/{name}")}  # What people are shown is no interface.
        assert routes == {
            (method, path) for path, methods in described["paths"].items() for method in methods
        }

    with_node(check)


def test_each_order_is_read_from_both_instances() -> None:
    async def check(first: Node, second: Node) -> None:
        for poster, reader in ((first, second), (second, first)):
            order = await (await poster.client.post("/v1/orders", json=GOOD)).json()
            assert partition_of(order["id"]) in {p.partition for p in poster.instance.held}
            waiting = asyncio.ensure_future(
                reader.client.get(f"/v1/orders/{order['id']}/validated")
            )
            await poster.decide(order["id"])
            assert (await (await waiting).json())["state"] == "VALIDATED"
            read = await reader.client.get(f"/v1/orders/{order['id']}")
            assert read.status == 200

    with_two_nodes(check)


def test_key_leads_to_one_order_whichever_instance_is_asked() -> None:
    async def check(first: Node, second: Node) -> None:
        for key in map(str, range(8)):
            headers = {"Idempotency-Key": key}
            answers = [
                await (await one.client.post("/v1/orders", json=GOOD, headers=headers)).json()
                for one in (first, second)
            ]
            assert answers[0] == answers[1]
            other = {**GOOD, "customer_id": "c2"}
            refused = await second.client.post("/v1/orders", json=other, headers=headers)
            await problem(refused, 409)

    with_two_nodes(check)


def test_instance_without_partitions_passes_orders_on() -> None:
    async def check(first: Node, second: Node) -> None:
        await second.instance.take([])
        owners = {first.url: {"orders": list(range(6))}, second.url: {"orders": []}}
        second.running.service.directory.update(json.dumps(owners).encode())
        await first.instance.take(range(6))
        response = await second.client.post("/v1/orders", json=GOOD)
        assert response.status == 201
        assert (await first.client.get(response.headers["Location"])).status == 200

    with_two_nodes(check)


def test_order_of_another_instance_is_cancelled_there() -> None:
    async def check(first: Node, second: Node) -> None:
        order = await (await second.client.post("/v1/orders", json=GOOD)).json()
        assert (await first.client.delete(f"/v1/orders/{order['id']}")).status == 202
        await second.catch_up()
        found = await (await first.client.get(f"/v1/orders/{order['id']}")).json()
        assert found["state"] == "CANCELLED"

    with_two_nodes(check)


def test_owner_that_does_not_answer_gives_503() -> None:
    async def check(first: Node, second: Node) -> None:
        order = await (await second.client.post("/v1/orders", json=GOOD)).json()
        await second.client.server.close()
        await problem(await first.client.get(f"/v1/orders/{order['id']}"), 503)

    with_two_nodes(check)


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("lines", '[{"product_id":"a","quantity":1,"unit_price":1e999999999999999999999}]'),
        ("lines", '[{"product_id":"a","quantity":1,"unit_price":-1e-999999999999999999999}]'),
        ("lines", '[{"product_id":"a","quantity":1,"unit_price":"1e999999999999999999999"}]'),
        ("lines", '[{"product_id":"a","quantity":1e999999999999999999999,"unit_price":1}]'),
        ("total", "1e999999999999999999999"),
        ("ordered_at", '"0001-01-01T00:00:00+23:59"'),
        ("ordered_at", '"9999-12-31T23:59:59-23:59"'),
    ],
)
def test_what_no_decimal_and_no_moment_can_hold_is_refused_by_its_field(
    field: str, text: str
) -> None:
    async def check(one: Node) -> None:
        body = json.dumps({**GOOD, "@": "@"}).replace('"@": "@"', f'"{field}": {text}')
        headers = {"Content-Type": "application/json"}
        response = await one.client.post("/v1/orders", data=body, headers=headers)
        told = await problem(response, 422)
        assert told["errors"], told
        assert not one.instance.bus.all("orders")

    with_node(check)


@pytest.mark.parametrize(
    "body",
    [
        *("[" * 15_000, '{"total":' + "9" * 5000 + "}", b"\xff", b"\x00"),
        *('{"\\ud800": 1}', '{"customer_id": "\\ud800"}', b'{"customer_id": "\xed\xa0\x80"}'),
    ],
)
def test_what_json_cannot_hold_is_refused(body: str | bytes) -> None:
    async def check(one: Node) -> None:
        headers = {"Content-Type": "application/json"}
        await problem(await one.client.post("/v1/orders", data=body, headers=headers), 400)

    with_node(check)


@pytest.mark.parametrize("key", [b"k\xff", "k\u00e9".encode(), b"a\tb", b"\xed\xa0\x80"])
def test_key_must_be_plain_text(key: bytes) -> None:
    async def check(one: Node) -> None:
        body = json.dumps(GOOD).encode()
        server = one.client.server
        reader, writer = await asyncio.open_connection(server.host, server.port)
        writer.write(
            b"POST /v1/orders HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Connection: close\r\nIdempotency-Key: %s\r\nContent-Length: %d\r\n\r\n%s"
            % (key, len(body), body)
        )
        assert (await reader.read())[9:12] == b"400"
        writer.close()
        assert not one.instance.bus.all("orders")

    with_node(check)


@pytest.mark.parametrize("order_id", ["%ED%A0%80", "%FF", "%00", "a%2Fb", "9" * 5000])
def test_id_that_is_no_text_is_unknown(order_id: str) -> None:
    async def check(one: Node) -> None:
        for method, end in (("GET", ""), ("DELETE", ""), ("GET", "/events"), ("GET", "/validated")):
            url = URL(f"/v1/orders/{order_id}{end}?timeout=0", encoded=True)
            status = 400 if order_id in ("%ED%A0%80", "%FF") else 404
            await problem(await one.client.request(method, url), status)

    with_node(check)
