"""The time of a broker or a cluster under test.

    broker.clock.advance(hours=2)

Retention, sessions, transactions, committed offsets, delegation tokens and the locks of share
groups expire by this time. docs/testing.md says what follows it and what does not.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from millstream.testing.broker_control import BrokerControl


class BrokerClock:
    """The clock of each node of a cluster that is tested."""

    def __init__(self, controls: Callable[[], Sequence[BrokerControl]]) -> None:
        """`controls` returns those of the nodes that run."""
        self._controls = controls

    def advance(
        self,
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        ms: float = 0,
    ) -> None:
        """Move the time forward; what is due by then is done, as if no client had said anything.

        Raises ControlError for a time that is negative, or more than a hundred years in all.
        """
        by = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=ms)
        body = {"advance_ms": by // timedelta(milliseconds=1)}
        for control in self._controls():
            control.ahead_ms = control.call("POST", "/clock", body=body)["ahead_ms"]

    @property
    def now(self) -> datetime:
        """The time of the broker, of the first one in a cluster."""
        return datetime.fromtimestamp(self._shown()["timestamp_ms"] / 1000, UTC)

    @property
    def ahead(self) -> timedelta:
        """How far the time is ahead of the real time."""
        return timedelta(milliseconds=self._shown()["ahead_ms"])

    def _shown(self) -> dict[str, Any]:
        found: dict[str, Any] = self._controls()[0].call("GET", "/clock")
        return found
