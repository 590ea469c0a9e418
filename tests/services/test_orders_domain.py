"""The life of an order: the transition table, cell by cell, and how an order is shown."""

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from services.orders.domain import (
    TRANSITIONS,
    Command,
    OrderState,
    commanded_event,
    decided_event,
    is_judged,
    is_possible,
    money,
    next_event,
    paid_event,
    to_json,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
ALLOWED = {
    ("CREATED", "VALIDATED"),
    ("CREATED", "FAILED"),
    ("CREATED", "CANCELLED"),
    ("VALIDATED", "PAID"),
    ("VALIDATED", "FAILED"),
    ("VALIDATED", "CANCELLED"),
    ("PAID", "SHIPPED"),
    ("PAID", "CANCELLED"),
}


def event(state: str = "CREATED", version: int = 1) -> dict[str, Any]:
    return {
        "order_id": "o",
        "version": version,
        "state": state,
        "reasons": [],
        "correlation_id": "t",
        "request_digest": None,
        "ordered_at": NOW,
        "created_at": NOW,
        "occurred_at": NOW,
        "customer_id": "c",
        "country": None,
        "total": Decimal("5.1000"),
        "lines": [{"product_id": "p", "quantity": 2, "unit_price": Decimal("2.5500")}],
    }


def verdict(decision: str, reasons: Sequence[dict[str, str]] = ()) -> dict[str, Any]:
    return {"order_id": "o", "decision": decision, "reasons": list(reasons)}


@pytest.mark.parametrize("after", list(OrderState))
@pytest.mark.parametrize("before", list(OrderState))
def test_each_cell_of_the_transition_table(before: OrderState, after: OrderState) -> None:
    found = next_event(event(before.value, 3), after, [], NOW)
    if (before.value, after.value) in ALLOWED:
        assert found is not None
        assert (found["state"], found["version"]) == (after.value, 4)
    else:
        assert found is None


def test_table_has_every_state() -> None:
    assert set(TRANSITIONS) == set(OrderState)


@pytest.mark.parametrize("state", [state for state in OrderState if state != "CREATED"])
@pytest.mark.parametrize("decision", ["VALIDATED", "FAILED"])
def test_decision_reaches_only_orders_that_wait_for_one(state: OrderState, decision: str) -> None:
    assert decided_event(event(state.value, 2), verdict(decision), NOW) is None


def test_decision_makes_the_second_version_and_keeps_the_order() -> None:
    reasons = [{"check": "FRAUD", "code": "X", "detail": "y"}]
    found = decided_event(event(), verdict("FAILED", reasons), NOW)
    assert found == {**event("FAILED", 2), "reasons": reasons}


@pytest.mark.parametrize("state", list(OrderState))
@pytest.mark.parametrize("result", ["PAID", "DECLINED", "REFUNDED"])
def test_only_a_validated_order_waits_for_its_payment(state: OrderState, result: str) -> None:
    payment = {"order_id": "o", "result": result, "code": "C", "reason": "why"}
    found = paid_event(event(state.value, 2), payment, NOW)
    reason = {"check": "PAYMENT", "code": "C", "detail": "why"}
    if state != "VALIDATED" or result == "REFUNDED":
        assert found is None
    elif result == "PAID":
        assert found == event("PAID", 3)
    else:
        assert found == {**event("FAILED", 3), "reasons": [reason]}


CAN_BE_CANCELLED = ("CREATED", "VALIDATED", "PAID")


@pytest.mark.parametrize("state", list(OrderState))
def test_command_is_obeyed_where_the_table_allows_it(state: OrderState) -> None:
    cancelled = commanded_event(event(state.value), {"command": "CANCEL"}, NOW)
    shipped = commanded_event(event(state.value), {"command": "SHIP"}, NOW)
    assert (cancelled is not None) == (state.value in CAN_BE_CANCELLED)
    assert (shipped is not None) == (state.value == "PAID")
    assert is_possible(state, Command.CANCEL) == (cancelled is not None)
    assert is_possible(state, Command.SHIP) == (shipped is not None)


def test_only_a_new_order_is_not_judged() -> None:
    assert [state for state in OrderState if not is_judged(state)] == [OrderState.CREATED]


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        ("2.5500", "2.55"),
        ("0", "0.00"),
        ("0.0125", "0.0125"),
        ("1000.5", "1000.50"),
        ("1.125", "1.125"),
    ],
)
def test_money_has_two_places_or_as_many_as_it_needs(amount: str, text: str) -> None:
    assert money(Decimal(amount)) == text


def test_order_as_clients_see_it() -> None:
    shown = to_json(event())
    assert shown["id"] == "o"
    assert shown["lines"] == [{"product_id": "p", "quantity": 2, "unit_price": "2.55"}]
    assert shown["ordered_at"] == "2026-01-02T03:04:05.678Z"
    assert "request_digest" not in shown
