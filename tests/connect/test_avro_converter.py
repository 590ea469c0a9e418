"""AvroConverter: what comes back is what went in, and Confluent's clients understand it."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import given, settings
from hypothesis import strategies as st

from connect.registry_converters.avro import AvroConverter
from connect.registry_converters.avro_schema import avro_of, connect_of
from connect.registry_converters.json_schema import JsonSchemaConverter
from connect.registry_converters.registry import framed
from millrace.connect import DataException, RetriableException, Schema, Struct
from millrace.testing import LocalBroker
from tests.lib.connect_values import schemas_and_values
from tests.lib.pipeline_processes import Program

NOWHERE = {"schema.registry.url": "http://127.0.0.1:1"}
ROOT = Path(__file__).parents[2]


class InMemory:
    """A registry in one list."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def subject(self, topic: str, record_name: str | None) -> str:
        return f"{topic}-{record_name}"

    def id_of(self, subject: str, text: str, kind: str) -> int:
        self.texts.append(text)
        return len(self.texts) - 1

    def schema_of(self, schema_id: int) -> tuple[str, str]:
        if schema_id >= len(self.texts):
            raise DataException("no such schema")
        return self.texts[schema_id], "AVRO"


def converter() -> AvroConverter:
    made = AvroConverter()
    made.configure(NOWHERE, False)
    made._registry = InMemory()  # type: ignore[assignment]
    return made


def comparable(value: Any) -> Any:
    """Return a value with lists for tuples."""
    if isinstance(value, Struct):
        return [(field.name, comparable(one)) for field, one in value.items()]
    if isinstance(value, dict):
        return {key: comparable(one) for key, one in value.items()}
    return [comparable(one) for one in value] if isinstance(value, list | tuple) else value


@settings(max_examples=50)
@given(schemas_and_values())
def test_what_is_written_is_read(pair: tuple[Schema, Any]) -> None:
    schema, value = pair
    made = converter()
    try:
        written = made.from_connect_data("t", schema, value)
    except DataException as error:
        # Avro's names are ASCII, its decimals have no negative scale, its names are defined once.
        if not any(word in str(error) for word in ("no such schema", "scale", "called")):
            raise
        return
    if written is None:
        assert value is None
        return
    back = made.to_connect_data("t", written)
    assert comparable(back.value) == comparable(value)
    assert made.from_connect_data("t", back.schema, back.value) is not None


ORDER = Schema.struct(
    {
        "id": Schema.int64(doc="Its number."),
        "small": Schema.int8(default=3),
        "price": Schema.decimal(2, optional=True),
        "at": Schema.timestamp(),
        "lines": Schema.array(Schema.struct({"n": Schema.int32()}, name="shop.Line")),
        "by": Schema.map(Schema.int32(), Schema.string(optional=True)),
    },
    name="shop.Order",
    version=2,
    doc="An order.",
)


def test_a_schema_comes_back_as_it_was() -> None:
    assert connect_of(avro_of(ORDER)) == ORDER


def test_every_schema_of_the_pipeline_is_understood() -> None:
    found = sorted((ROOT / "schemas").glob("*/*.avsc"))
    assert len(found) > 8
    for path in found:
        schema = connect_of(json.loads(path.read_text()))
        assert schema.fields, path


def test_unions_and_enums_are_structs_and_texts_and_go_back() -> None:
    avro = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "u", "type": ["null", "string", "long"], "default": None},
            {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
        ],
    }
    schema = connect_of(avro)
    union = schema.fields[0].schema
    assert [field.name for field in union.fields] == ["string", "long"]
    value = Struct(schema, {"u": Struct(union, {"long": 7}), "e": "B"})
    made = converter()
    written = made.from_connect_data("t", schema, value)
    assert written is not None
    assert made.to_connect_data("t", written).value == value


@pytest.mark.parametrize(
    "avro",
    [
        {"type": "record", "name": "R", "fields": [{"name": "r", "type": ["null", "R"]}]},
        {"type": "record", "name": "R"},
        {"type": "nothing"},
        "unknown",
        7,
        {},
    ],
)
def test_schemas_that_cannot_be_are_refused(avro: Any) -> None:
    with pytest.raises(DataException):
        connect_of(avro)


@settings(max_examples=40)
@given(st.binary(max_size=20))
def test_garbage_is_refused(body: bytes) -> None:
    made = converter()
    made.from_connect_data("t", ORDER, order())
    for value in (body, framed(0, body)):
        try:
            assert isinstance(made.to_connect_data("t", value).value, Struct)
        except DataException:
            pass


def order() -> Struct:
    line = ORDER.fields[4].schema.value_schema
    assert line is not None
    return Struct(
        ORDER,
        {
            "id": 7,
            "price": Decimal("1.50"),
            "at": datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC),
            "lines": [Struct(line, {"n": 1})],
            "by": {1: "a", 2: None},
        },
    )


@pytest.mark.slow
def test_a_registry_that_is_away_is_tried_again() -> None:
    made = AvroConverter()
    made.configure(NOWHERE, False)
    with pytest.raises(RetriableException):
        made.to_connect_data("t", framed(1, b""))
    made.close()


@pytest.fixture(scope="module")
def registry_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with LocalBroker() as broker:
        log = tmp_path_factory.mktemp("registry") / "log"
        where = ("--bootstrap-servers", broker.bootstrap_servers, "--http-port", "0")
        program = Program(log, "schemas.registry", *where)
        try:
            yield program.wait_ready()
        finally:
            program.end(kill=True)


@pytest.mark.interop
def test_confluents_clients_read_what_it_writes_and_it_reads_what_they_write(
    registry_url: str,
) -> None:
    made = AvroConverter()
    made.configure({"schema.registry.url": registry_url}, False)
    written = made.from_connect_data("orders", ORDER, order())
    context = SerializationContext("orders", MessageField.VALUE)
    client = SchemaRegistryClient({"url": registry_url})
    theirs: Any = AvroDeserializer(client)(written, context)
    assert (theirs["id"], str(theirs["price"]), theirs["lines"]) == (7, "1.50", [{"n": 1}])
    latest = client.get_latest_version("orders-value")
    text = latest.schema.schema_str if latest.schema is not None else None
    back = AvroSerializer(client, text)(theirs, context)
    assert back is not None
    assert comparable(made.to_connect_data("orders", back).value) == comparable(order())
    made.close()
    client.close()


@pytest.mark.interop
def test_confluents_client_reads_what_the_json_schema_converter_writes(registry_url: str) -> None:
    money = Schema.struct(
        {"id": Schema.int64(), "price": Schema.decimal(2), "note": Schema.string(optional=True)},
        name="Money",
    )
    made = JsonSchemaConverter()
    told = {"schema.registry.url": registry_url, "decimal.format": "NUMERIC"}
    made.configure(told, False)
    value = Struct(money, {"id": 7, "price": Decimal("1.50")})
    written = made.from_connect_data("money", money, value)
    assert written is not None
    client = SchemaRegistryClient({"url": registry_url})
    latest = client.get_latest_version("money-value").schema
    assert latest is not None
    context = SerializationContext("money", MessageField.VALUE)
    # It checks the value by the schema.
    theirs: Any = JSONDeserializer(latest.schema_str, schema_registry_client=client)(
        written, context
    )
    assert theirs == {"id": 7, "price": 1.5, "note": None}
    back = made.to_connect_data("money", written)
    assert (back.schema, back.value) == (money, value)
    client.close()
    made.close()
