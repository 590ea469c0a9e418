"""Avro of strangers: a few bytes neither end the process nor stop it."""

import io
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_writer

from common.registry.avro_reading import avro_reader
from common.registry.wire import EventReader, MalformedEventError

EMPTY = {"type": "record", "name": "Empty", "fields": []}


def record(*kinds: Any) -> dict[str, Any]:
    fields = [{"name": f"f{number}", "type": kind} for number, kind in enumerate(kinds)]
    return {"type": "record", "name": "R", "fields": fields}


CHAIN = [
    {"type": "record", "name": f"R{number}", "fields": [{"name": "f", "type": kind}]}
    for number, kind in enumerate(["int", *(f"R{number}" for number in range(2_000))])
]


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        (record(["null", "R"]), b"\2" * 1_000_000),
        (record(["null", "R"]), b"\2" * 20_000 + b"\0"),
        (record({"type": "array", "items": "R"}), b"\2" * 1_000_000),
        (record({"type": "map", "values": "R"}), b"\2\2a" * 1_000_000),
        (record("R"), b""),
        (["null", *CHAIN], b"\xa2\x1f\2"),
    ],
)
def test_a_value_that_is_nested_without_end_is_refused(schema: Any, data: bytes) -> None:
    with pytest.raises(RecursionError):
        avro_reader(parse_schema(schema))(data)


@pytest.mark.parametrize(
    "items",
    [
        "null",
        EMPTY,
        record("null", EMPTY),
        {"type": "fixed", "name": "F", "size": 0},
        record({"type": "record", "name": "S", "fields": [{"name": "s", "type": "S"}]}),
    ],
)
def test_an_array_without_end_is_not_read(items: Any) -> None:
    for schema in ({"type": "array", "items": items}, record({"type": "array", "items": items})):
        with pytest.raises((ValueError, RecursionError)):
            avro_reader(parse_schema({**schema, "name": "Outer"}))(b"\x80\x80\x80\x80\x80\x40\0")


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (record(["null", "R"]), {"f0": {"f0": {"f0": None}}}),
        (
            record({"type": "array", "items": ["null", "int"]}, "bytes"),
            {"f0": [None, 1], "f1": b""},
        ),
        ({"type": "array", "items": "null"}, [None] * 1000),
        ({"type": "array", "items": {"type": "array", "items": EMPTY}}, [[{}], [{}, {}]]),
        (record({"type": "map", "values": "null"}, EMPTY), {"f0": {"a": None}, "f1": {}}),
        ({"type": "array", "items": {"type": "array", "items": "boolean"}}, [[True], []]),
    ],
)
def test_all_others_are_read_as_they_were_written(schema: Any, value: Any) -> None:
    parsed, out = parse_schema(schema), io.BytesIO()
    schemaless_writer(out, parsed, value)
    assert avro_reader(parsed)(b"head" + out.getvalue(), 4) == value


@pytest.mark.parametrize("schema", [record({"type": "array", "items": "null"}), {"type": "no"}])
def test_an_event_of_a_schema_that_is_not_read_is_malformed(schema: Any) -> None:
    reader = EventReader({"type": "record", "name": "R", "fields": []})
    reader.learn(7, schema)
    with pytest.raises(MalformedEventError):
        reader.decode(b"\0\0\0\0\7\x80\x80\x80\x80\x40\0")
