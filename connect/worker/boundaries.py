"""Where a source's transaction ends: with a poll, after a while, or when the connector says so.

Each kind is asked after every record, after every batch, and before the task is held or ends. To
*abort* is to drop the records and keep their offsets: what was dropped on purpose does not come
again (KIP-618).
"""

from collections.abc import Mapping
from enum import Enum
from threading import Lock
from typing import Protocol

from connect.definitions.exactly_once import BOUNDARY, INTERVAL
from millrace.connect.data.records import SourceRecord
from millrace.connect.errors import ConnectException


class Ending(Enum):
    """What becomes of the transaction now."""

    COMMIT = "commit"
    ABORT = "abort"


class Boundary(Protocol):
    """One kind. None means: not yet."""

    def begin(self, now_ms: int) -> None:
        """Learn that the task begins, or goes on after it was held."""

    def after_record(self, record: SourceRecord) -> Ending | None: ...

    def after_batch(self, now_ms: int) -> Ending | None: ...

    def at_end(self) -> Ending | None: ...


class PollBoundary:
    """Every batch is a transaction."""

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
    """The batches of a while are a transaction."""

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
    """What the task says: it is given this as its `transaction_context`."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._batch: set[Ending] = set()
        self._records: dict[int, tuple[SourceRecord, set[Ending]]] = {}
        """By identity; the record is kept so that no other one gets its."""

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
        """Raises ConnectException when the task wants both."""
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
    """Make the kind that a connector's valid configuration names; the default is each poll."""
    match (config.get(BOUNDARY) or "poll").lower():
        case "connector":
            return ConnectorBoundary()
        case "interval":
            return IntervalBoundary(int(config.get(INTERVAL) or flush_interval_ms))
        case _:
            return PollBoundary()
