"""The console on Apache Kafka: every view, records of every state, a group, what is explained."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer

from tests.lib.apache_kafka import kafka_libs, running_node
from tests.lib.local_console import ConsoleCalls, LocalConsole, events

pytestmark = [pytest.mark.interop, pytest.mark.timeout(240)]

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:ANONYMOUS",
}
EXACT = 9_007_199_254_740_993


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("apache")
    with running_node(kafka_libs(), folder, AUTHORIZER) as address:
        yield address


@pytest.fixture(scope="module")
def console(servers: str) -> Iterator[LocalConsole]:
    with LocalConsole(servers) as running:
        yield running


@pytest.fixture(scope="module")
def calls(console: LocalConsole) -> ConsoleCalls:
    return ConsoleCalls(console.url)


def test_every_view_is_answered(servers: str, console: LocalConsole, calls: ConsoleCalls) -> None:
    body = {"name": "orders", "partitions": 2, "settings": {"retention.ms": "100000000"}}
    assert calls.change("POST", "/api/topics", body).status == 201
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "mover"})
    producer.init_transactions()
    for value, end in (("kept", "commit"), ("gone", "abort"), (f'{{"id": {EXACT}}}', "commit")):
        producer.begin_transaction()
        producer.produce("orders", value=value, partition=0)
        producer.flush()
        getattr(producer, f"{end}_transaction")()
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "readers", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])
    assert consumer.consume(1, 30)
    consumer.commit(asynchronous=False)
    for path in (
        "/api/overview",
        "/api/topics?internal=1",
        "/api/topics/orders",
        "/api/topics/orders/explain",
        "/api/topics/orders/explain?partition=0&offset=0",
        "/api/groups",
        "/api/groups/readers",
        "/api/groups/readers/explain",
        "/api/groups/readers/reset?to=earliest",
        "/api/brokers",
        "/api/brokers/1",
        "/api/quorum",
        "/api/transactions",
        "/api/quotas",
        "/api/users",
        "/api/client-metrics",
        "/api/topics/orders/records/0/0",
    ):
        answer = calls.get(path)
        assert answer.status == 200, (path, answer.body)
    committed = calls.get("/api/topics/orders/records").body["rows"]
    assert [row["value"]["text"] for row in committed] == [f'{{"id": {EXACT}}}', "kept"]
    seen = calls.get("/api/topics/orders/records?from=oldest&all=1").body["rows"]
    assert [row["state"] for row in seen] == [
        "committed", "marker", "aborted", "marker", "committed", "marker",
    ]  # fmt: skip
    found = events(console.url, f"/api/topics/orders/search?kind=path&q=id%20%3D%3D%20{EXACT}")
    assert [name for name, _ in found] == ["begin", "row", "progress", "progress", "end"]
    consumer.close()
    record = {"value": {"kind": "text", "text": "written"}, "partition": 1}
    assert calls.change("POST", "/api/topics/orders/records", record).status == 201
    rule = {"principal": "User:bob", "operation": "WRITE", "resource": "TOPIC", "name": "ord"}
    asked = "/api/acls/may?principal=bob&operation=WRITE&resource=TOPIC&name=orders"
    assert not calls.get(asked).body["may"]
    assert calls.change("POST", "/api/acls", {**rule, "pattern": "PREFIXED"}).status == 201
    assert calls.get("/api/acls").body["count"] == 1
    found = calls.get(asked).body
    assert (found["may"], len(found["rules"])) == (True, 1)
    assert calls.change("DELETE", "/api/acls", found["rules"][0]).body == {"deleted": 1}
