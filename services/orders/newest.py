"""The newest event of each active order, decoded: the next event is made from it.

The view keeps events as bytes, and decoding one is a large part of the cost of a step. An event
that this instance has committed stays here until its order is final, or newer ones need the room.
"""

from services.orders.domain import OrderEvent, OrderState

LIMIT = 5_000
"""Some 2 KB each. An order that is not among them is read again."""
_UNDER_WAY = {OrderState.CREATED.value, OrderState.VALIDATED.value}


class NewestEvents:
    """Invariant: every event here is committed. Events are never changed."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._events: dict[str, OrderEvent] = {}

    def put(self, event: OrderEvent) -> None:
        """Keep an event as its order's newest, unless the order is final."""
        order_id = event["order_id"]
        self._events.pop(order_id, None)
        if event["state"] in _UNDER_WAY:
            self._events[order_id] = event
            if len(self._events) > self._limit:
                del self._events[next(iter(self._events))]

    def get(self, order_id: str, version: int) -> OrderEvent | None:
        """Return an order's event, if it is this version of it."""
        event = self._events.get(order_id)
        return event if event is not None and event["version"] == version else None

    def clear(self) -> None:
        self._events.clear()
