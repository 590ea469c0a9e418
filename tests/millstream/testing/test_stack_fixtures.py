"""The fixtures of a stack, as a user's tests have them."""

import pytest
from confluent_kafka import Producer

from millstream.testing import LocalBroker, LocalConnect, LocalRegistry, LocalRestProxy, LocalStack
from tests.lib.rest_calls import JSON, RestCalls, records_type

pytestmark = pytest.mark.slow


def test_parts_work_on_the_broker_of_the_test(
    kafka_broker: LocalBroker,
    schema_registry: LocalRegistry,
    rest_proxy: LocalRestProxy,
    connect_worker: LocalConnect,
) -> None:
    Producer({"bootstrap.servers": kafka_broker.bootstrap_servers}).list_topics("mine", timeout=30)
    registry = RestCalls(schema_registry.url)
    assert registry.post("/subjects/s/versions", {"schema": '"string"'}, JSON).status == 200
    topics = RestCalls(rest_proxy.url).get("/topics").body
    assert {"mine", "_schemas", "connect-configs"} <= set(topics)
    config = {
        "connector.class": "FileStreamSource",
        "topic": "lines",
        "file": str(connect_worker.folder / "lines.txt"),
    }
    (connect_worker.folder / "lines.txt").write_text("one\n")
    worker = RestCalls(connect_worker.url)
    made = worker.post("/connectors", {"name": "lines", "config": config}, JSON)
    assert made.status == 201, made


def test_a_stack_has_what_is_asked_for_and_leaves_nothing() -> None:
    stack = LocalStack(parts=["rest-proxy"], num_partitions=3)
    with stack:
        assert set(stack.environment()) == {"KAFKA_BOOTSTRAP_SERVERS", "KAFKA_REST_URL"}
        rest = RestCalls(stack.rest_proxy_url)
        sent = rest.post("/topics/t", {"records": [{"value": 1}]}, records_type("json"))
        assert sent.status == 200
        assert len(rest.get("/topics/t/partitions").body) == 3
        folder = stack.programs["rest-proxy"].folder
        assert "Traceback" not in stack.logs()["rest-proxy"]
    assert not folder.exists()
    assert stack.logs() == {"rest-proxy": ""}


def test_a_program_is_killed_and_started_again(kafka_broker: LocalBroker) -> None:
    with LocalRestProxy(kafka_broker.bootstrap_servers) as proxy:
        first = proxy.pid
        proxy.kill()
        proxy.start()
        assert proxy.pid != first
        assert RestCalls(proxy.url).get("/health/live").status == 200


def test_a_stack_without_a_known_part_is_refused() -> None:
    with pytest.raises(ValueError, match="kitchen"):
        LocalStack(parts=["kitchen"])


def test_the_whole_stack_answers(kafka_stack: LocalStack) -> None:
    assert RestCalls(kafka_stack.rest_proxy_url).get("/brokers").body == {"brokers": [1]}
    assert RestCalls(kafka_stack.schema_registry_url).get("/subjects").body == []
    assert RestCalls(kafka_stack.connect_url).get("/connectors").body == []
