"""A skeleton is a value that its schema allows, and has all fields."""

import base64
import json
from typing import Any

import pytest

from console.records.skeletons import MAX_VALUES, skeleton
from rest_proxy.formats.avro import AvroCodec
from rest_proxy.formats.json_schema import JsonSchemaCodec

LINE = {"type": "record", "name": "Line", "fields": [{"name": "count", "type": "int"}]}


def record(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "Order", "namespace": "shop", "fields": list(fields)}


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        ("string", ""),
        (record({"name": "id", "type": "long"}), {"id": 0}),
        (record({"name": "id", "type": "long", "default": 7}), {"id": 7}),
        (record({"name": "x", "type": ["null", "string"], "default": None}), {"x": None}),
        (record({"name": "x", "type": ["string", "null"]}), {"x": ""}),
        (
            record(
                {"name": "first", "type": LINE, "default": {"count": 3}},
                {"name": "lines", "type": {"type": "array", "items": "Line"}},
            ),
            {"first": {"count": 3}, "lines": [{"count": 0}]},
        ),
        (record({"name": "next", "type": ["null", "Order"]}), {"next": None}),
        (record({"name": "all", "type": {"type": "array", "items": "Order"}}), {"all": []}),
        (record({"name": "by", "type": {"type": "map", "values": "int"}}), {"by": {}}),
        (
            record(
                {"name": "s", "type": {"type": "enum", "name": "S", "symbols": ["NEW", "OLD"]}},
                {"name": "h", "type": {"type": "fixed", "name": "H", "size": 2}},
                {"name": "p", "type": {"type": "bytes", "logicalType": "decimal", "precision": 4}},
            ),
            {"s": "NEW", "h": "\0\0", "p": ""},
        ),
    ],
)
def test_a_value_of_avro_can_be_written(schema: Any, wanted: Any) -> None:
    codec = AvroCodec(json.dumps(schema))
    value = skeleton("avro", codec.schema)
    assert value == wanted
    assert codec.encode(value) is not None


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        ({"type": "string", "minLength": 2}, "xx"),
        ({"type": "integer", "exclusiveMinimum": 3}, 4),
        ({"enum": ["a", "b"]}, "a"),
        ({"const": [1]}, [1]),
        ({"type": ["string", "null"], "format": "date"}, "2000-01-01"),
        (
            {
                "properties": {
                    "id": {"type": "number", "minimum": 5},
                    "of": {"$ref": "#/$defs/a~1b"},
                },
                "$defs": {"a/b": {"type": "array", "items": {"type": "boolean"}, "minItems": 2}},
                "required": ["id", "of"],
            },
            {"id": 5, "of": [False, False]},
        ),
        ({"anyOf": [{"type": "null"}, {"type": "string"}]}, None),
        (
            {
                "allOf": [{"properties": {"a": {"default": 1}}}],
                "properties": {"b": {"type": "object"}},
            },
            {"a": 1, "b": {}},
        ),
    ],
)
def test_a_value_of_a_json_schema_can_be_written(schema: Any, wanted: Any) -> None:
    codec = JsonSchemaCodec(json.dumps(schema))
    value = skeleton("jsonschema", codec.schema)
    assert value == wanted
    assert codec.encode(value)


def test_a_message_of_protobuf_can_be_written() -> None:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    from rest_proxy.formats.protobuf import ProtobufCodec

    file = FileDescriptorProto(name="a.proto", syntax="proto3", package="shop")
    file.enum_type.add(name="State").value.add(name="NEW", number=0)
    message = file.message_type.add(name="Order")
    repeated = Field.LABEL_REPEATED
    message.field.add(name="id", number=1, type=Field.TYPE_INT64)
    message.field.add(name="state", number=2, type=Field.TYPE_ENUM, type_name=".shop.State")
    message.field.add(name="names", number=3, type=Field.TYPE_STRING, label=repeated)
    own = {"type": Field.TYPE_MESSAGE, "type_name": ".shop.Order"}
    message.field.add(name="parts", number=4, label=repeated, **own)
    message.oneof_decl.add(name="how")
    message.field.add(name="by_card", number=5, type=Field.TYPE_BOOL, oneof_index=0)
    message.field.add(name="by_cash", number=6, type=Field.TYPE_BOOL, oneof_index=0)
    codec = ProtobufCodec(base64.b64encode(file.SerializeToString()).decode())
    value = skeleton("protobuf", codec.schema)
    assert value == {"id": 0, "state": "NEW", "names": [""], "parts": [], "by_card": False}
    assert codec.encode(value)


def test_a_hostile_schema_gives_a_short_skeleton() -> None:
    nested: Any = {"type": "string"}
    for _ in range(60):
        nested = {"type": "object", "properties": dict.fromkeys("abc", nested)}
    assert len(json.dumps(skeleton("jsonschema", nested))) < 20 * MAX_VALUES
    loop = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}
    assert skeleton("jsonschema", loop) is None
    assert skeleton("jsonschema", {"$ref": "https://example.com/x"}) is None
    for odd in (True, {"type": []}, {"properties": {"a": 7}}, {"items": 7, "type": "array"}):
        skeleton("jsonschema", odd)
