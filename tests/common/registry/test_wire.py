"""Events to bytes and back: every schema, projections, bytes that are no event."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.registry import loader
from common.registry.wire import (
    EventReader,
    EventWriter,
    MalformedEventError,
    UnknownSchemaError,
    projection,
    schema_id_of,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
ORDER: dict[str, Any] = {
    "order_id": "o",
    "version": 1,
    "state": "CREATED",
    "reasons": [],
    "correlation_id": "t",
    "request_digest": None,
    "ordered_at": NOW,
    "created_at": NOW,
    "occurred_at": NOW,
    "customer_id": "c",
    "country": "France",
    "total": Decimal("5.1000"),
    "lines": [{"product_id": "p", "quantity": 2, "unit_price": Decimal("2.5500")}],
}


def reader_of(name: str, *fields: str, schema_id: int = 7) -> EventReader:
    schema = loader.load(name)
    reader = EventReader(projection(schema, *fields) if fields else schema)
    reader.learn(schema_id, schema)
    return reader


def test_every_event_of_the_pipeline_has_a_schema() -> None:
    assert set(loader.names()) >= {
        "catalogue/product",
        "customers/customer",
        "inventory/stock_level",
        "orders/order_decision",
        "orders/order_event",
        "orders/order_validation",
    }


@pytest.mark.parametrize("name", loader.names())
def test_schema_can_be_written_with(name: str) -> None:
    EventWriter(loader.load(name), 1)


def test_order_comes_back_as_it_went() -> None:
    data = EventWriter(loader.load("orders/order_event"), 7).encode(ORDER)
    assert data[:5] == b"\0\0\0\0\7"
    assert schema_id_of(data) == 7
    assert reader_of("orders/order_event").decode(data) == ORDER


def test_reader_can_ask_for_less() -> None:
    data = EventWriter(loader.load("orders/order_event"), 7).encode(ORDER)
    reader = reader_of("orders/order_event", "order_id", "total")
    assert reader.decode(data) == {"order_id": "o", "total": Decimal("5.1000")}


def test_id_that_was_never_learnt_is_told_apart() -> None:
    data = EventWriter(loader.load("orders/order_event"), 8).encode(ORDER)
    with pytest.raises(UnknownSchemaError) as caught:
        reader_of("orders/order_event").decode(data)
    assert caught.value.schema_id == 8


@pytest.mark.parametrize("data", [None, b"", b"\0\0\0\0", b"\1\0\0\0\7", b"{}", b"\0\0\0\0\7"])
def test_bytes_that_are_no_event(data: bytes | None) -> None:
    with pytest.raises(MalformedEventError):
        reader_of("orders/order_event").decode(data)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_malformed(data: bytes) -> None:
    try:
        reader_of("orders/order_event").decode(b"\0\0\0\0\7" + data)
    except MalformedEventError:
        pass


@given(st.integers(0, 100))
def test_event_cut_short_is_malformed(cut: int) -> None:
    data = EventWriter(loader.load("orders/order_event"), 7).encode(ORDER)
    with pytest.raises(MalformedEventError):
        reader_of("orders/order_event").decode(data[: max(len(data) - 1 - cut, 0)])
