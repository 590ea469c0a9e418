"""The rules of the REST edge: every wrong field has its entry, nothing passes through a float."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.orders.requests import (
    LINES_MAX,
    MalformedJsonError,
    OrderRequest,
    digest,
    parse_json,
    parse_order,
)

NOW = datetime(2026, 5, 6, 7, 8, 9, tzinfo=UTC)
LINE = {"product_id": "p", "quantity": 2, "unit_price": "2.55"}
GOOD: dict[str, Any] = {"customer_id": "c", "lines": [LINE]}


def errors(body: Any) -> dict[str, str]:
    found = parse_order(body, NOW)
    assert isinstance(found, list), found
    return {error["pointer"]: error["detail"] for error in found}


def accepted(body: Any) -> OrderRequest:
    found = parse_order(body, NOW)
    assert isinstance(found, OrderRequest), found
    return found


def test_good_order() -> None:
    request = accepted({**GOOD, "country": "France"})
    assert request.total == Decimal("5.1000")
    assert request.ordered_at == NOW
    assert request.lines == [{"product_id": "p", "quantity": 2, "unit_price": Decimal("2.5500")}]


def test_every_wrong_field_has_an_entry() -> None:
    body = {
        "customer_id": " ",
        "lines": [{"product_id": 3, "quantity": 0}, 7],
        "ordered_at": "yesterday",
        "colour/~": "red",
    }
    assert errors(body) == {
        "#/colour~1~0": "unknown field",
        "#/customer_id": "must not be empty",
        "#/lines/0/product_id": "must be a string",
        "#/lines/0/quantity": "must be greater than 0 and at most 1000000000",
        "#/lines/0/unit_price": "is required",
        "#/lines/1": "must be an object",
        "#/ordered_at": "must be an RFC 3339 date and time with a time zone",
    }


@pytest.mark.parametrize("body", [None, [], "x", 1, True])
def test_body_must_be_an_object(body: Any) -> None:
    assert errors(body) == {"#": "must be an object"}


@pytest.mark.parametrize("lines", [None, [], {}, "x", [LINE] * (LINES_MAX + 1)])
def test_lines_must_be_a_list_of_some(lines: Any) -> None:
    assert set(errors({**GOOD, "lines": lines})) == {"#/lines"}


def test_a_whole_number_may_be_written_with_a_point() -> None:
    body = parse_json(
        b'{"customer_id":"c","lines":[{"product_id":"p","quantity":2.0,"unit_price":1}]}'
    )
    assert accepted(body).lines[0]["quantity"] == 2


@pytest.mark.parametrize(
    "quantity", [0, -1, 1.0, Decimal("1.5"), Decimal("1e99999999"), True, "2", 10**9 + 1]
)
def test_quantity_must_be_a_positive_whole_number(quantity: Any) -> None:
    assert set(errors({**GOOD, "lines": [{**LINE, "quantity": quantity}]})) == {
        "#/lines/0/quantity"
    }


@pytest.mark.parametrize(
    "price", ["-0.01", "x", "", "NaN", "Infinity", "1.23456", "1e14", "1e999999", True, [], 10**14]
)
def test_price_must_be_an_amount(price: Any) -> None:
    assert set(errors({**GOOD, "lines": [{**LINE, "unit_price": price}]})) == {
        "#/lines/0/unit_price"
    }


@pytest.mark.parametrize("price", ["0", 0, 5, Decimal("0.0001"), "99999999999999.9999", "1E+2"])
def test_amounts_that_are_taken(price: Any) -> None:
    request = accepted({**GOOD, "lines": [{**LINE, "quantity": 1, "unit_price": price}]})
    assert request.total == Decimal(price)


def test_total_too_large_for_its_field_is_refused() -> None:
    line = {**LINE, "quantity": 10**9, "unit_price": "99999999999999"}
    assert set(errors({**GOOD, "lines": [line]})) == {"#/lines"}


def test_given_total_is_kept_even_if_wrong() -> None:
    assert accepted({**GOOD, "total": "7"}).total == 7
    assert set(errors({**GOOD, "total": "-7"})) == {"#/total"}


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-05-06T07:13:09Z", NOW + timedelta(minutes=5)),
        ("2010-12-01T08:26:00+01:00", datetime(2010, 12, 1, 7, 26, tzinfo=UTC)),
        ("2010-12-01 08:26:00.25Z", datetime(2010, 12, 1, 8, 26, 0, 250000, tzinfo=UTC)),
    ],
)
def test_moments_that_are_taken(text: str, moment: datetime) -> None:
    assert accepted({**GOOD, "ordered_at": text}).ordered_at == moment


@pytest.mark.parametrize(
    "text", ["2026-05-06T07:13:10Z", "2026-05-06T07:00:00", "2026-05-06", "1969-12-31T23:59:59Z", 1]
)
def test_moments_that_are_refused(text: Any) -> None:
    assert set(errors({**GOOD, "ordered_at": text})) == {"#/ordered_at"}


@pytest.mark.parametrize("text", [b"", b"{", b'{"a":NaN}', b"\xff", b"[" * 100_000])
def test_what_is_no_json(text: bytes) -> None:
    with pytest.raises(MalformedJsonError):
        parse_json(text)


def test_fractions_never_become_floats() -> None:
    assert parse_json(b'{"a": 0.1}') == {"a": Decimal("0.1")}


def test_digest_is_of_the_content() -> None:
    assert digest(parse_json(b'{"a":1.5,"b":2}')) == digest(parse_json(b'{ "b":2, "a":1.5 }'))
    assert digest(parse_json(b'{"a":1.5}')) != digest(parse_json(b'{"a":1.50001}'))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["customer_id", "lines", "total", "quantity"]), inner)
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_json_is_taken_or_refused_with_entries(body: Any) -> None:
    try:
        parsed = parse_json(json.dumps(body).encode())
    except MalformedJsonError:
        return
    found = parse_order(parsed, NOW)
    assert isinstance(found, OrderRequest) or found
