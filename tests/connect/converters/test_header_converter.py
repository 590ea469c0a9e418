"""SimpleHeaderConverter: values as texts, and what texts say."""

import datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.converters.header_converter import SimpleHeaderConverter
from millstream.connect.data.schema import Schema, Struct, Type
from millstream.connect.errors import DataException
from tests.lib.connect_values import schemas_and_values

CONVERTER = SimpleHeaderConverter()
DAY = datetime.date(2026, 11, 23)
NOON = datetime.datetime(2026, 11, 23, 12, tzinfo=datetime.UTC)
PAIR = Schema.struct({"a": Schema.int8(), "b": Schema.string(optional=True)})


def said(text: str) -> tuple[Schema | None, Any]:
    return CONVERTER.to_connect_header("t", "h", text.encode())


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("", Schema.string(), ""),
        ("  ", Schema.string(), "  "),
        ("null", None, None),
        ("true", Schema.boolean(), True),
        ("truest", Schema.string(), "truest"),
        ("127", Schema.int8(), 127),
        (" -128 ", Schema.int8(), -128),
        ("128", Schema.int16(), 128),
        ("+65536", Schema.int32(), 65536),
        (str(-(2**63)), Schema.int64(), -(2**63)),
        ("9223372036854775808", Schema.decimal(0), Decimal(9223372036854775808)),
        ("1.50", Schema.float32(), 1.5),
        ("1.0", Schema.int8(), 1),
        ("1e39", Schema.float64(), 1e39),
        ("1e400", Schema.decimal(-400), Decimal("1e400")),
        ("1e2147483647", Schema.decimal(-2147483647), Decimal("1e2147483647")),
        ("1e2147483648", Schema.string(), "1e2147483648"),
        ("0e999999999", Schema.int8(), 0),
        ("1_000", Schema.string(), "1_000"),
        ("12 monkeys", Schema.string(), "12 monkeys"),
        ("2026-11-23", Schema.date(), DAY),
        ("2026-13-01", Schema.date(), datetime.date(2027, 1, 1)),
        ("12:00:00.000Z", Schema.time(), NOON.time()),
        ("2026-11-23T12:00:00.000Z", Schema.timestamp(), NOON),
        ("2026\\:11", Schema.string(), "2026\\:11"),
        ("9999-99-99", Schema.string(), "9999-99-99"),
        ("25:00:00.000Z", Schema.string(), "25:00:00.000Z"),
        ("[1, 300, 2.5]", Schema.array(Schema.float32()), [1.0, 300.0, 2.5]),
        ('["a,b", "[c]"]', Schema.array(Schema.string()), ["a,b", "[c]"]),
        ("[]", Schema(Type.ARRAY), []),
        ("[null]", Schema(Type.ARRAY), [None]),
        ("[1, null]", Schema.string(), "[1, null]"),
        ('[1, "a"]', Schema(Type.ARRAY), [1, "a"]),
        ("10:30", Schema.string(), "10:30"),
        ("[1] and more", Schema.string(), "[1] and more"),
        ("[1", Schema.string(), "[1"),
        ("[1 2]", Schema.string(), "[1 2]"),
        ("[,]", Schema.string(), "[,]"),
        ("[1,]", Schema.array(Schema.int8()), [1]),
        ("{}", Schema(Type.MAP), {}),
        ('{"a":1, "b":300}', Schema.map(Schema.string(), Schema.int16()), {"a": 1, "b": 300}),
        ('{"a":[1,{}]}', None, {"a": [1, {}]}),
        ("{1:}", Schema.string(), "{1:}"),
        ("{null:1}", Schema.string(), "{null:1}"),
        ("{[1]:1}", Schema.string(), "{[1]:1}"),
        ("{,}", Schema.string(), "{,}"),
        ("[1.5,1962-12-23]", Schema.string(), "[1.5,1962-12-23]"),
        ("\x00", Schema.string(), "\x00"),
    ],
)
def test_a_text_says_a_value(text: str, schema: Schema | None, value: Any) -> None:
    found_schema, found = said(text)

    assert found == value
    assert type(found) is type(value)
    if schema is not None:
        assert found_schema == schema


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        (None, "a", "a"),
        (None, True, "true"),
        (Schema.float32(), 0.1, "0.1"),
        (None, b"\xff", "/w=="),
        (None, ["a", 'q"\\', b"x", None], '["a","q\\"\\\\","eA==",null]'),
        (None, {"a": 1, 2: [True]}, '{"a":1,2:[true]}'),
        (PAIR, Struct(PAIR, {"a": 1}), '{"a":1,"b":null}'),
        (None, Decimal("1.50"), "1.50"),
        (None, DAY, "2026-11-23"),
        (None, NOON.time(), "12:00:00.000Z"),
        (None, NOON, "2026-11-23T12:00:00.000Z"),
        (None, NOON.replace(hour=0), "2026-11-23"),
        (None, datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC), "1970-01-01T00:00:00.000Z"),
        (None, [DAY], "[2026-11-23]"),
    ],
    ids=str,
)
def test_a_value_is_written_as_kafka_writes_it(
    schema: Schema | None, value: Any, text: str
) -> None:
    assert CONVERTER.from_connect_header("t", "h", schema, value) == text.encode()


def test_nothing_is_nothing_and_what_is_no_value_is_refused() -> None:
    assert CONVERTER.from_connect_header("t", "h", None, None) is None
    assert CONVERTER.to_connect_header("t", "h", None) == (None, None)
    with pytest.raises(DataException):
        CONVERTER.from_connect_header("t", "h", None, object())


def test_what_is_nested_too_deeply_stays_bytes() -> None:
    assert said("[" * 50_000) == (Schema.bytes(), b"[" * 50_000)


@given(st.text('[]{}:,"\\ 12a.-TZnul', max_size=30))
def test_any_text_says_something(text: str) -> None:
    schema, value = said(text)

    assert schema is not None or value is None


@given(schemas_and_values())
def test_any_value_has_a_text(one: tuple[Schema, Any]) -> None:
    schema, value = one

    said((CONVERTER.from_connect_header("t", "h", schema, value) or b"").decode())
