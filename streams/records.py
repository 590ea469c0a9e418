"""The data between topologies: topics, origins, steps. No code here does IO.

**Origin.** A record that a topology makes from another record has the source's position,
`orders-3:1712`, in the header `millstream-origin`. After a crash `orders` is read again and such
records are sent again, with the same origin. Apart from such repeats, the offsets of one origin
partition arrive in rising order. So a row that stores the highest applied offset of each origin
partition recognizes every repeat, and its state is bounded by the number of partitions. A record
of a topic that this program does not write is its own origin.

**Step.** A topology's function takes a row (or None) and an event and returns a `Step`: the new row
and the records to send. It changes no state and does no IO.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from schemas import topics

# The versions of schemas that have more than one.
NEWEST_VERSION = {"customers/customer": 2}
ORIGIN_HEADER = "millstream-origin"
_WRITTEN_ORIGIN = re.compile(rb"([A-Za-z0-9._-]+):([0-9]{1,19})")

ORDERS = topics.ORDERS.name
ORDER_DECISIONS = topics.ORDER_DECISIONS.name
CUSTOMERS = topics.CUSTOMERS.name
ORDERS_BY_CUSTOMER = "streams-orders-by-customer"
SALES_BY_PRODUCT = "streams-sales-by-product"
ORDER_ALERTS = "order-alerts"

Row = dict[str, Any]
Event = dict[str, Any]


class Origin(NamedTuple):
    """The partition and offset of the record from which a record was first made."""

    source: str
    offset: int

    def header(self) -> tuple[str, bytes]:
        return ORIGIN_HEADER, f"{self.source}:{self.offset}".encode()


def origin_of(
    headers: Iterable[tuple[str, bytes]], topic: str, partition: int, offset: int
) -> Origin:
    """Return the origin in the headers, or else the record's own position.

    A header that no topology can have written is ignored.
    """
    for name, value in headers:
        found = _WRITTEN_ORIGIN.fullmatch(value or b"") if name == ORIGIN_HEADER else None
        if found is not None:
            return Origin(found[1].decode(), int(found[2]))
    return Origin(f"{topic}-{partition}", offset)


def is_applied(row: Row | None, origin: Origin) -> bool:
    """Return whether this record was applied to the row already."""
    applied: int = (row or {}).get("applied", {}).get(origin.source, -1)
    return origin.offset <= applied


def with_applied(row: Row, origin: Origin, before: Row | None) -> Row:
    """Return the row with this record marked as applied."""
    return {**row, "applied": {**(before or {}).get("applied", {}), origin.source: origin.offset}}


@dataclass(frozen=True)
class Outgoing:
    """A record to send. A `schema` names the Avro schema of `value`; without one it is bytes."""

    topic: str
    key: str
    value: Any
    schema: str | None = None
    origin: Origin | None = None


@dataclass(frozen=True)
class Step:
    """The result of one event: the new row (None: unchanged) and the messages to send."""

    row: Row | None = None
    outgoing: list[Outgoing] = field(default_factory=list)


def to_ms(moment: datetime) -> int:
    """Return milliseconds since 1970; events carry whole milliseconds."""
    return round(moment.timestamp() * 1000)
