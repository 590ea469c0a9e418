"""AvroConverter: what comes back is what went in, and Confluent's clients understand it."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema as Registered
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import given, settings
from hypothesis import strategies as st

from connect.registry_converters.avro import AvroConverter
from connect.registry_converters.avro_schema import AvroForms, avro_of, connect_of
from connect.registry_converters.json_schema import JsonSchemaConverter
from connect.registry_converters.registry import framed
from millstream.connect import DataException, RetriableException, Schema, Struct
from millstream.testing import LocalBroker
from tests.lib.connect_values import schemas_and_values
from tests.lib.pipeline_processes import Program

NOWHERE = {"schema.registry.url": "http://127.0.0.1:1"}
ROOT = Path(__file__).parents[3]


class InMemory:
    """A registry in one list."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def subject(self, topic: str, record_name: str | None) -> str:
        return f"{topic}-{record_name}"

    def chosen(self, subject: str, kind: str) -> None:
        """Each value has its own schema."""

    def id_of(self, subject: str, text: str, kind: str) -> int:
        self.texts.append(text)
        return len(self.texts) - 1

    def schema_of(self, schema_id: int) -> tuple[str, str]:
        if schema_id >= len(self.texts):
            raise DataException("no such schema")
        return self.texts[schema_id], "AVRO"


def converter(**more: str) -> AvroConverter:
    made = AvroConverter()
    told = {name.replace("_", "."): value for name, value in more.items()}
    made.configure({**NOWHERE, **told}, False)
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
        if not any(word in str(error) for word in ("not valid in Avro", "scale", "called")):
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


NESTED = {
    "type": "record",
    "name": "N",
    "fields": [
        {"name": "a", "type": "int", "default": 7},
        {"name": "en", "type": ["null", "string"], "default": None},
    ],
}


@pytest.mark.parametrize(
    ("default", "expected"),
    [
        ({"a": 1, "en": None}, {"a": 1, "en": None}),
        ({"en": None}, {"a": 7, "en": None}),
        ({}, {"a": 7, "en": None}),
    ],
)
def test_a_record_field_may_have_a_default(default: Any, expected: Any) -> None:
    schema = connect_of(
        {
            "type": "record",
            "name": "R",
            "fields": [{"name": "f", "type": NESTED, "default": default}],
        }
    )
    found = schema.fields[0].schema.default
    assert {field.name: one for field, one in found.items()} == expected


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        (NESTED, {"a": "text"}),
        (NESTED, {"of": "another"}),
        (NESTED, []),
        ("int", "text"),
        ("int", 1 << 40),
        ("double", "none"),
        ({"type": "array", "items": "int"}, 7),
        ("bytes", "\u20ac"),
    ],
)
def test_a_default_that_is_none_of_its_type_is_left_out_with_a_warning(
    kind: Any, default: Any, caplog: pytest.LogCaptureFixture
) -> None:
    fields = [{"name": "f", "type": kind, "default": default}]
    schema = connect_of({"type": "record", "name": "R", "fields": fields})
    assert schema.fields[0].schema.default is None
    assert "invalid default of an Avro field field=f" in caplog.text


NULLABLE = Schema.struct(
    {"id": Schema.int32(), "name": Schema.string(optional=True, default="none")}, name="Nullable"
)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({}, "none"),
        ({"ignore_default_for_nullables": "true"}, None),
        ({"replace_null_with_default": "false"}, None),
    ],
)
def test_a_null_with_a_default_is_written_as_the_settings_say(
    told: dict[str, str], expected: str | None
) -> None:
    made = converter(**told)
    written = made.from_connect_data("t", NULLABLE, Struct(NULLABLE, {"id": 1}))
    back = made.to_connect_data("t", written).value
    assert back.put_values() == [1, expected]


def test_enums_and_branches_are_enhanced_only_when_it_is_said() -> None:
    enum = {"type": "enum", "name": "E", "namespace": "shop", "symbols": ["A", "B"]}
    avro = {
        "type": "record",
        "name": "R",
        "namespace": "shop",
        "fields": [{"name": "e", "type": enum}, {"name": "u", "type": ["int", "E"]}],
    }
    for forms, kind, branch in (
        (AvroForms(), "string", "E"),
        (AvroForms(is_enhanced=True), "enum", "shop.E"),
    ):
        schema = connect_of(avro, forms)
        assert [field.name for field in schema.fields[1].schema.fields] == ["int", branch]
        written = avro_of(Schema.struct({"e": schema.fields[0].schema}), forms)
        assert written["fields"][0]["type"]["type"] == kind


def test_without_meta_data_schemas_say_only_what_avro_has() -> None:
    text = json.dumps(avro_of(ORDER, AvroForms(has_meta_data=False)))
    assert '"connect.' not in text
    assert json.loads(text)["name"] == "shop.Order"


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


PEOPLE = Schema.struct({"id": Schema.int32(), "name": Schema.string(optional=True)}, name="people")
NEWEST = {
    "type": "record",
    "name": "people",
    "doc": "those who buy",
    "fields": [
        {"name": "name", "type": ["null", "string"], "default": None, "doc": "of the person"},
        {"name": "city", "type": "string", "default": "Ulm"},
        {"name": "id", "type": "long"},
    ],
}


@pytest.mark.interop
@pytest.mark.parametrize("setting", ["use.latest.version", "use.schema.id"])
def test_without_registering_it_writes_with_the_schema_that_a_person_registered(
    registry_url: str, setting: str
) -> None:
    client = SchemaRegistryClient({"url": registry_url})
    topic = f"people-{setting}"
    schema_id = client.register_schema(f"{topic}-value", Registered(json.dumps(NEWEST), "AVRO"))
    chosen = {"use.latest.version": "true", "use.schema.id": str(schema_id)}
    told = {"schema.registry.url": registry_url, "auto.register.schemas": "false"}
    made = AvroConverter()
    made.configure({**told, setting: chosen[setting]}, False)
    value = Struct(PEOPLE, {"id": 1, "name": "x"})
    written = made.from_connect_data(topic, PEOPLE, value)
    assert written is not None
    assert int.from_bytes(written[1:5], "big") == schema_id
    context = SerializationContext(topic, MessageField.VALUE)
    # Confluent's own serializer, told the same, writes the same bytes.
    of_client = {"auto.register.schemas": False, "use.latest.version": True}
    theirs = {"name": "x", "city": "Ulm", "id": 1}
    assert AvroDeserializer(client)(written, context) == theirs
    assert AvroSerializer(client, json.dumps(NEWEST), conf=of_client)(theirs, context) == written
    # What could not be read with it is refused, unless that is allowed.
    other = Schema.struct({"id": Schema.string()}, name="people")
    with pytest.raises(DataException, match=r"not readable with schema|latest\.compatibility"):
        made.from_connect_data(topic, other, Struct(other, {"id": "1"}))
    lenient = AvroConverter()
    strict = {"latest.compatibility.strict": "false", "id.compatibility.strict": "false"}
    lenient.configure({**told, setting: chosen[setting], **strict}, False)
    few = Schema.struct({"id": Schema.int64(), "more": Schema.string()}, name="another")
    assert lenient.from_connect_data(topic, few, Struct(few, {"id": 1, "more": "x"})) is not None
    assert client.get_versions(f"{topic}-value") == [1]
    for each in (made, lenient, client):
        each.close()


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
