"""The registry as a process on a real broker, with real clients."""

import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import (
    ConfigCompatibilityLevel,
    Schema,
    SchemaRegistryClient,
    SchemaRegistryError,
    ServerConfig,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pool, message_factory, timestamp_pb2
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

from millstream.testing import LocalBroker
from tests.lib.pipeline_processes import Program, call
from tests.lib.waiting import until
from tests.schemas.test_registry_compatibility import VERDICTS
from tests.schemas.test_registry_strangers import schema_records

pytestmark = pytest.mark.interop

SCHEMA = (
    '{"type":"record","name":"R","fields":[{"name":"a","type":"long"},{"name":"m","type":'
    '{"type":"bytes","logicalType":"decimal","precision":18,"scale":4}}]}'
)


class Servers:
    """Registries on one broker."""

    def __init__(self, broker: LocalBroker, folder: Path) -> None:
        self.bootstrap_servers = broker.bootstrap_servers
        self._folder = folder
        self.programs: list[Program] = []

    def start(self) -> str:
        where = ("--bootstrap-servers", self.bootstrap_servers, "--http-port", "0")
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
    return call("POST", f"{url}/subjects/{subject}/versions", {"schema": schema}).body["id"]


def test_what_is_registered_survives_restarts_and_is_seen_by_all(servers: Servers) -> None:
    first, second = servers.start(), servers.start()
    assert register(first, "a-value") == 1
    assert register(second, "b-value", '"string"') == 2
    assert register(second, "a-value") == 1
    assert call("GET", f"{second}/subjects").body == ["a-value", "b-value"]
    for program in servers.programs:
        program.end()
        assert program.exit_status == 0
    third = servers.start()
    assert call("GET", f"{third}/subjects").body == ["a-value", "b-value"]
    assert call("GET", f"{third}/schemas/ids/1").body["schema"] == SCHEMA
    assert register(third, "c-value", '"int"') == 3


def money_message() -> Any:
    """Make the class that `protoc` would: one message with one number."""
    file = FileDescriptorProto(name="money.proto", package="shop", syntax="proto3")
    field = file.message_type.add(name="Money").field.add(name="units", number=1)
    field.type = FieldDescriptorProto.TYPE_INT64
    field.label = FieldDescriptorProto.LABEL_OPTIONAL
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Money"))


@contextmanager
def client_of(url: str) -> Iterator[SchemaRegistryClient]:
    client = SchemaRegistryClient({"url": url})
    try:
        yield client
    finally:
        client.close()


def leader_of(url: str) -> str:
    return str(call("GET", f"{url}/health/ready").body["leader"])


def test_leader_killed_while_schemas_are_registered_loses_no_id_and_gives_none_twice(
    servers: Servers,
) -> None:
    urls = [servers.start(), servers.start()]
    leader = urls.index(leader_of(urls[1]))
    other = urls[1 - leader]
    registered: dict[str, int] = {}

    def register_fixed(number: int) -> None:
        schema = f'{{"type":"fixed","name":"F{number}","size":1}}'

        def is_registered() -> bool:
            path = f"{other}/subjects/s{number}/versions"
            answer = call("POST", path, {"schema": schema})
            if answer.status == 200:
                registered[f"s{number}"] = answer.body["id"]
            return answer.status == 200

        until(is_registered)

    with ThreadPoolExecutor(1) as background:
        registering = background.submit(lambda: [register_fixed(each) for each in range(60)])
        until(lambda: len(registered) > 15)
        servers.programs[leader].end(kill=True)
        registering.result()
    assert leader_of(other) == other
    assert len(set(registered.values())) == 60
    third = servers.start()
    for subject, schema_id in registered.items():
        entry = call("GET", f"{third}/subjects/{subject}/versions/latest").body
        assert (entry["id"], entry["version"]) == (schema_id, 1)
        places = call("GET", f"{third}/schemas/ids/{schema_id}/versions").body
        assert places == [{"subject": subject, "version": 1}]


def test_counts_its_requests_by_route(servers: Servers) -> None:
    url = servers.start()
    register(url, "a-value")
    with urllib.request.urlopen(f"{url}/metrics") as answer:
        text = answer.read().decode()
    route = 'method="POST",route="/subjects/{subject}/versions",status="200"'
    assert f"registry_requests_total{{{route}}} 1.0" in text
    assert "registry_subjects 1.0" in text
    assert "registry_is_leader 1.0" in text


def test_confluents_client_does_all_it_can(servers: Servers) -> None:
    with client_of(servers.start()) as client:
        schema_id = client.register_schema("t-value", Schema(SCHEMA, "AVRO"))
        assert client.get_schema(schema_id).schema_str == SCHEMA
        assert client.lookup_schema("t-value", Schema(SCHEMA, "AVRO")).schema_id == schema_id
        assert client.get_subjects() == ["t-value"]
        assert client.get_versions("t-value") == [1]
        assert client.get_latest_version("t-value").schema_id == schema_id
        assert client.get_version("t-value", 1).schema.schema_str == SCHEMA
        guid = client.register_schema_full_response("t-value", Schema(SCHEMA, "AVRO")).guid
        assert client.get_schema_by_guid(guid).schema_str == SCHEMA
        with pytest.raises(SchemaRegistryError) as caught:
            client.get_latest_version("unknown")
        assert (caught.value.error_code, caught.value.http_status_code) == (40401, 404)
        assert not client.test_compatibility("t-value", Schema('"string"', "AVRO"))
        assert client.set_compatibility("t-value", "NONE") == {"compatibility": "NONE"}
        assert client.get_compatibility("t-value") == "NONE"
        assert client.test_compatibility("t-value", Schema('"string"', "AVRO"))
        client.set_config("t-value", ServerConfig(ConfigCompatibilityLevel.FULL))
        assert client.get_config("t-value").compatibility_level == "FULL"
        assert client.get_global_mode() == "READWRITE"
        assert client.update_mode("t-value", "READONLY") == "READONLY"
        assert client.get_mode("t-value") == "READONLY"
        client.update_mode("t-value", "READWRITE")
        assert client.get_contexts() == ["."]
        assert client.get_referenced_by("t-value", 1) == []
        assert client.delete_version("t-value", 1) == 1
        assert client.delete_subject("t-value", permanent=True) == [1]


def test_confluents_client_is_given_every_verdict(servers: Servers) -> None:
    levels = ((ConfigCompatibilityLevel.BACKWARD, False), (ConfigCompatibilityLevel.NONE, True))
    with client_of(servers.start()) as client:
        for number, (reader, writer, can_read) in enumerate(VERDICTS):
            subject = f"verdict-{number}-value"
            client.register_schema(subject, Schema(writer, "AVRO"))
            for level, is_always in levels:
                client.set_config(subject, ServerConfig(level))
                answer = client.test_compatibility(subject, Schema(reader, "AVRO"))
                assert answer == (is_always or can_read), (level, reader, writer)


def test_confluents_serializers_work_with_it(servers: Servers) -> None:
    with client_of(servers.start()) as client:
        context = SerializationContext("t", MessageField.VALUE)
        event = {"a": 5, "m": Decimal("2.5000")}
        data = AvroSerializer(client, SCHEMA)(event, context)
        assert AvroDeserializer(client)(data, context) == event

        schema = '{"title":"o","type":"object","properties":{"a":{"type":"integer"}}}'
        context = SerializationContext("j", MessageField.VALUE)
        data = JSONSerializer(schema, client)({"a": 5}, context)
        assert JSONDeserializer(schema, schema_registry_client=client)(data, context) == {"a": 5}

        context = SerializationContext("p", MessageField.VALUE)
        money_class = money_message()
        money = money_class(units=5)
        data = ProtobufSerializer(money_class, client)(money, context)
        assert (
            ProtobufDeserializer(money_class, schema_registry_client=client)(data, context) == money
        )
        assert client.get_latest_version("p-value").schema.schema_type == "PROTOBUF"


MONEY_FILE = 'syntax = "proto3";\npackage shop;\n// Money.\nmessage Money { int64 units = 1; }'


@pytest.mark.parametrize("is_text_first", [True, False])
def test_programs_that_send_text_and_programs_that_send_descriptors_share_a_topic(
    servers: Servers, is_text_first: bool
) -> None:
    """Java's serializer registers the text of a file, Python's its descriptor."""
    url = servers.start()
    with client_of(url) as java, client_of(url) as python, client_of(url) as reader:
        money_class = money_message()
        context = SerializationContext("shared", MessageField.VALUE)

        def as_text() -> int:
            return java.register_schema("shared-value", Schema(MONEY_FILE, "PROTOBUF"))

        def as_descriptor() -> int:
            data = ProtobufSerializer(money_class, python)(money_class(units=5), context)
            return int.from_bytes(data[1:5], "big")

        order = (as_text, as_descriptor) if is_text_first else (as_descriptor, as_text)
        assert order[0]() == order[1]()
        assert java.get_versions("shared-value") == [1]
        data = ProtobufSerializer(money_class, python)(money_class(units=7), context)
        for client in (python, reader):
            read = ProtobufDeserializer(money_class, schema_registry_client=client)
            assert read(data, context) == money_class(units=7)


def test_records_that_no_registry_wrote_stop_no_instance(servers: Servers) -> None:
    first = servers.start()
    register(first, "a-value")
    producer = Producer({"bootstrap.servers": servers.bootstrap_servers})
    for key, value in schema_records():
        producer.produce("_schemas", key=key, value=value)
    assert producer.flush(30) == 0
    assert register(first, "b-value", '"int"') == 2
    second = servers.start()
    for url in (first, second):
        assert call("GET", f"{url}/subjects").body == ["a-value", "b-value"]
        assert len(call("GET", f"{url}/schemas").body) == 2


def test_schema_that_takes_long_delays_nobody_else(servers: Servers) -> None:
    url = servers.start()
    register(url, "a-value")
    names = ",".join(f'"{number}":{{"type":"string"}}' for number in range(150))
    choices = ",".join(f'{{"properties":{{"{number}":true,{names}}}}}' for number in range(40))
    slow, other = (
        f'{{"anyOf":[{choices}]}}'.replace("string", kind) for kind in ("string", "null")
    )
    body = {"schema": slow, "schemaType": "JSON"}
    assert call("POST", f"{url}/subjects/slow/versions", body).status == 200
    waits = []
    with ThreadPoolExecutor(1) as background:
        path = f"{url}/compatibility/subjects/slow/versions"
        asking = background.submit(call, "POST", path, {**body, "schema": other})
        while not asking.done():
            started = time.monotonic()
            assert call("GET", f"{url}/health/live").status == 200
            waits.append(time.monotonic() - started)
        assert asking.result().status in (200, 422)
    assert len(waits) > 10
    # The processor may be busy with other tests; on the registry's loop it would be the whole time.
    assert max(waits) < sum(waits) / 3


def test_python_serializer_registers_what_a_file_imports(servers: Servers) -> None:
    """It registers each imported file under its name, and refers to it."""
    url = servers.start()
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    money = FileDescriptorProto(name="shop/money.proto", package="shop", syntax="proto3")
    money.message_type.add(name="Money").field.add(name="units", number=1, type=3, label=1)
    order = FileDescriptorProto(name="shop/order.proto", package="shop", syntax="proto3")
    order.dependency.extend([money.name, "google/protobuf/timestamp.proto"])
    message = order.message_type.add(name="Order")
    kinds = (("total", ".shop.Money"), ("at", ".google.protobuf.Timestamp"))
    for number, (name, kind) in enumerate(kinds, 1):
        message.field.add(name=name, number=number, type=11, label=1, type_name=kind)
    for file in (money, order):
        pool.Add(file)
    order_class: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))
    value = order_class(total={"units": 3}, at={"seconds": 7})
    context = SerializationContext("orders", MessageField.VALUE)
    with client_of(url) as writer, client_of(url) as reader:
        data = ProtobufSerializer(order_class, writer)(value, context)
        assert ProtobufDeserializer(order_class, {}, reader)(data, context) == value
        assert reader.get_subjects() == ["orders-value", "shop/money.proto"]
        known = call("GET", f"{url}/subjects/orders-value/versions/1").body
        (reference,) = known["references"]
        assert reference == {"name": money.name, "subject": money.name, "version": 1}
        assert known["schema"] == (
            'syntax = "proto3";\npackage shop;\n\n'
            'import "google/protobuf/timestamp.proto";\nimport "shop/money.proto";\n\n'
            "message Order {\n  .shop.Money total = 1;\n  .google.protobuf.Timestamp at = 2;\n}\n"
        )
