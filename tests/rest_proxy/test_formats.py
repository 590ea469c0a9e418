"""Formats with a schema: JSON to bytes and back."""

import base64
import json
from io import BytesIO
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_reader
from hypothesis import given
from hypothesis import strategies as st

from rest_proxy.formats import Codec, FormatError
from rest_proxy.formats.avro import AvroCodec
from rest_proxy.formats.json_schema import JsonSchemaCodec
from rest_proxy.formats.wire import framed, unframed

TREE = {
    "type": "record",
    "name": "n.Tree",
    "fields": [
        {"name": "label", "type": ["null", "string", "long"], "default": None},
        {"name": "colour", "type": {"type": "enum", "name": "C", "symbols": ["RED"]},
         "default": "RED"},
        {"name": "raw", "type": "bytes", "default": "\u00ff"},
        {"name": "id", "type": {"type": "fixed", "name": "Id", "size": 2}, "default": "ab"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 0},
        {"name": "share", "type": "double", "default": 0.5},
        {"name": "counts", "type": {"type": "map", "values": ["int", "Tree"]}, "default": {}},
        {"name": "children", "type": {"type": "array", "items": "Tree"}, "default": []},
        {"name": "next", "type": ["null", "Tree"], "default": None},
    ],
}  # fmt: skip
DEFAULTS: dict[str, Any] = {
    "label": None, "colour": "RED", "raw": "ÿ", "id": "ab", "at": 0, "share": 0.5, "counts": {},
    "children": [], "next": None,
}  # fmt: skip


def avro(schema: Any) -> AvroCodec:
    return AvroCodec(json.dumps(schema))


@pytest.mark.parametrize(
    ("given_json", "read"),
    [
        ({}, {}),
        ({"label": "a"}, {"label": {"string": "a"}}),
        ({"label": {"string": "a"}}, {"label": {"string": "a"}}),
        ({"label": 5}, {"label": {"long": 5}}),
        ({"next": {"label": "b"}}, {"next": {"n.Tree": {**DEFAULTS, "label": {"string": "b"}}}}),
        ({"next": {"Tree": {}}}, {"next": {"n.Tree": DEFAULTS}}),
        ({"counts": {"a": 1}}, {"counts": {"a": {"int": 1}}}),
        ({"children": [{}]}, {"children": [DEFAULTS]}),
        ({"share": 1}, {"share": 1.0}),
        ({"share": "NaN"}, {"share": "NaN"}),
        ({"share": "-Infinity"}, {"share": "-Infinity"}),
        ({"at": 5}, {"at": 5}),
    ],
)
def test_avro_takes_unions_in_both_forms_and_gives_the_tagged_one(
    given_json: Any, read: dict[str, Any]
) -> None:
    codec = avro(TREE)
    assert codec.decode(codec.encode(given_json)) == {**DEFAULTS, **read}


@pytest.mark.parametrize(
    ("given_json", "named"),
    [
        ({"label": True}, "value.label"),
        ({"colour": "BLUE"}, "BLUE"),
        ({"raw": "\u0400"}, "value.raw"),
        ({"id": "abc"}, "value.id"),
        ({"at": 2**63}, "value.at"),
        ({"at": True}, "value.at"),
        ({"share": "much"}, "value.share"),
        ({"share": 10**400}, "value.share"),
        ({"counts": [1]}, "value.counts"),
        ({"children": [{"label": {}}]}, r"value.children\[0\].label"),
        ({"nothing": 1}, "nothing"),
        ({"label": "\ud800"}, "value.label"),
        (5, "record n.Tree"),
    ],
)
def test_avro_names_the_place_of_what_does_not_fit(given_json: Any, named: str) -> None:
    with pytest.raises(FormatError, match=named):
        avro(TREE).encode(given_json)


def test_avro_writes_what_others_read() -> None:
    data = avro(TREE).encode({"label": "a", "children": [{"label": 7}]})
    read = schemaless_reader(BytesIO(data), parse_schema(TREE), None)
    assert isinstance(read, dict)
    assert (read["label"], read["children"][0]["label"]) == ("a", 7)


