"""Random Connect schemas with values, and JSON, from a seed, for comparisons with Kafka.

A map has at most one entry, because Java's maps have no order. Floats are those that Java before 19
writes with as few digits as Python (JDK-4511638).
"""

import datetime
import json
import random
from collections.abc import Callable
from typing import Any

from millstream.connect.data.logical import decimal_of
from millstream.connect.data.schema import Schema, Struct

Pair = tuple[Schema, Any]
NAMES = ("a", "b", "id", "note", "name.with.dots", "ö", "schema", "payload", "null")
_LETTERS = ["a", "Z", "7", " ", '"', "\\", "/", "\n", "\t", "\x00", "\x1f", "\x7f", "é", "ß", "€",
            "\u2028", "\ufeff", "😀", "{", "]", ",", ":"]  # fmt: skip
_TEXTS = ["", "null", "true", "12", "-1.5", "1e3", "[1,2]", '{"a":"b"}', "2023-11-14", "NaN",
          "2023-11-14T22:13:20.123Z", "300.7", "999999999999999999999"]  # fmt: skip
_FLOATS = [0.0, 1.0, -1.5, 0.125, 300.7, 1e7, 1.0e-3, 1.25e10, -3.9e10, 123456.75]
_INSERTED = [b"{", b"]", b'"', b"1", b"\xff", b"\x00", b" "]
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def text(source: random.Random) -> str:
    """Return a string, sometimes one that looks like another type."""
    if source.random() < 0.3:
        return source.choice(_TEXTS)
    return "".join(source.choices(_LETTERS, k=source.randint(0, 8)))


def whole(source: random.Random, bits: int) -> int:
    """Return an integer, often the first or last of its type."""
    limit = 1 << (bits - 1)
    edges = [0, 1, -1, limit - 1, -limit]
    is_edge = source.random() < 0.3
    return source.choice(edges) if is_edge else source.randrange(-limit, limit)


def _decimal(source: random.Random) -> tuple[Schema, Any]:
    scale = source.choice([0, 2, 2, 9, -3])
    return Schema.decimal(scale), decimal_of(whole(source, source.choice([8, 40, 100])), scale)


def _moment(source: random.Random) -> datetime.datetime:
    """Return a date after 1 January 1970; before it, Kafka's header converter writes no dates."""
    return _EPOCH + datetime.timedelta(milliseconds=source.randrange(10**8, 4 * 10**12))


_SIMPLE: dict[str, tuple[Callable[..., Schema], Callable[[random.Random], Any]]] = {
    "int8": (Schema.int8, lambda source: whole(source, 8)),
    "int16": (Schema.int16, lambda source: whole(source, 16)),
    "int32": (Schema.int32, lambda source: whole(source, 32)),
    "int64": (Schema.int64, lambda source: whole(source, 64)),
    "float32": (Schema.float32, lambda source: source.choice([0.0, 1.5, -3.25, 1e3, 0.125])),
    "float64": (Schema.float64, lambda source: source.choice(_FLOATS)),
    "boolean": (Schema.boolean, lambda source: source.random() < 0.5),
    "string": (Schema.string, text),
    "bytes": (Schema.bytes, lambda source: source.randbytes(source.randint(0, 6))),
    "date": (Schema.date, lambda source: _moment(source).date()),
    "time": (Schema.time, lambda source: _moment(source).time()),
    "timestamp": (Schema.timestamp, _moment),
}


def simple(source: random.Random, kind: str | None = None) -> Pair:
    """Return a scalar value, sometimes null, optional or with a default."""
    kind = kind or source.choice([*_SIMPLE, "decimal"])
    if kind == "decimal":
        schema, value = _decimal(source)
        return schema, value
    make, values = _SIMPLE[kind]
    is_optional = source.random() < 0.4
    traits: dict[str, Any] = {"optional": is_optional}
    if source.random() < 0.25:
        traits["default"] = values(source)
    if source.random() < 0.15:
        traits["doc"] = text(source)
    return make(**traits), None if is_optional and source.random() < 0.4 else values(source)


def pair(source: random.Random, depth: int = 2) -> Pair:
    """Return a value of any type, nested up to a depth."""
    kind = source.choice(["simple", "simple", "struct", "array", "map"])
    if depth == 0 or kind == "simple":
        return simple(source)
    if kind == "struct":
        return struct(source, {name: pair(source, depth - 1) for name in names(source)})
    inner, value = pair(source, depth - 1)
    if kind == "array":
        return Schema.array(inner), [value] * source.randint(0, 3)
    key_schema, key = simple(source, source.choice(["string", "string", "int32", "boolean"]))
    return Schema.map(key_schema, inner), {key: value} if source.random() < 0.8 else {}


def names(source: random.Random) -> list[str]:
    return source.sample(NAMES, source.randint(0, 4))


def struct(source: random.Random, fields: dict[str, Pair]) -> Pair:
    """Return a struct of these fields, whose schema has a name, a version and all other parts."""
    schema = Schema.struct(
        {name: schema for name, (schema, _) in fields.items()},
        name=source.choice([None, "shop.Order", "é"]),
        version=source.choice([None, 1, 7]),
        doc=source.choice([None, "An order."]),
        optional=source.random() < 0.3,
        parameters={"p": text(source)} if source.random() < 0.2 else {},
    )
    return schema, Struct(schema, {name: value for name, (_, value) in fields.items()})


def plain(source: random.Random, depth: int = 2) -> Any:
    """Return a JSON value without a schema; objects have at most one field."""
    kinds = [
        lambda: text(source),
        lambda: whole(source, source.choice([8, 32, 64])),
        lambda: source.choice(_FLOATS),
        lambda: source.choice([True, False, None]),
    ]
    if depth == 0 or source.random() < 0.4:
        return source.choice(kinds)()
    if source.random() < 0.5:
        return [plain(source, depth - 1) for _ in range(source.randint(0, 3))]
    return {source.choice(NAMES): plain(source, depth - 1)}


def garbled(source: random.Random, good: bytes) -> bytes:
    """Return valid bytes with a change, truncated or extended."""
    spoilt = bytearray(good)
    for _ in range(source.randint(1, 3)):
        place = source.randint(0, len(spoilt))
        match source.choice(["change", "cut", "insert"]):
            case "change" if place < len(spoilt):
                spoilt[place] = source.randrange(256)
            case "cut":
                del spoilt[place : place + source.randint(1, 4)]
            case _:
                spoilt[place:place] = source.choice(_INSERTED)
    return bytes(spoilt)


def sorted_json(said: str | None) -> str | None:
    """Return JSON with sorted objects, and floats with the digits that all writers agree on."""
    if said is None:
        return None
    found = json.loads(
        said,
        parse_float=lambda one: f"float {float(one):.6g}",
        parse_int=lambda one: f"int {one}",
    )
    return json.dumps(found, sort_keys=True)
