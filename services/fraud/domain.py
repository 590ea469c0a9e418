"""The rule of the fraud check: spending within one session of a customer.

A session is a run of orders of one customer, by event time (`ordered_at`), in which each order
comes at most one hour after the one before. An order fails when the total of its session, the
order included, is 2000 or more; totals never fall, so every later order of that session fails
too. An order that lies between two sessions joins them into one.

Orders may come out of order of time, and may come again. A customer's history is therefore more
than a running total: it keeps the sessions of the last day of event time, and the verdicts of
the last orders in order of arrival, so that an order that comes again gets the verdict it got.

    sessions   [start_ms, end_ms, total]     sorted, apart by more than the gap
    verdicts   order id -> passed            the last 1000

Money is whole ten-thousandths here: the unit of decimal(18, 4), and exact.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

SESSION_GAP_MS = 3_600_000
LIMIT = 2000 * 10_000
SESSIONS_KEPT_MS = 24 * 3_600_000
VERDICTS_KEPT = 1000


@dataclass(frozen=True, slots=True)
class Session:
    """Invariant: start_ms <= end_ms."""

    start_ms: int
    end_ms: int
    total: int

    def is_near(self, timestamp_ms: int) -> bool:
        return self.start_ms - SESSION_GAP_MS <= timestamp_ms <= self.end_ms + SESSION_GAP_MS


@dataclass(frozen=True, slots=True)
class History:
    """What is remembered of one customer. Immutable."""

    sessions: tuple[Session, ...] = ()
    verdicts: dict[str, bool] = field(default_factory=dict)


def judge(history: History, order_id: str, total: int, ordered_at_ms: int) -> tuple[History, bool]:
    """Return the history with this order in it, and whether the order passes."""
    known = history.verdicts.get(order_id)
    if known is not None:
        return history, known
    near = [session for session in history.sessions if session.is_near(ordered_at_ms)]
    joined = Session(
        min([ordered_at_ms, *(session.start_ms for session in near)]),
        max([ordered_at_ms, *(session.end_ms for session in near)]),
        total + sum(session.total for session in near),
    )
    passed = joined.total < LIMIT
    others = (session for session in history.sessions if session not in near)
    sessions = sorted((*others, joined), key=lambda session: session.start_ms)
    verdicts = {**history.verdicts, order_id: passed}
    return History(tuple(_recent(sessions)), _last(verdicts)), passed


def _recent(sessions: list[Session]) -> Iterator[Session]:
    newest_ms = max(session.end_ms for session in sessions)
    return (session for session in sessions if session.end_ms >= newest_ms - SESSIONS_KEPT_MS)


def _last(verdicts: dict[str, bool]) -> dict[str, bool]:
    surplus = len(verdicts) - VERDICTS_KEPT
    return dict(islice(verdicts.items(), surplus, None)) if surplus > 0 else verdicts


def to_row(history: History) -> dict[str, Any]:
    """Return a history as JSON."""
    return {
        "sessions": [
            [session.start_ms, session.end_ms, session.total] for session in history.sessions
        ],
        "verdicts": history.verdicts,
    }


def from_row(row: dict[str, Any]) -> History:
    """Return the history of a row of the changelog, as `to_row` made it."""
    sessions = tuple(Session(*numbers) for numbers in row["sessions"])
    return History(sessions, row["verdicts"])
