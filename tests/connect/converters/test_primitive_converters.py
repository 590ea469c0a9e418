"""Converters of one type each."""

import datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.converters.primitives import (
    BooleanConverter,
    ByteArrayConverter,
    DoubleConverter,
    FloatConverter,
    IntegerConverter,
    LongConverter,
    ShortConverter,
    StringConverter,
)
from connect.converters.settings import RecordConverter
from millstream.connect.data.schema import Schema, Struct
from millstream.connect.errors import ConfigException, DataException

FLOATS32 = st.floats(width=32, allow_nan=False)
ROUND_TRIPS = [
    (ByteArrayConverter, st.binary()),
    (BooleanConverter, st.booleans()),
    (ShortConverter, st.integers(-(2**15), 2**15 - 1)),
    (IntegerConverter, st.integers(-(2**31), 2**31 - 1)),
    (LongConverter, st.integers(-(2**63), 2**63 - 1)),
    (FloatConverter, FLOATS32),
    (DoubleConverter, st.floats(allow_nan=False)),
    (StringConverter, st.text(st.characters(exclude_categories=["Cs"]))),
]
PAIR = Schema.struct({"a": Schema.int8(optional=True), "f": Schema.float32(optional=True)})


def configured(of: type[RecordConverter], **settings: str) -> RecordConverter:
    made = of()
    made.configure({name.replace("_", "."): value for name, value in settings.items()}, True)
    return made


@pytest.mark.parametrize(
    ("of", "values"), ROUND_TRIPS, ids=lambda one: getattr(one, "__name__", "")
)
def test_what_is_written_is_read_again(of: type[RecordConverter], values: Any) -> None:
    converter = configured(of)

    @given(st.none() | values)
    def round_trip(value: Any) -> None:
        bytes_ = converter.from_connect_data("t", None, value)
        assert converter.to_connect_data("t", bytes_).value == value
        assert converter.to_connect_header("t", "h", bytes_).value == value

    round_trip()


@pytest.mark.parametrize(
    ("of", "schema", "value"),
    [
        (ByteArrayConverter, None, "x"),
        (ByteArrayConverter, Schema.string(), b"x"),
        (BooleanConverter, None, 1),
        (BooleanConverter, Schema.string(), None),
        (ShortConverter, None, 2**15),
        (IntegerConverter, None, True),
        (LongConverter, None, "7"),
        (DoubleConverter, None, 1),
        (DoubleConverter, Schema.float32(), 1.0),
        (IntegerConverter, Schema.int8(), 1),
        (StringConverter, None, b"x"),
        (StringConverter, None, object()),
    ],
)
def test_a_value_of_another_type_is_refused(
    of: type[RecordConverter], schema: Schema | None, value: Any
) -> None:
    with pytest.raises(DataException):
        configured(of).from_connect_data("t", schema, value)


@pytest.mark.parametrize(
    ("of", "bytes_"),
    [
        (BooleanConverter, b""),
        (BooleanConverter, b"\2"),
        (ShortConverter, b"\0"),
        (IntegerConverter, b"\0" * 5),
        (LongConverter, b""),
        (FloatConverter, b"\0" * 8),
        (DoubleConverter, b"\0" * 4),
    ],
)
def test_bytes_of_another_length_are_refused(of: type[RecordConverter], bytes_: bytes) -> None:
    with pytest.raises(DataException):
        configured(of).to_connect_data("t", bytes_)


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        (None, True, "true"),
        (None, 1e10, "1.0E10"),
        (Schema.float32(), 0.1, "0.1"),
        (None, Decimal("1E+3"), "1E+3"),
        (None, [1, None, "a"], "[1, null, a]"),
        (None, {"a": 1, "b": [2.0]}, "{a=1, b=[2.0]}"),
        (PAIR, Struct(PAIR, {"f": 0.1}), "Struct{f=0.1}"),
        (
            None,
            datetime.datetime(2026, 3, 2, 1, 2, 3, tzinfo=datetime.UTC),
            "Mon Mar 02 01:02:03 UTC 2026",
        ),
        (None, datetime.date(2026, 3, 2), "Mon Mar 02 00:00:00 UTC 2026"),
        (None, datetime.time(1, 2, 3), "Thu Jan 01 01:02:03 UTC 1970"),
    ],
    ids=str,
)
def test_any_value_can_be_a_text_as_javas_to_string_writes_it(
    schema: Schema | None, value: Any, text: str
) -> None:
    assert configured(StringConverter).from_connect_data("t", schema, value) == text.encode()


def test_texts_have_an_encoding() -> None:
    latin = configured(StringConverter, converter_encoding="ISO-8859-1")

    assert latin.from_connect_data("t", None, "é€") == b"\xe9?"
    assert latin.to_connect_data("t", b"\xe9").value == "é"
    assert configured(StringConverter).to_connect_data("t", b"\xff").value == "\ufffd"
    assert configured(StringConverter).from_connect_data("t", None, "\ud800") == b"?"
    wide = configured(StringConverter, converter_encoding="UTF-16")
    assert wide.from_connect_data("t", None, "é") == b"\xfe\xff\x00\xe9"
    assert wide.from_connect_data("t", None, "") == b""
    for bytes_ in (b"\xfe\xff\x00\xe9", b"\xff\xfe\xe9\x00", b"\x00\xe9"):
        assert wide.to_connect_data("t", bytes_).value == "é"
    for wrong in ("no-such", "rot13", "base64", "", "a\0b"):
        with pytest.raises(ConfigException, match="converter"):
            configured(StringConverter, converter_encoding=wrong)
