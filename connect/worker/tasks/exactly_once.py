"""The delivery of a source task in transactions of records and their offsets (KIP-618).

A reader of committed records sees both or neither. When a task fails, is killed or is fenced, the
records that it had not committed are written again, once. Offsets are written last, right before
the commit, so that no other task waits for them while a long transaction is open.
"""

import logging
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

from confluent_kafka import KafkaException, Producer

from common.process.clock import now_ms
from connect.herder.offsets import OffsetRecord
from connect.worker.offset_store import Entries
from connect.worker.tasks.boundaries import Boundary, ConnectorBoundary, Ending
from connect.worker.tasks.source import (
    ANY_PARTITION,
    NOW,
    Message,
    Sender,
    SourceParts,
    key_of,
)
from connect.worker.tasks.thread import TaskThread
from connect.worker.transactions import begin_transactions, insist
from millstream.connect.connectors import (
    RecordMetadata,
    SourceOffset,
    SourcePartition,
    TransactionContext,
)
from millstream.connect.data.records import SourceRecord
from millstream.connect.errors import ConnectException

log = logging.getLogger(__name__)

_ABORT_SECONDS: Final = 5.0


class TopicOffsets(Protocol):
    """An offset store in a topic, so that a transaction can write the offsets."""

    @property
    def topic(self) -> str: ...

    def records(self, connector: str, entries: Entries) -> list[OffsetRecord]: ...

    def committed(self, connector: str, entries: Entries, timeout_ms: int) -> None:
        """Note that a transaction has written entries."""


@dataclass(frozen=True, slots=True)
class Transactions:
    """The settings of one task's transactions."""

    transactional_id: str
    boundary: Boundary
    offsets: TopicOffsets


