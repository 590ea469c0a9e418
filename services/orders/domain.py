"""The life of an order.

    CREATED ───► VALIDATED ───► PAID ───► SHIPPED
       │ │           │  │         │
       │ └─► FAILED ◄┘  │         │
       └─► CANCELLED ◄──┴─────────┘

FAILED, CANCELLED and SHIPPED are final. Every step is an event with the next version number.
A step that the table does not have is refused, and so is a step to the state the order is in:
a decision that arrives twice changes nothing.

Three things move an order: the aggregator's decision (for a CREATED order only), the payment of a
VALIDATED order, and commands (the customer cancels, the warehouse ships).
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from services.json_values import moment, money

OrderEvent = dict[str, Any]
"""An event of schema millstream.orders.OrderEvent."""


class OrderState(StrEnum):
    """The states, by the names they have in events and over REST."""

    CREATED = "CREATED"
    VALIDATED = "VALIDATED"
    FAILED = "FAILED"
    PAID = "PAID"
    SHIPPED = "SHIPPED"
    CANCELLED = "CANCELLED"


_S = OrderState
TRANSITIONS: dict[OrderState, frozenset[OrderState]] = {
    _S.CREATED: frozenset({_S.VALIDATED, _S.FAILED, _S.CANCELLED}),
    _S.VALIDATED: frozenset({_S.PAID, _S.FAILED, _S.CANCELLED}),
    _S.FAILED: frozenset(),
    _S.PAID: frozenset({_S.SHIPPED, _S.CANCELLED}),
    _S.SHIPPED: frozenset(),
    _S.CANCELLED: frozenset(),
}


class Command(StrEnum):
    """The commands about an order, by their names in topic `order-commands`."""

    CANCEL = "CANCEL"
    SHIP = "SHIP"


_TARGETS = {Command.CANCEL: OrderState.CANCELLED, Command.SHIP: OrderState.SHIPPED}


def is_possible(state: OrderState, command: Command) -> bool:
    """Tell whether an order in this state can be cancelled or shipped."""
    return _TARGETS[command] in TRANSITIONS[state]


def is_judged(state: OrderState) -> bool:
    """Tell whether an order in this state has been through validation, or never will be."""
    return state is not OrderState.CREATED


def next_event(
    current: OrderEvent, state: OrderState, reasons: list[dict[str, str]], occurred_at: datetime
) -> OrderEvent | None:
    """Return the event that brings the order to `state`, None if there is no such step."""
    if state not in TRANSITIONS[OrderState(current["state"])]:
        return None
    return {
        **current,
        "version": current["version"] + 1,
        "state": state.value,
        "reasons": reasons,
        "occurred_at": occurred_at,
    }


def decided_event(
    current: OrderEvent, decision: Mapping[str, Any], occurred_at: datetime
) -> OrderEvent | None:
    """Return the event a decision of the aggregator brings, None if it changes nothing.

    Decisions are about orders that wait for one; FAILED has other causes later in life, so a
    late decision must not reach an order that has moved on.
    """
    if current["state"] != OrderState.CREATED:
        return None
    return next_event(current, OrderState(decision["decision"]), decision["reasons"], occurred_at)


def paid_event(
    current: OrderEvent, payment: Mapping[str, Any], occurred_at: datetime
) -> OrderEvent | None:
    """Return the event a payment brings, None if it changes nothing.

    Only a VALIDATED order waits for its payment; one that was cancelled meanwhile stays so, and
    its payment is given back.
    """
    if current["state"] != OrderState.VALIDATED:
        return None
    if payment["result"] == "PAID":
        return next_event(current, OrderState.PAID, [], occurred_at)
    if payment["result"] == "DECLINED":
        reason = {"check": "PAYMENT", "code": payment["code"], "detail": payment["reason"]}
        return next_event(current, OrderState.FAILED, [reason], occurred_at)
    return None


def commanded_event(
    current: OrderEvent, command: Mapping[str, Any], occurred_at: datetime
) -> OrderEvent | None:
    """Return the event that a command causes, None if the order's state does not allow it."""
    return next_event(current, _TARGETS[Command(command["command"])], [], occurred_at)


def to_json(event: OrderEvent) -> dict[str, Any]:
    """Return the order as it is after this event, as clients see it."""
    return {
        "id": event["order_id"],
        "version": event["version"],
        "state": event["state"],
        "reasons": event["reasons"],
        "customer_id": event["customer_id"],
        "country": event["country"],
        "lines": [{**line, "unit_price": money(line["unit_price"])} for line in event["lines"]],
        "total": money(event["total"]),
        "ordered_at": moment(event["ordered_at"]),
        "created_at": moment(event["created_at"]),
        "updated_at": moment(event["occurred_at"]),
        "correlation_id": event["correlation_id"],
    }
