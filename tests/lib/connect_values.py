"""Hypothesis strategies for Connect schemas with valid values."""

import datetime
from typing import Any

from hypothesis import strategies as st

from millstream.connect.data.logical import decimal_of
from millstream.connect.data.schema import Schema, Struct

Pair = tuple[Schema, Any]
NAMES = st.text("abcXYZ_é", min_size=1, max_size=5)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
FLOAT32 = st.floats(width=32, allow_nan=False)


def _whole(schema: Any, bits: int) -> Any:
    return schema, st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def _to_milliseconds(value: Any) -> Any:
    return value.replace(microsecond=value.microsecond // 1000 * 1000, fold=0)


SIMPLE: list[tuple[Any, st.SearchStrategy[Any]]] = [
    _whole(Schema.int8, 8),
    _whole(Schema.int16, 16),
    _whole(Schema.int32, 32),
    _whole(Schema.int64, 64),
    (Schema.float32, FLOAT32),
    (Schema.float64, st.floats(allow_nan=False)),
    (Schema.boolean, st.booleans()),
    (Schema.string, TEXTS),
    (Schema.bytes, st.binary(max_size=8)),
    (Schema.date, st.dates()),
    (Schema.time, st.times().map(_to_milliseconds)),
    (Schema.timestamp, st.datetimes(timezones=st.just(datetime.UTC)).map(_to_milliseconds)),
]


@st.composite
def simple(draw: st.DrawFn) -> Pair:
    """A value of a scalar type, optional or not."""
    make, values = draw(st.sampled_from(SIMPLE))
    optional = draw(st.booleans())
    value = draw(st.none() | values) if optional else draw(values)
    return make(optional=optional), value


@st.composite
def decimals(draw: st.DrawFn) -> Pair:
    """A decimal with its schema's scale."""
    scale = draw(st.integers(-5, 20))
    return Schema.decimal(scale), decimal_of(draw(st.integers(-(10**30), 10**30)), scale)


@st.composite
def arrays(draw: st.DrawFn, inner: st.SearchStrategy[Pair]) -> Pair:
    """An array that repeats one value."""
    schema, value = draw(inner)
    return Schema.array(schema), [value] * draw(st.integers(0, 3))


@st.composite
def maps(draw: st.DrawFn, inner: st.SearchStrategy[Pair]) -> Pair:
    """A map with strings or numbers as keys."""
    schema, value = draw(inner)
    make, keys = draw(st.sampled_from([(Schema.string, TEXTS), (Schema.int32, st.integers(0, 9))]))
    return Schema.map(make(), schema), dict.fromkeys(draw(st.lists(keys, max_size=3)), value)


@st.composite
def structs(draw: st.DrawFn, inner: st.SearchStrategy[Pair]) -> Pair:
    """A struct, with or without a name, a version and documentation."""
    fields = draw(st.dictionaries(NAMES, inner, max_size=4))
    schema = Schema.struct(
        {name: schema for name, (schema, _) in fields.items()},
        name=draw(st.none() | NAMES),
        version=draw(st.none() | st.integers(0, 9)),
        doc=draw(st.none() | TEXTS),
        parameters=draw(st.dictionaries(NAMES, TEXTS, max_size=2)),
    )
    return schema, Struct(schema, {name: value for name, (_, value) in fields.items()})


def schemas_and_values() -> st.SearchStrategy[Pair]:
    """Nested values of every type."""
    return st.recursive(
        simple() | decimals(),
        lambda inner: arrays(inner) | maps(inner) | structs(inner),
        max_leaves=6,
    )
