"""The registry as a process on a real broker, with real clients."""

import urllib.request
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from millrace.testing import LocalBroker
from tests.lib.pipeline_processes import Program, call

pytestmark = pytest.mark.interop

SCHEMA = (
    '{"type":"record","name":"R","fields":[{"name":"a","type":"long"},{"name":"m","type":'
    '{"type":"bytes","logicalType":"decimal","precision":18,"scale":4}}]}'
)


class Servers:
    """Registries on one broker."""

    def __init__(self, broker: LocalBroker, folder: Path) -> None:
        self._broker = broker
        self._folder = folder
        self.programs: list[Program] = []

    def start(self) -> str:
        where = ("--bootstrap-servers", self._broker.bootstrap_servers, "--http-port", "0")
        log_file = self._folder / f"registry-{len(self.programs)}.log"
        self.programs.append(Program(log_file, "schemas.registry", *where))
        return self.programs[-1].wait_ready()


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    with LocalBroker() as broker:
        found = Servers(broker, tmp_path)
        try:
            yield found
        finally:
            for program in found.programs:
                program.end(kill=True)


def register(url: str, subject: str, schema: str = SCHEMA) -> Any:
    return call("POST", f"{url}/subjects/{subject}/versions", {"schema": schema}).body


def test_what_is_registered_survives_restarts_and_is_seen_by_all(servers: Servers) -> None:
    first, second = servers.start(), servers.start()
    assert register(first, "a-value") == {"id": 1}
    assert register(second, "b-value", '"string"') == {"id": 2}
    assert register(second, "a-value") == {"id": 1}
    for program in servers.programs:
        program.end(kill=True)
    third = servers.start()
    assert call("GET", f"{third}/subjects").body == ["a-value", "b-value"]
    assert call("GET", f"{third}/schemas/ids/1").body == {"schema": SCHEMA}
    assert register(third, "c-value", '"int"') == {"id": 3}


def test_counts_its_requests_by_route(servers: Servers) -> None:
    url = servers.start()
    register(url, "a-value")
    with urllib.request.urlopen(f"{url}/metrics") as answer:
        text = answer.read().decode()
    route = 'method="POST",route="/subjects/{subject}/versions",status="200"'
    assert f"registry_requests_total{{{route}}} 1.0" in text
    assert "registry_subjects 1.0" in text


def test_stops_when_told(servers: Servers) -> None:
    servers.start()
    servers.programs[0].end()
    assert servers.programs[0].exit_status == 0


def test_confluents_client_and_serializers_work_with_it(servers: Servers) -> None:
    reason = "confluent-kafka is here without its extra `schemaregistry`"
    client_module = pytest.importorskip(
        "confluent_kafka.schema_registry", reason=reason, exc_type=ImportError
    )
    avro = pytest.importorskip(
        "confluent_kafka.schema_registry.avro", reason=reason, exc_type=ImportError
    )
    from confluent_kafka.serialization import MessageField, SerializationContext

    client = client_module.SchemaRegistryClient({"url": servers.start()})
    schema_id = client.register_schema("t-value", client_module.Schema(SCHEMA, "AVRO"))
    assert client.get_schema(schema_id).schema_str == SCHEMA
    assert client.get_subjects() == ["t-value"]
    assert client.get_versions("t-value") == [1]
    assert client.get_latest_version("t-value").schema_id == schema_id
    with pytest.raises(client_module.SchemaRegistryError) as caught:
        client.get_latest_version("unknown")
    assert (caught.value.error_code, caught.value.http_status_code) == (40401, 404)
    context = SerializationContext("t", MessageField.VALUE)
    event = {"a": 5, "m": Decimal("2.5000")}
    data = avro.AvroSerializer(client, SCHEMA)(event, context)
    assert avro.AvroDeserializer(client)(data, context) == event
