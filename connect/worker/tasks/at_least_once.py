"""The delivery of a source task that writes its offsets after its records are stored.

An offset is written when its record and all earlier records of its source partition are stored
(`connect.herder.submitted_records`). So a crash repeats records and loses none.
"""

import logging
from functools import partial
from typing import Any

from confluent_kafka import KafkaException, Producer

from common.process.clock import now_ms
from connect.errors.tolerance import Stage
from connect.herder.submitted_records import SubmittedRecord, SubmittedRecords
from connect.worker.tasks.source import Message, Sender, SourceParts, key_of
from connect.worker.tasks.thread import TaskThread
from millstream.connect.connectors import SourceOffset, SourcePartition, TransactionContext
from millstream.connect.data.records import SourceRecord
from millstream.connect.errors import ConnectException

log = logging.getLogger(__name__)


class AtLeastOnce:
    """Owns the records that are sent but not stored, and the offsets that are not written yet."""

    def __init__(self, thread: TaskThread, parts: SourceParts, sender: Sender) -> None:
        self.transaction_context: TransactionContext | None = None
        self._thread = thread
        self._parts = parts
        self._sender = sender
        self._submitted = SubmittedRecords()
        self._kept: dict[str, tuple[SourcePartition, SourceOffset]] = {}
        """Offsets that may be written and are not written yet."""

    def make_producer(self) -> Producer:
        return Producer(self._parts.producer)

    def begin(self) -> None:
        """Nothing is open between two records."""

    def pause(self) -> None:
        """`serve` goes on in a pause."""

    def give_up(self) -> None:
        """A record without an offset comes again."""

    def send(self, message: Message, polled: SourceRecord) -> None:
        submitted = self._submit(polled)
        self._sender.produce(message, partial(self._delivered, polled, submitted))

    def _submit(self, record: SourceRecord) -> SubmittedRecord | None:
        if record.source_partition is None or record.source_offset is None:
            return None
        return self._submitted.submit(record.source_partition, record.source_offset)

    def leave_out(self, polled: SourceRecord) -> None:
        self._sender.commit_record(polled, None)

    def _delivered(
        self, record: SourceRecord, submitted: SubmittedRecord | None, error: Any, message: Any
    ) -> None:
        if error is not None:
            self._not_delivered(record, submitted, KafkaException(error))
            return
        if submitted is not None:
            submitted.is_stored = True
        metadata = self._sender.count_stored(message)
        if metadata is not None:
            self._sender.commit_record(record, metadata)

    def _not_delivered(
        self, record: SourceRecord, submitted: SubmittedRecord | None, error: Exception
    ) -> None:
        if not self._parts.steps.tolerance.settings.is_tolerated:
            self._sender.fail(error)
            return
        self._parts.steps.failed_outside(Stage.KAFKA_PRODUCE, type(self), error, record)
        if submitted is not None:
            submitted.is_stored = True
        self._sender.commit_record(record, None)

    def serve(self) -> None:
        """Process delivery reports, and write offsets when the interval is over."""
        self._sender.serve()
        self._take_stored()
        if now_ms() >= self._sender.next_commit_ms:
            self._commit()

    def finish(self, *, is_failed: bool) -> None:
        # After a failure too, so that the records that are stored are not repeated.
        del is_failed
        self._sender.producer.flush(self._parts.flush_timeout_ms / 1000)
        self._commit()

    def _take_stored(self) -> None:
        """Drop the stored records; keep the last offset of each source partition."""
        for partition, offset in self._submitted.take_offsets():
            self._kept[key_of(partition)] = (partition, offset)

    def _commit(self) -> None:
        self._sender.next_commit_ms = now_ms() + self._parts.flush_interval_ms
        self._take_stored()
        if self._thread.is_left:
            return
        try:
            if self._kept:
                connector = self._thread.task.connector
                entries = list(self._kept.values())
                self._parts.offsets.write(connector, entries, self._parts.flush_timeout_ms)
                self._kept.clear()
        except ConnectException as error:
            # The offsets stay here and are written with the next ones.
            self._sender.counts.offset_commit_failure_total += 1
            trace = self._thread.concealing.trace(error)
            log.error("offsets were not kept task=%s\n%s", self._thread.task, trace)
            return
        self._sender.counts.offset_commit_completion_total += 1
        self._sender.commit()