def test_avro_of_references() -> None:
    inner = json.dumps({"type": "record", "name": "n.I", "fields": [{"name": "x", "type": "int"}]})
    middle = json.dumps({"type": "record", "name": "M", "namespace": "n", "fields": [
        {"name": "i", "type": ["null", "I"]}, {"name": "again", "type": "n.I"}]})  # fmt: skip
    outer = json.dumps({"type": "array", "items": "n.M"})
    codec = AvroCodec(outer, [inner, middle])
    value = [{"i": {"n.I": {"x": 1}}, "again": {"x": 2}}]
    assert codec.decode(codec.encode(value)) == value
    assert codec.decode(codec.encode([{"i": {"x": 1}, "again": {"x": 2}}])) == value
    with pytest.raises(FormatError):
        AvroCodec(outer)


DEEP: Any = {}
for _ in range(5000):
    DEEP = {"next": DEEP}


@pytest.mark.parametrize("data", [DEEP, {"children": [DEEP]}])
def test_what_is_nested_too_deeply_is_refused(data: Any) -> None:
    with pytest.raises(FormatError):
        avro(TREE).encode(data)


@pytest.mark.parametrize("text", ["", "{", "[]x", '{"type": "record"}', '"nothing"', "5", "null"])
def test_texts_that_are_no_avro_schema(text: str) -> None:
    with pytest.raises(FormatError):
        AvroCodec(text)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    codecs: list[Codec] = [avro(TREE), JsonSchemaCodec("{}")]
    for codec in codecs:
        try:
            codec.decode(data)
        except FormatError:
            pass


def test_json_schema_says_where_data_breaks_it() -> None:
    codec = JsonSchemaCodec('{"properties": {"n": {"type": "integer"}}, "title": "N"}')
    assert (codec.record_name, codec.encode({"n": 1})) == ("N", b'{"n":1}')
    with pytest.raises(FormatError, match=r"\$\.n: 'a' is not of type 'integer'"):
        codec.encode({"n": "a"})


def test_json_schema_finds_references_by_name_and_fetches_none() -> None:
    text = '{"properties": {"n": {"$ref": "inner.json"}}}'
    with pytest.raises(FormatError):
        JsonSchemaCodec(text, {"inner.json": '{"type": "integer"}'}).encode({"n": "a"})
    for other in ("http://127.0.0.1:9/x.json", "file:///etc/passwd"):
        codec = JsonSchemaCodec(text.replace("inner.json", other))
        with pytest.raises(FormatError, match="refers to what is not there"):
            codec.encode({"n": 1})


@pytest.mark.parametrize("text", ["", "{", '{"type": 5}', '{"pattern": "("}'])
def test_texts_that_are_no_json_schema(text: str) -> None:
    with pytest.raises(FormatError):
        JsonSchemaCodec(text).encode("a")


def test_the_wire_format() -> None:
    assert unframed(framed(7, b"abc")) == (7, b"abc")
    for data in (b"", b"\0\0\0\0", b"\1\0\0\0\1abc"):
        with pytest.raises(FormatError):
            unframed(data)


@pytest.mark.parametrize("depth", [40, 200])
def test_an_avro_schema_cannot_make_a_small_value_take_for_ever(depth: int) -> None:
    """The first doubles what fails at each level, the second the defaults of each level."""
    branches = ["A", {"type": "record", "name": "B", "fields": [{"name": "f", "type": ["A", "B"]}]}]
    unions = {"type": "record", "name": "A", "fields": [{"name": "f", "type": branches}]}
    value: Any = {"f": 1}
    for _ in range(depth):
        value = {"f": value}
    with pytest.raises(FormatError):
        AvroCodec(json.dumps(unions)).encode(value)
    kind: Any = "int"
    for number in range(depth):
        own: Any = 1 if number == 0 else {}
        fields = [
            {"name": name, "type": kind if name == "a" or number == 0 else f"D{number - 1}"}
            | {"default": own}
            for name in "ab"
        ]
        kind = {"type": "record", "name": f"D{number}", "fields": fields}
    with pytest.raises(FormatError):
        AvroCodec(json.dumps(kind)).encode({})


def test_protobuf_has_the_names_of_its_schema() -> None:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

    from rest_proxy.formats.protobuf import ProtobufCodec

    file = FileDescriptorProto(name="a.proto", syntax="proto3")
    message = file.message_type.add(name="Place")
    for number, name in enumerate(("street_name", "houseNumber"), 1):
        message.field.add(name=name, number=number, type=FieldDescriptorProto.TYPE_STRING)
    codec = ProtobufCodec(base64.b64encode(file.SerializeToString()).decode())
    for names in (("street_name", "houseNumber"), ("streetName", "houseNumber")):
        sent = codec.encode(dict(zip(names, ("a", "b"), strict=True)))
        assert codec.decode(sent) == {"street_name": "a", "houseNumber": "b"}
