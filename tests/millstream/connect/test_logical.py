"""Logical types, and how numbers are written."""

import datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.connect.data.java_text import java_double, java_float
from millstream.connect.data.logical import decimal_of, from_logical, integer_bytes, to_logical
from millstream.connect.data.schema import DECIMAL, Schema, Type
from millstream.connect.errors import DataException

DATES = st.dates().map(lambda value: (Schema.date(), value))
TIMES = st.times().map(
    lambda value: (
        Schema.time(),
        value.replace(microsecond=value.microsecond // 1000 * 1000),
    )
)
TIMESTAMPS = st.datetimes(timezones=st.just(datetime.UTC)).map(
    lambda value: (
        Schema.timestamp(),
        value.replace(microsecond=value.microsecond // 1000 * 1000),
    )
)
DECIMALS = st.builds(
    lambda unscaled, scale: (Schema.decimal(scale), decimal_of(unscaled, scale)),
    st.integers(-(10**60), 10**60),
    st.integers(-50, 50),
)


@given(st.one_of(DATES, TIMES, TIMESTAMPS, DECIMALS))
def test_what_is_stored_gives_the_value_back(one: tuple[Schema, Any]) -> None:
    schema, value = one
    schema.validate(value)

    again = to_logical(schema, from_logical(schema, value))

    assert again == value
    assert str(again) == str(value)


@given(st.integers(-(2**200), 2**200))
def test_a_number_takes_as_few_bytes_as_it_needs(value: int) -> None:
    stored = integer_bytes(value)

    assert int.from_bytes(stored, "big", signed=True) == value
    if len(stored) > 1:
        with pytest.raises(OverflowError):
            value.to_bytes(len(stored) - 1, "big", signed=True)


def test_a_decimal_has_its_schemas_scale() -> None:
    assert from_logical(Schema.decimal(2), Decimal("-1.28")) == b"\x80"
    with pytest.raises(DataException, match="Schema has scale 2, value has scale 1"):
        from_logical(Schema.decimal(2), Decimal("1.2"))


@pytest.mark.parametrize("scale", ["", "two", "9" * 5000, "9999999"])
def test_a_scale_that_cannot_be_is_refused(scale: str) -> None:
    schema = Schema(Type.BYTES, name=DECIMAL, parameters={"scale": scale})

    with pytest.raises(DataException, match="Invalid scale"):
        to_logical(schema, b"\1")


@pytest.mark.parametrize(
    ("schema", "stored"),
    [
        (Schema.date(), 2**31 - 1),
        (Schema.date(), -(2**31)),
        (Schema.time(), -1),
        (Schema.time(), 86_400_000),
        (Schema.timestamp(), 2**63 - 1),
        (Schema.timestamp(), -(2**63)),
        (Schema.decimal(2), b""),
    ],
    ids=str,
)
def test_what_python_cannot_say_is_refused(schema: Schema, stored: Any) -> None:
    with pytest.raises(DataException):
        to_logical(schema, stored)


def test_what_is_finer_than_a_millisecond_is_cut_off_towards_the_past() -> None:
    before_1970 = datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=datetime.UTC)

    assert from_logical(Schema.timestamp(), before_1970) == -1
    assert from_logical(Schema.time(), datetime.time(0, 0, 0, 1999)) == 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (123456789.125, "1.23456789125E8"),
        (100.0, "100.0"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (5e-324, "4.9E-324"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_a_number_is_written_as_java_writes_it(value: float, text: str) -> None:
    assert java_double(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.1, "1.1"),
        (3.4028234663852886e38, "3.4028235E38"),
        (1e39, "Infinity"),
        (1.4e-45, "1.4E-45"),
        (16777216.0, "1.6777216E7"),
        (0.00123, "0.00123"),
    ],
)
def test_a_number_of_32_bits_is_written_as_java_writes_it(value: float, text: str) -> None:
    assert java_float(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_what_is_written_is_the_same_number(value: float) -> None:
    assert float(java_double(value)) == value
