"""The separation of a micro-batch into new and repeated events. Pure.

The services deliver at least once, and a batch may have an event and its repetition. The key of an
order event is (order id, version), that of a verdict (order id, check): a repetition equals the
first, so it does not matter which one is counted. All other records count nothing.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from spark_analytics.jobs.topics import ORDERS, VALIDATIONS


class RecordKey(NamedTuple):
    """The position of a record, and the fields of its key."""

    topic: str
    partition: int
    offset: int
    problem: str | None
    order_id: str | None
    version: int | None
    check: str | None
    ordered_ms: int | None = None


Position = tuple[str, int, int]


@dataclass(slots=True)
class Sorted:
    """The records of a batch by kind."""

    event_keys: list[tuple[str, int]] = field(default_factory=list)
    check_keys: list[tuple[str, str]] = field(default_factory=list)
    repeated: list[Position] = field(default_factory=list)
    set_aside: list[tuple[str, int, int, str]] = field(default_factory=list)
    newest_ordered_ms: int | None = None


def event_key(record: RecordKey) -> tuple[str, int] | None:
    """Return the key of an order event, None for any other record."""
    if record.topic != ORDERS or record.problem is not None:
        return None
    assert record.order_id is not None
    assert record.version is not None
    return record.order_id, record.version


def check_key(record: RecordKey) -> tuple[str, str] | None:
    """Return the key of a verdict, None for any other record."""
    if record.topic != VALIDATIONS or record.problem is not None:
        return None
    assert record.order_id is not None
    assert record.check is not None
    return record.order_id, record.check


def sort_out(
    records: Sequence[RecordKey],
    known_events: Set[tuple[str, int]],
    known_checks: Set[tuple[str, str]],
) -> Sorted:
    """Separate new events from repeated ones and from records that are no events."""
    sorted_out = Sorted()
    new_events: set[tuple[str, int]] = set()
    new_checks: set[tuple[str, str]] = set()
    for record in records:
        position = (record.topic, record.partition, record.offset)
        event, verdict = event_key(record), check_key(record)
        if record.problem is not None:
            sorted_out.set_aside.append((*position, record.problem))
        elif event is not None and event not in known_events and event not in new_events:
            new_events.add(event)
            sorted_out.event_keys.append(event)
        elif verdict is not None and verdict not in known_checks and verdict not in new_checks:
            new_checks.add(verdict)
            sorted_out.check_keys.append(verdict)
        elif event is not None or verdict is not None:
            sorted_out.repeated.append(position)
    times = [record.ordered_ms for record in records if record.ordered_ms is not None]
    sorted_out.newest_ordered_ms = max(times, default=None)
    return sorted_out
