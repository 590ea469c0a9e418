"""ProtobufConverter: what comes back is what went in, and Confluent's client understands it."""

import base64
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, timestamp_pb2
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given, settings
from hypothesis import strategies as st

from connect.registry_converters.protobuf import ProtobufConverter, read_places
from connect.registry_converters.protobuf_schema import TAG, connect_of, message_of, proto_of
from connect.registry_converters.registry import framed
from millstream.connect import DataException, Schema, Struct
from millstream.connect.data.schema import Type
from millstream.testing import LocalBroker
from tests.connect.registry_converters.test_avro_converter import NOWHERE, InMemory
from tests.lib.connect_values import schemas_and_values
from tests.lib.pipeline_processes import Program

Field: Any = descriptor_pb2.FieldDescriptorProto
REFUSED = (
    *("root schema", "not valid in Protobuf", "Invalid Protobuf value", "cannot have", "map key"),
    *("does not allow null", "are called", "mismatching"),
)


class ProtobufInMemory(InMemory):
    def schema_of(self, schema_id: int) -> tuple[str, str]:
        text, _ = super().schema_of(schema_id)
        return text, "PROTOBUF"


def converter(**more: str) -> ProtobufConverter:
    made = ProtobufConverter()
    made.configure({**NOWHERE, **more}, False)
    made._registry = ProtobufInMemory()  # type: ignore[assignment]
    return made


def as_read(schema: Schema, value: Any) -> Any:
    """Return a value as Protobuf gives it back: what is repeated is never null."""
    match schema.type:
        case Type.ARRAY if schema.value_schema is not None:
            return [as_read(schema.value_schema, one) for one in value or ()]
        case Type.MAP if schema.value_schema is not None:
            return {key: as_read(schema.value_schema, one) for key, one in (value or {}).items()}
        case Type.STRUCT if value is not None:
            return [(field.name, as_read(field.schema, one)) for field, one in value.items()]
        case _:
            return value


@settings(max_examples=60)
@given(
    st.dictionaries(st.text("abcXYZ_", min_size=1, max_size=5), schemas_and_values(), max_size=4)
)
def test_what_is_written_is_read(fields: dict[str, tuple[Schema, Any]]) -> None:
    schema = Schema.struct({name: schema for name, (schema, _) in fields.items()}, name="t.Root")
    value = Struct(schema, {name: value for name, (_, value) in fields.items()})
    made = converter()
    try:
        written = made.from_connect_data("t", schema, value)
    except DataException as error:
        if not any(word in str(error) for word in REFUSED):
            raise
        return
    assert written is not None
    back = made.to_connect_data("t", written)
    assert as_read(back.schema or schema, back.value) == as_read(schema, value)
    assert made.from_connect_data("t", back.schema, back.value) is not None


LINE = Schema.struct({"n": Schema.int32(), "note": Schema.string(optional=True)}, name="shop.Line")
ORDER = Schema.struct(
    {
        "id": Schema.int64(),
        "small": Schema.int8(),
        "price": Schema.decimal(2, optional=True),
        "at": Schema.timestamp(optional=True),
        "day": Schema.date(optional=True),
        "hour": Schema.time(optional=True),
        "lines": Schema.array(LINE),
        "by_number": Schema.map(Schema.int32(), LINE),
        "none": Schema.int32(optional=True),
        "zero": Schema.int32(optional=True),
    },
    name="shop.Order",
)


def order() -> Struct:
    line = Struct(LINE, {"n": 1, "note": "a"})
    return Struct(
        ORDER,
        {
            "id": 7,
            "small": -8,
            "price": Decimal("-1.50"),
            "at": datetime(1969, 12, 31, 23, 59, 59, 678_000, tzinfo=UTC),
            "day": date(2026, 1, 2),
            "hour": time(3, 4, 5, 678_000),
            "lines": [line, Struct(LINE, {"n": 2})],
            "by_number": {3: line},
            "zero": 0,
        },
    )


def test_a_schema_and_its_values_come_back_as_they_were() -> None:
    made = converter()
    written = made.from_connect_data("orders", ORDER, order())
    assert written is not None
    assert written[5:6] == b"\0"
    back = made.to_connect_data("orders", written)
    assert (back.schema, back.value) == (ORDER, order())
    assert back.value["none"] is None
    assert back.value["zero"] == 0


def test_without_optional_fields_a_null_is_zero() -> None:
    made = converter(**{"optional.for.nullables": "false"})
    written = made.from_connect_data("lines", LINE, Struct(LINE, {"n": 1}))
    assert written is not None
    assert made.to_connect_data("lines", written).value["note"] == ""


def test_a_number_of_a_field_that_is_not_its_place_is_kept() -> None:
    schema = Schema.struct(
        {"b": Schema.string(parameters={TAG: "7"}), "a": Schema.int32(parameters={TAG: "3"})},
        name="T",
    )
    file = proto_of(schema, has_optional=True)
    assert {field.name: field.number for field in file.message_type[0].field} == {"b": 7, "a": 3}
    assert connect_of(message_of(file, [0]), file).fields[0].schema.parameters[TAG] == "7"


