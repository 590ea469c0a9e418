"""Convert PostgreSQL's values, which arrive as text, to Connect values. Does no IO.

The schema of a type is the one in Debezium's documentation ("data type mappings"); the settings
`*.handling.mode` and `time.precision.mode` choose among several. A value that does not fit its
schema is never changed but refused: ValueError, with a sentence that names the remedy. The texts
are in the formats of `datestyle=ISO`, `intervalstyle=postgres`, `bytea_output=hex`,
`lc_monetary=C` and `timezone=UTC`.
"""

import base64
import decimal
import json
import re
import struct
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from connect.connectors import temporal
from connect.connectors.postgresql.clocks import clock_codec
from connect.connectors.postgresql.types import Codec, Type
from millstream.connect import Schema, Struct
from millstream.connect.data.logical import (
    EXACT,
    decimal_of,
    integer_bytes,
    is_logical,
    unscaled,
)
from millstream.connect.data.logical import scale as scale_of_value
from millstream.connect.data.schema import Type as SchemaType

_BOUNDS: Final = re.compile(r"(?:\[[+-]?\d+:[+-]?\d+\])+=")
_QUOTED: Final = r'"((?:[^"\\]|\\.)*)"'
_ELEMENT: Final = {
    delimiter: re.compile(rf'{_QUOTED}|([^{{}}"{delimiter}]+)', re.DOTALL) for delimiter in ",;"
}
_PAIR: Final = re.compile(rf"{_QUOTED}=>(?:{_QUOTED}|(NULL))(?:, |$)", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


def elements_of(text: str, parse: Callable[[str], Any], delimiter: str = ",") -> list[Any]:
    """Return the elements of an array of one dimension.

    Raise ValueError for an array of several dimensions and for invalid text.
    """
    text = _BOUNDS.sub("", text, count=1)
    if not (text.startswith("{") and text.endswith("}")):
        raise ValueError(text)
    found: list[Any] = []
    element = _ELEMENT[delimiter]
    place, end = 1, len(text) - 1
    while place < end:
        match = element.match(text, place, end)
        if match is None:
            raise ValueError("an array of several dimensions")
        quoted, bare = match.groups()
        if quoted is not None:
            found.append(parse(_ESCAPED.sub(r"\1", quoted)))
        else:
            found.append(None if bare == "NULL" else parse(_ESCAPED.sub(r"\1", bare)))
        place = match.end()
        if place < end:
            if text[place] != delimiter:
                raise ValueError(text)
            place += 1
    return found


def pairs_of(text: str) -> dict[str, str | None]:
    """Return the keys and values of an hstore; raise ValueError."""
    found: dict[str, str | None] = {}
    place = 0
    while place < len(text):
        match = _PAIR.match(text, place)
        if match is None:
            raise ValueError(text)
        key, value, _ = match.groups()
        found[_ESCAPED.sub(r"\1", key)] = None if value is None else _ESCAPED.sub(r"\1", value)
        place = match.end()
    return found


_SPECIAL: Final = {
    "NaN": "NAN",
    "Infinity": "POSITIVE_INFINITY",
    "-Infinity": "NEGATIVE_INFINITY",
}
_POINT: Final = re.compile(r"\(([^,()]+),([^,()]+)\)")
_WKB: Final = struct.Struct("<BIdd")
"""A point as well-known binary: the order of bytes, the kind of geometry, x and y."""
_NO_LENGTH: Final = (1 << 31) - 1
_IDENTITY: Final = "give the table REPLICA IDENTITY FULL, so that the log has the value"

_VARIABLE_SCALE_NAME: Final = "io.debezium.data.VariableScaleDecimal"
_VARIABLE_SCALE: Final = {"scale": Schema.int32(), "value": Schema.bytes()}
_VARIABLE_SCALE_DOC: Final = "Variable scaled decimal"
_POINT_FIELDS: Final = {
    "x": Schema.float64(),
    "y": Schema.float64(),
    "wkb": Schema.bytes(optional=True),
    "srid": Schema.int32(optional=True),
}
_TEXTS: Final = {
    "json": "io.debezium.data.Json",
    "jsonb": "io.debezium.data.Json",
    "xml": "io.debezium.data.Xml",
    "uuid": "io.debezium.data.Uuid",
    "ltree": "io.debezium.data.Ltree",
    "tsvector": "io.debezium.data.Tsvector",
}
CHARACTERS: Final = frozenset({"text", "varchar", "bpchar", "char", "name", "citext"})
"""The types of which Debezium masks and truncates values."""
_KNOWN_TEXTS: Final = CHARACTERS | {
    *("inet", "cidr", "macaddr", "macaddr8"),
    *("int4range", "int8range", "numrange", "tsrange", "tstzrange", "daterange"),
}


class Modes(NamedTuple):
    """The settings that decide the schema and form of a value."""

    decimals: str = "precise"
    times: str = "adaptive"
    intervals: str = "numeric"
    binaries: str = "bytes"
    hstores: str = "json"
    money_digits: int = 2
    placeholder: bytes = b"__debezium_unavailable_value"
    has_unknown: bool = False
    """Whether a value of an unknown type becomes bytes instead of a string."""

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> "Modes":
        text: str = settings["unavailable.value.placeholder"]
        octets = text.removeprefix("hex:")
        return cls(
            settings["decimal.handling.mode"],
            settings["time.precision.mode"],
            settings["interval.handling.mode"],
            settings["binary.handling.mode"],
            settings["hstore.handling.mode"],
            settings["money.fraction.digits"],
            text.encode() if octets == text else bytes.fromhex(octets),
            settings["include.unknown.datatypes"],
        )


def codec_of(
    kind: Type, modes: Modes, *, optional: bool, has_optional_items: bool = False
) -> Codec:
    """Return the codec of a type.

    As in Debezium, the items of an array of an enum or of tsvector are required, unless the caller
    has met a null; those of all other arrays are optional.
    """
    if kind.element is not None:
        is_required = bool(kind.element.labels) or kind.element.name == "tsvector"
        are_optional = has_optional_items or not is_required
        return _array(kind, modes, optional=optional, are_items_optional=are_optional)
    if kind.labels:
        labels = {"allowed": ",".join(kind.labels)}
        name = "io.debezium.data.Enum"
        schema = Schema.string(optional=optional, name=name, version=1, parameters=labels)
        return Codec(schema, str)
    make = _MAKERS.get(kind.name)
    if make is not None:
        return make(kind, modes, optional)
    if modes.has_unknown and kind.name not in _KNOWN_TEXTS | _TEXTS.keys():
        return _binary(modes, str.encode, optional=optional)
    return _text(_TEXTS.get(kind.name), optional=optional)


def placeholder_of(codec: Codec, modes: Modes, *, is_uuid: bool = False) -> Any:
    """Return the placeholder for a large value that an update did not change.

    Raise ValueError if the schema has no value that can serve as a placeholder.
    """
    octets, schema = modes.placeholder, codec.schema
    text = octets.decode(errors="replace")
    found: Any = codec.placeholder
    if found is not None:
        return found
    match schema.type:
        case SchemaType.STRING:
            # The same as Java's UUID.nameUUIDFromBytes.
            found = str(uuid.UUID(bytes=_md5(octets), version=3)) if is_uuid else text
        case SchemaType.BYTES if is_logical(schema):
            found = decimal_of(int.from_bytes(octets, "big", signed=True), codec.scale)
        case SchemaType.BYTES:
            found = octets
        case SchemaType.MAP:
            found = {text: text}
        case SchemaType.STRUCT if schema.name == _VARIABLE_SCALE_NAME:
            found = Struct.of_valid(schema, [0, octets])
        case SchemaType.ARRAY:
            found = _placeholders(codec, modes)
        case _:
            raise ValueError(f"the log lacks it, and its type has no placeholder: {_IDENTITY}")
    return found


def _placeholders(codec: Codec, modes: Modes) -> list[Any]:
    """Return the placeholder of an array: its bytes as numbers, or one placeholder."""
    assert codec.element is not None, codec
    numbers = [octet - 256 if octet > 127 else octet for octet in modes.placeholder]
    match codec.element.schema.type:
        case SchemaType.INT16 | SchemaType.INT32 | SchemaType.INT64 if not is_logical(
            codec.element.schema
        ):
            return list(numbers)
        case SchemaType.FLOAT32 | SchemaType.FLOAT64:
            return [float(number) for number in numbers]
        case _:
            is_uuid = codec.element.schema.name == _TEXTS["uuid"]
            return [placeholder_of(codec.element, modes, is_uuid=is_uuid)]


def _md5(octets: bytes) -> bytes:
    import hashlib

    return hashlib.md5(octets, usedforsecurity=False).digest()


def _array(kind: Type, modes: Modes, *, optional: bool, are_items_optional: bool) -> Codec:
    assert kind.element is not None
    element = codec_of(kind.element, modes, optional=are_items_optional)
    parse, delimiter = element.parse, kind.delimiter

    def read(text: str) -> list[Any]:
        return elements_of(text, parse, delimiter)

    return Codec(Schema.array(element.schema, optional=optional), read, element=element)


def _text(name: str | None, *, optional: bool) -> Codec:
    if name is None:
        return Codec(Schema.string(optional=optional), str)
    return Codec(Schema.string(optional=optional, name=name, version=1), str)


# --- numbers ---


def _numeric(kind: Type, modes: Modes, optional: bool) -> Codec:
    if modes.decimals != "precise" or kind.modifier < 4:
        return _unscaled(modes, optional=optional)
    precision = {"connect.decimal.precision": str((kind.modifier - 4) >> 16)}
    return _scaled(scale_of(kind), precision, _finite, optional=optional)


def scale_of(kind: Type) -> int:
    """Return the scale of a numeric that has one."""
    scale = (kind.modifier - 4) & 0x7FF
    # Since PostgreSQL 15 the scale may be negative: eleven bits in two's complement.
    return scale - (0x800 if scale & 0x400 else 0)


def _scaled(
    scale: int, parameters: Mapping[str, str], parse: Callable[[str], Any], *, optional: bool
) -> Codec:
    unit = decimal.Decimal(1).scaleb(-scale, EXACT)

    def exact(text: str) -> decimal.Decimal:
        return _number(parse(text)).quantize(unit, context=EXACT)

    schema = Schema.decimal(scale, optional=optional, parameters=parameters)
    return Codec(schema, exact, scale=scale)


def _number(value: decimal.Decimal) -> decimal.Decimal:
    """Return a finite decimal; raise ValueError."""
    if not value.is_finite():
        raise ValueError("is no number")
    return value


def _unscaled(modes: Modes, *, optional: bool) -> Codec:
    match modes.decimals:
        case "double":
            return Codec(Schema.float64(optional=optional), float)
        case "string":
            return Codec(Schema.string(optional=optional), lambda text: _SPECIAL.get(text, text))
        case _:
            return _variable(optional=optional)


def _variable(*, optional: bool) -> Codec:
    schema = Schema.struct(
        _VARIABLE_SCALE,
        name=_VARIABLE_SCALE_NAME,
        version=1,
        optional=optional,
        doc=_VARIABLE_SCALE_DOC,
    )

    def exact(text: str) -> Struct:
        value = _finite(text)
        octets = integer_bytes(unscaled(value))
        return Struct.of_valid(schema, [scale_of_value(value), octets])

    return Codec(schema, exact)


def _finite(text: str) -> decimal.Decimal:
    if text in _SPECIAL:
        raise ValueError("is not a number: set decimal.handling.mode to string or double")
    return decimal.Decimal(text)


def _money(kind: Type, modes: Modes, optional: bool) -> Codec:
    del kind

    def parse(text: str) -> decimal.Decimal:
        sign = -1 if text.startswith(("-", "(")) else 1
        value = decimal.Decimal(re.sub(r"[^0-9.]", "", text)) * sign
        unit = decimal.Decimal(1).scaleb(-modes.money_digits)
        if value != value.quantize(unit, context=EXACT):
            raise ValueError("has more digits: set money.fraction.digits")
        return value

    match modes.decimals:
        case "double":
            return Codec(Schema.float64(optional=optional), lambda text: float(parse(text)))
        case "string":
            return Codec(Schema.string(optional=optional), lambda text: f"{parse(text):f}")
        case _:
            return _scaled(modes.money_digits, {}, parse, optional=optional)


# --- bytes ---


def _binary(modes: Modes, parse: Callable[[str], bytes], *, optional: bool) -> Codec:
    write = _WRITERS.get(modes.binaries)
    if write is None:
        return Codec(Schema.bytes(optional=optional), parse)

    def read(text: str) -> str:
        return write(parse(text))

    return Codec(Schema.string(optional=optional), read, placeholder=write(modes.placeholder))


_WRITERS: Final[dict[str, Callable[[bytes], str]]] = {
    "base64": lambda octets: base64.b64encode(octets).decode(),
    "base64-url-safe": lambda octets: base64.urlsafe_b64encode(octets).decode(),
    "hex": bytes.hex,
}


def _bytea(kind: Type, modes: Modes, optional: bool) -> Codec:
    del kind
    return _binary(modes, lambda text: bytes.fromhex(text.removeprefix("\\x")), optional=optional)


def _bits(kind: Type, modes: Modes, optional: bool) -> Codec:
    del modes
    if kind.name == "bit" and kind.modifier == 1:
        return Codec(Schema.boolean(optional=optional), lambda text: text == "1")
    length = {"length": str(kind.modifier if kind.modifier > 0 else _NO_LENGTH)}
    schema = Schema.bytes(
        optional=optional, name="io.debezium.data.Bits", version=1, parameters=length
    )

    def little_endian(text: str) -> bytes:
        return int(text or "0", 2).to_bytes((len(text) + 7) // 8, "little")

    return Codec(schema, little_endian)


# --- the rest ---


def _interval(kind: Type, modes: Modes, optional: bool) -> Codec:
    del kind
    if modes.intervals == "string":
        schema = Schema.string(optional=optional, name="io.debezium.time.Interval", version=1)
        return Codec(schema, lambda text: temporal.interval_in(text).as_iso())
    schema = Schema.int64(optional=optional, name="io.debezium.time.MicroDuration", version=1)

    def microseconds(text: str) -> int:
        found = temporal.interval_in(text).as_microseconds()
        if not -(1 << 63) <= found < 1 << 63:
            raise ValueError("does not fit into 64 bits: set interval.handling.mode to string")
        return found

    return Codec(schema, microseconds)


def _hstore(kind: Type, modes: Modes, optional: bool) -> Codec:
    del kind
    if modes.hstores == "map":
        value = Schema.string(optional=True)
        return Codec(Schema.map(Schema.string(), value, optional=optional), pairs_of)

    def as_json(text: str) -> str:
        return json.dumps(pairs_of(text), ensure_ascii=False, separators=(",", ":"))

    schema = Schema.string(optional=optional, name="io.debezium.data.Json", version=1)
    return Codec(schema, as_json)


def _point(kind: Type, modes: Modes, optional: bool) -> Codec:
    del kind, modes
    name = "io.debezium.data.geometry.Point"
    schema = Schema.struct(
        _POINT_FIELDS, name=name, version=1, optional=optional, doc="Geometry (POINT)"
    )

    def read(text: str) -> Struct:
        match = _POINT.fullmatch(text)
        if match is None:
            raise ValueError(text)
        x, y = float(match[1]), float(match[2])
        return Struct.of_valid(schema, [x, y, _WKB.pack(1, 1, x, y), None])

    return Codec(schema, read)


def _plain(make: Callable[..., Schema], parse: Callable[[str], Any]) -> "Maker":
    return lambda kind, modes, optional: Codec(make(optional=optional), parse)


def _clock(kind: Type, modes: Modes, optional: bool) -> Codec:
    return clock_codec(kind, modes.times, optional=optional)


Maker = Callable[[Type, Modes, bool], Codec]
_MAKERS: Final[dict[str, Maker]] = {
    "bool": _plain(Schema.boolean, lambda text: text in ("t", "true")),
    "int2": _plain(Schema.int16, int),
    "int4": _plain(Schema.int32, int),
    "int8": _plain(Schema.int64, int),
    "oid": _plain(Schema.int64, int),
    "float4": _plain(Schema.float32, float),
    "float8": _plain(Schema.float64, float),
    "numeric": _numeric,
    "money": _money,
    "bytea": _bytea,
    "bit": _bits,
    "varbit": _bits,
    "interval": _interval,
    "hstore": _hstore,
    "point": _point,
    **dict.fromkeys(("date", "time", "timetz", "timestamp", "timestamptz"), _clock),
}