class ExactlyOnce:
    """Owns the open transaction. All methods run in the task's thread."""

    def __init__(
        self, thread: TaskThread, parts: SourceParts, sender: Sender, transactions: Transactions
    ) -> None:
        boundary = transactions.boundary
        self.transaction_context: TransactionContext | None = (
            boundary if isinstance(boundary, ConnectorBoundary) else None
        )
        self._thread = thread
        self._parts = parts
        self._sender = sender
        self._transactions = transactions
        self._boundary = boundary
        self._is_open = False
        self._is_aborting = False
        self._offsets: dict[str, tuple[SourcePartition, SourceOffset]] = {}
        """The offsets for the next commit: the last one of each source partition."""
        self._outcomes: list[tuple[SourceRecord, RecordMetadata | None]] = []
        """The records to pass to the task's `commit_record` after the commit."""
        self._handed_on: list[SourceRecord] = []
        """The records of the open transaction, when the task has a `commit_record`."""

    # --- its life ---

    def make_producer(self) -> Producer:
        client, task = self._parts.producer, self._thread.task
        producer = begin_transactions(client, self._transactions.transactional_id, self._may_try)
        # After a long wait this producer may have fenced a newer task: then it must not write.
        self._thread.require_current()
        log.info("task begins its transactions task=%s", task)
        return producer

    def _may_try(self) -> bool:
        return not self._thread.is_left

    def begin(self) -> None:
        self._boundary.begin(now_ms())

    def pause(self) -> None:
        # The brokers abort a transaction that stays open for too long, and fence its producer.
        self._end_with(self._boundary.at_end())

    def finish(self, *, is_failed: bool) -> None:
        if not is_failed:
            self._end_with(self._boundary.at_end())

    def give_up(self) -> None:
        if self._is_open:
            self._is_aborting = True
            try:
                self._sender.producer.abort_transaction(_ABORT_SECONDS)
            except KafkaException as error:
                # The next producer with this transactional id ends the transaction.
                log.info("transaction is left open task=%s error=%s", self._thread.task, error)

    # --- records ---

    def send(self, message: Message, polled: SourceRecord) -> None:
        if message[0] == self._transactions.offsets.topic:
            raise ConnectException(
                "Source tasks may not produce to their own offsets topics when exactly-once "
                "support is enabled"
            )
        self._open()
        self._sender.produce(message, partial(self._stored, polled))
        if polled.source_partition is not None and polled.source_offset is not None:
            partition = polled.source_partition
            self._offsets[key_of(partition)] = (partition, polled.source_offset)
        if self._sender.tells_records:
            self._handed_on.append(polled)
        self._end_with(self._boundary.after_record(polled))

    def leave_out(self, polled: SourceRecord) -> None:
        if self._sender.tells_records:
            self._outcomes.append((polled, None))
        self._end_with(self._boundary.after_record(polled))

    def _stored(self, record: SourceRecord, error: Any, message: Any) -> None:
        if error is not None:
            if not self._is_aborting:
                self._sender.fail(KafkaException(error))
            return
        metadata = self._sender.count_stored(message)
        if metadata is not None:
            self._outcomes.append((record, metadata))

    # --- transactions ---

    def serve(self) -> None:
        self._sender.serve()
        self._sender.require_no_error()
        self._end_with(self._boundary.after_batch(now_ms()))

    def _end_with(self, ending: Ending | None) -> None:
        if ending is Ending.ABORT:
            self._abort()
        if ending is not None:
            self._commit()

    def _open(self) -> None:
        if self._is_open:
            return
        try:
            self._sender.producer.begin_transaction()
        except KafkaException as error:
            raise ConnectException(f"a transaction cannot be begun: {error}") from error
        self._is_open = True

    def _abort(self) -> None:
        """Drop the records of the transaction, as the connector asked."""
        if not self._is_open:
            log.warning("nothing is there to be aborted task=%s", self._thread.task)
            return
        log.info("transaction is aborted as asked task=%s", self._thread.task)
        self._is_aborting = True
        try:
            what = f"Failed to abort a transaction of task {self._thread.task}"
            insist(what, self._sender.producer.abort_transaction, self._may_try)
        finally:
            self._is_aborting = False
        self._is_open = False
        self._outcomes = [each for each in self._outcomes if each[1] is None]
        self._outcomes += [(record, None) for record in self._handed_on]
        self._handed_on.clear()

    def _commit(self) -> None:
        """Commit records and offsets together. Raises ConnectException; then neither counts."""
        if not self._is_open and not self._offsets and not self._outcomes:
            # The task hears from time to time even when there are no new records.
            if now_ms() >= self._sender.next_commit_ms:
                self._sender.commit()
            return
        try:
            self._sender.require_no_error()
            self._write_offsets()
            if self._is_open:
                self._commit_transaction()
        except ConnectException:
            self._sender.counts.offset_commit_failure_total += 1
            raise
        self._sender.counts.offset_commit_completion_total += 1
        outcomes, self._outcomes = self._outcomes, []
        self._tell_offsets()
        self._handed_on.clear()
        for record, metadata in outcomes:
            self._sender.commit_record(record, metadata)
        self._sender.commit()

    def _tell_offsets(self) -> None:
        if self._offsets:
            connector, entries = self._thread.task.connector, list(self._offsets.values())
            timeout_ms = self._parts.flush_timeout_ms
            self._transactions.offsets.committed(connector, entries, timeout_ms)
            self._offsets.clear()

    def _write_offsets(self) -> None:
        if not self._offsets:
            return
        self._open()
        offsets, connector = self._transactions.offsets, self._thread.task.connector
        for key, value in offsets.records(connector, list(self._offsets.values())):
            message = (offsets.topic, value, key, ANY_PARTITION, NOW, None)
            self._sender.produce(message, self._offset_stored)

    def _offset_stored(self, error: Any, message: Any) -> None:
        del message
        if error is not None and not self._is_aborting:
            self._sender.fail(KafkaException(error))

    def _commit_transaction(self) -> None:
        if self._thread.is_left:
            raise ConnectException("the task was left behind")
        what = f"Failed to flush offsets and/or records for task {self._thread.task}"
        insist(what, self._sender.producer.commit_transaction, self._may_try)
        self._is_open = False