def foreign() -> Any:
    """Make a file as somebody else would: a oneof, an enum, a message within, proto2's required."""
    file = descriptor_pb2.FileDescriptorProto(name="f.proto", package="p", syntax="proto2")
    file.enum_type.add(name="Colour").value.add(name="RED", number=0)
    file.message_type.add(name="First")
    second = file.message_type.add(name="Second")
    inner = second.nested_type.add(name="Inner")
    inner.oneof_decl.add(name="either")
    for number, (name, kind) in enumerate((("s", "STRING"), ("u", "UINT32")), 1):
        field = inner.field.add(name=name, number=number, label=Field.LABEL_OPTIONAL)
        field.type, field.oneof_index = getattr(Field, f"TYPE_{kind}"), 0
    field = inner.field.add(name="colour", number=3, label=Field.LABEL_REQUIRED)
    field.type, field.type_name = Field.TYPE_ENUM, ".p.Colour"
    return file


def test_a_schema_of_somebody_else_is_understood() -> None:
    file = foreign()
    message = message_of(file, [1, 0])
    schema = connect_of(message, file)
    assert schema == Schema.struct(
        {
            "s": Schema.string(optional=True),
            "u": Schema.int64(optional=True),
            "colour": Schema.string(),
        },
        name="p.Second.Inner",
    )
    made = converter()
    made._registry.id_of("s", base64.b64encode(file.SerializeToString()).decode(), "PROTOBUF")
    body = GetMessageClass(message)(u=4_000_000_000, colour=0).SerializeToString()
    back = made.to_connect_data("t", framed(0, bytes((4, 2, 0)) + body))
    assert {field.name: one for field, one in back.value.items()} == {
        "s": None,
        "u": 4_000_000_000,
        "colour": "RED",
    }


def test_a_message_that_holds_itself_is_refused() -> None:
    file = descriptor_pb2.FileDescriptorProto(name="f.proto", syntax="proto3")
    field = file.message_type.add(name="T").field.add(name="t", number=1)
    field.type, field.type_name, field.label = Field.TYPE_MESSAGE, ".T", Field.LABEL_OPTIONAL
    with pytest.raises(DataException, match="is recursive"):
        connect_of(message_of(file, [0]), file)


@pytest.mark.parametrize("places", [[1], [0, 0], []])
def test_a_message_that_is_not_there_is_refused(places: list[int]) -> None:
    with pytest.raises(DataException):
        message_of(proto_of(LINE, has_optional=True), places)


@pytest.mark.parametrize(
    "schema",
    [
        Schema.string(),
        Schema.struct({"é": Schema.string()}, name="T"),
        Schema.struct({"a_b": Schema.string(), "aB": Schema.string()}, name="T"),
        Schema.struct({"a": Schema.array(Schema.array(Schema.string()))}, name="T"),
        Schema.struct({"a": Schema.map(Schema.float64(), Schema.string())}, name="T"),
        Schema.struct({"a": Schema.int32(parameters={TAG: "0"})}, name="T"),
        Schema.struct({"a": Schema.int32()}, name="a b"),
    ],
)
def test_what_protobuf_has_not_is_refused(schema: Schema) -> None:
    with pytest.raises(DataException):
        converter()._write_schema(schema)


@settings(max_examples=50)
@given(st.binary(max_size=30))
def test_garbage_is_refused(body: bytes) -> None:
    made = converter()
    made.from_connect_data("t", ORDER, order())
    for value in (body, framed(0, body), framed(0, b"\0" + body)):
        try:
            assert isinstance(made.to_connect_data("t", value).value, Struct)
        except DataException:
            pass


@pytest.mark.parametrize(
    ("body", "places"), [(b"\0", (0,)), (b"\x02\x02", (1,)), (b"\x04\x00\x80\x02", (0, 128))]
)
def test_the_place_of_a_message_is_read(body: bytes, places: tuple[int, ...]) -> None:
    assert read_places(body + b"more") == (places, len(body))


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
def test_confluents_client_reads_what_it_writes_and_it_reads_what_that_writes(
    registry_url: str,
) -> None:
    made = ProtobufConverter()
    made.configure({"schema.registry.url": registry_url}, False)
    written = made.from_connect_data("orders", ORDER, order())
    assert written is not None
    context = SerializationContext("orders", MessageField.VALUE)
    client = SchemaRegistryClient({"url": registry_url})
    file = proto_of(ORDER, has_optional=True)
    their_class = GetMessageClass(message_of(file, [0]))
    told = {"use.deprecated.format": False}
    theirs: Any = ProtobufDeserializer(their_class, told, client)(written, context)
    assert (theirs.id, theirs.small, theirs.lines[0].note) == (7, -8, "a")
    assert (theirs.at.seconds, theirs.at.nanos) == (-1, 678_000_000)
    assert (theirs.HasField("none"), theirs.HasField("zero")) == (False, True)

    stamp = timestamp_pb2.Timestamp(seconds=1, nanos=2_000_000)
    back = ProtobufSerializer(timestamp_pb2.Timestamp, client, told)(stamp, context_of("stamps"))
    assert back is not None
    read = made.to_connect_data("stamps", back).value
    assert (read["seconds"], read["nanos"]) == (1, 2_000_000)
    made.close()
    client.close()


def context_of(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)
