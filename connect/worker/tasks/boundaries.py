"""Transaction boundaries of a source task: each poll, an interval, or the connector's decision.

The task asks its boundary after every record, after every batch, and before the task pauses or
ends. To *abort* is to drop the records and write their offsets: the source does not send the
dropped records again (KIP-618).
"""

from collections.abc import Mapping
from enum import Enum
from threading import Lock
from typing import Protocol

from connect.definitions.exactly_once import BOUNDARY, INTERVAL
from millstream.connect.data.records import SourceRecord
from millstream.connect.errors import ConnectException


class Ending(Enum):
    """How the open transaction ends."""

    COMMIT = "commit"
    ABORT = "abort"


class Boundary(Protocol):
    """One kind of boundary. Its methods return None while the transaction stays open."""

    def begin(self, now_ms: int) -> None:
        """Note that the task starts, or resumes after a pause."""

    def after_record(self, record: SourceRecord) -> Ending | None: ...

    def after_batch(self, now_ms: int) -> Ending | None: ...

    def at_end(self) -> Ending | None: ...


class PollBoundary:
    """Each polled batch is one transaction."""

    def begin(self, now_ms: int) -> None:
        del now_ms

    def after_record(self, record: SourceRecord) -> Ending | None:
        del record
        return None

    def after_batch(self, now_ms: int) -> Ending | None:
        del now_ms
        return Ending.COMMIT

    def at_end(self) -> Ending | None:
        return Ending.COMMIT


class IntervalBoundary(PollBoundary):
    """The batches of an interval are one transaction."""

    def __init__(self, interval_ms: int) -> None:
        self._interval_ms = interval_ms
        self._due_ms = 0

    def begin(self, now_ms: int) -> None:
        self._due_ms = now_ms + self._interval_ms

    def after_batch(self, now_ms: int) -> Ending | None:
        if now_ms < self._due_ms:
            return None
        self._due_ms = now_ms + self._interval_ms
        return Ending.COMMIT


class ConnectorBoundary:
    """The task decides: it gets this object as its `transaction_context`."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._batch: set[Ending] = set()
        self._records: dict[int, tuple[SourceRecord, set[Ending]]] = {}
        """By identity (`id`); the record is kept so that its id is not used again."""

    # --- called by the task, from any thread ---

    def commit_transaction(self, record: SourceRecord | None = None) -> None:
        self._ask(Ending.COMMIT, record)

    def abort_transaction(self, record: SourceRecord | None = None) -> None:
        self._ask(Ending.ABORT, record)

    def _ask(self, ending: Ending, record: SourceRecord | None) -> None:
        with self._lock:
            if record is None:
                self._batch.add(ending)
            else:
                self._records.setdefault(id(record), (record, set()))[1].add(ending)

    # --- called by the worker ---

    def begin(self, now_ms: int) -> None:
        del now_ms

    def after_record(self, record: SourceRecord) -> Ending | None:
        """Raises ConnectException when the task asked to commit and to abort."""
        with self._lock:
            _, asked = self._records.pop(id(record), (record, set()))
        return _one_of(asked, f"record against topic/partition {_place(record)}")

    def after_batch(self, now_ms: int) -> Ending | None:
        """As above."""
        del now_ms
        return self.at_end()

    def at_end(self) -> Ending | None:
        """As above."""
        with self._lock:
            asked, self._batch = self._batch, set()
        return _one_of(asked, "transaction")


def _one_of(asked: set[Ending], of: str) -> Ending | None:
    if len(asked) > 1:
        raise ConnectException(f"Connector requested both commit and abort of same {of}")
    return next(iter(asked), None)


def _place(record: SourceRecord) -> str:
    return f"{record.topic}/{record.kafka_partition}"


def boundary_of(config: Mapping[str, str], flush_interval_ms: int) -> Boundary:
    """Make the boundary that a connector's valid configuration names; the default is each poll."""
    match (config.get(BOUNDARY) or "poll").lower():
        case "connector":
            return ConnectorBoundary()
        case "interval":
            return IntervalBoundary(int(config.get(INTERVAL) or flush_interval_ms))
        case _:
            return PollBoundary()
