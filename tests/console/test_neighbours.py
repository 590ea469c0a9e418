"""The console with a schema registry and a Connect worker, whose names and texts are hostile."""

import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from confluent_kafka import Producer

from millstream.testing import LocalConnect, LocalStack
from rest_proxy.formats.avro import AvroCodec
from rest_proxy.formats.wire import framed
from tests.lib.local_console import ConsoleCalls, LocalConsole, events
from tests.lib.rest_calls import JSON, RestCalls
from tests.lib.waiting import until

pytestmark = pytest.mark.slow

EXACT = 9_007_199_254_740_993
HOSTILE = "<img src=x onerror=alert(1)>"
FIRST = {
    "type": "record",
    "name": "Order",
    "doc": HOSTILE,
    "fields": [{"name": "id", "type": "long"}],
}
SECOND = {**FIRST, "fields": [*FIRST["fields"], {"name": "note", "type": "string"}]}


@pytest.fixture(scope="module")
def stack() -> Iterator[LocalStack]:
    with LocalStack(parts=["registry"]) as running:
        yield running


@pytest.fixture(scope="module")
def connect(stack: LocalStack) -> Iterator[LocalConnect]:
    with LocalConnect(stack.bootstrap_servers) as running:
        yield running


@pytest.fixture(scope="module")
def console(stack: LocalStack, connect: LocalConnect) -> Iterator[LocalConsole]:
    options = ("--schema-registry", stack.schema_registry_url, "--connect", connect.url)
    dead = ("--connect", "http://127.0.0.1:1")
    with LocalConsole(stack.bootstrap_servers, *options, *dead) as running:
        yield running


@pytest.fixture(scope="module")
def calls(console: LocalConsole) -> ConsoleCalls:
    return ConsoleCalls(console.url)


def test_records_are_read_by_their_schemas(
    stack: LocalStack, console: LocalConsole, calls: ConsoleCalls
) -> None:
    new = {"kind": "AVRO", "schema": json.dumps(FIRST)}
    made = calls.change("POST", "/api/schemas/orders-value", new)
    value = framed(made.body["id"], AvroCodec(json.dumps(FIRST)).encode({"id": EXACT}))
    producer = Producer({"bootstrap.servers": stack.bootstrap_servers})
    for each in (value, value[:5], b"\0\0\0\xff\xff nothing", b'{"id": 1}'):
        producer.produce("orders", value=each)
        producer.flush()
    rows = calls.get("/api/topics/orders/records?from=oldest").body["rows"]
    kinds = [(row["value"]["kind"], row["value"]["note"]) for row in rows]
    assert rows[0]["value"]["text"] == f'{{"id": {EXACT}}}'
    assert [kind for kind, _ in kinds] == ["avro", "hex", "hex", "json"]
    assert "not of its schema" in kinds[1][1]
    assert "schema 65535" in kinds[2][1]
    found = events(console.url, f"/api/topics/orders/search?kind=path&q=id%20%3D%3D%20{EXACT}")
    assert [data["value"]["kind"] for name, data in found if name == "row"] == ["avro"]
    body = {"value": {"kind": "schema", "subject": "orders-value", "text": f'{{"id": {EXACT}}}'}}
    made = calls.change("POST", "/api/topics/orders/records", body)
    assert made.status == 201, made.body
    body["value"]["text"] = '{"id": "x"}'
    refused = calls.change("POST", "/api/topics/orders/records", body)
    assert (refused.status, "orders-value" in refused.body["detail"]) == (422, True)


def test_a_schema_is_checked_compared_and_registered(calls: ConsoleCalls) -> None:
    path = f"/api/schemas/{quote(HOSTILE, safe='')}"
    first = {"kind": "AVRO", "schema": json.dumps(FIRST)}
    assert calls.change("POST", f"{path}/check", first).body["is_compatible"]
    assert calls.change("POST", path, first).status == 201
    second = {"kind": "AVRO", "schema": json.dumps(SECOND)}
    checked = calls.change("POST", f"{path}/check", second).body
    assert not checked["is_compatible"]
    assert "note" in str(checked["messages"])
    assert calls.change("POST", path, second).status == 409
    added = {"name": "note", "type": "string", "default": ""}
    third = {"kind": "AVRO", "schema": json.dumps({**FIRST, "fields": [*FIRST["fields"], added]})}
    assert calls.change("POST", path, third).status == 201
    found = calls.get(path).body
    assert (found["versions"], found["version"], found["compared"]) == ([1, 2], 2, 1)
    assert any(line.startswith("+") and "note" in line for line in found["difference"])
    assert HOSTILE in calls.get("/api/schemas").body["subjects"]
    assert calls.get("/api/schemas/none").status == 404


def test_connectors_are_shown_without_secrets_and_stopped(
    connect: LocalConnect, calls: ConsoleCalls
) -> None:
    name = f"a/b {HOSTILE}"
    settings = {
        "connector.class": "FileStreamSource",
        "file": str(connect.folder / "lines"),
        "topic": "lines",
        "my.password": "hunter2",
    }
    rest = RestCalls(connect.url)
    body = {"name": name, "config": settings}
    until(lambda: rest.get("/connectors").status == 200)
    made = rest.post("/connectors", body, JSON)
    assert made.status == 201, made.body

    def shown() -> dict[str, object]:
        cluster, dead = calls.get("/api/connectors").body["clusters"]
        assert "does not answer" in dead["error"]
        return {each["name"]: each for each in cluster["connectors"]}.get(name) or {}

    until(lambda: shown().get("state") == "RUNNING", shown=lambda: shown())
    assert "hunter2" not in json.dumps(shown())
    path = f"/api/connectors/0/{quote(name, safe='')}"
    assert calls.change("POST", f"{path}/pause", {}).status == 202
    until(lambda: shown()["state"] == "PAUSED", shown=lambda: shown())
    assert calls.change("POST", f"{path}/explode", {}).status == 404
    assert calls.change("POST", f"{path}/pause".replace("/0/", "/7/"), {}).status == 404


def test_quotas_and_metrics_are_shown(calls: ConsoleCalls) -> None:
    quota = {"entity": {"user": HOSTILE}, "values": {"producer_byte_rate": 1000}}
    assert calls.change("POST", "/api/quotas", quota).status == 200
    found = calls.get("/api/quotas").body["quotas"]
    assert {"entity": {"user": HOSTILE}, "values": {"producer_byte_rate": 1000.0}} in found
    assert calls.change("POST", "/api/quotas", {**quota, "values": {"x": "y"}}).status == 422
    assert calls.get("/api/client-metrics").body == {"subscriptions": []}
    assert calls.get("/api/users").status == 200
