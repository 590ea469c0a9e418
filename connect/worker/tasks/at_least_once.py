"""A source task that writes its offsets after its records are stored.

An offset is written when its record and all earlier records of its source partition are stored
(`connect.herder.submitted_records`). So a crash repeats records and loses none.
"""

import logging
from functools import partial
from typing import Any

from confluent_kafka import KafkaException, Producer

from connect.clock import now_ms
from connect.errors.tolerance import Stage
from connect.herder.submitted_records import SubmittedRecord, SubmittedRecords
from connect.worker.tasks.source import Message, SourceParts, SourceWork, key_of
from connect.worker.tasks.thread import TaskCounts, TaskThread
from millstream.connect.connectors import SourceOffset, SourcePartition
from millstream.connect.data.records import SourceRecord
from millstream.connect.errors import ConnectException

log = logging.getLogger(__name__)


class AtLeastOnceWork(SourceWork):
    """Owns the records that are sent but not stored, and the offsets that are not written yet."""

    def __init__(self, thread: TaskThread, parts: SourceParts, counts: TaskCounts) -> None:
        super().__init__(thread, parts, counts)
        self._submitted = SubmittedRecords()
        self._kept: dict[str, tuple[SourcePartition, SourceOffset]] = {}
        """Offsets that may be written and are not written yet."""

    def go_on(self) -> None:
        try:
            self._run()
        except BaseException:
            # Write the offsets of the records that are stored, so that they are not repeated.
            self._commit_last()
            raise
        self._commit_last()

    def _make_producer(self) -> Producer:
        return Producer(self._parts.producer)

    def _hand_on(self, message: Message, polled: SourceRecord) -> None:
        submitted = self._submit(polled)
        self._produce(message, partial(self._delivered, polled, submitted))

    def _submit(self, record: SourceRecord) -> SubmittedRecord | None:
        if record.source_partition is None or record.source_offset is None:
            return None
        return self._submitted.submit(record.source_partition, record.source_offset)

    def _dropped(self, polled: SourceRecord) -> None:
        self._commit_record(polled, None)

    def _delivered(
        self, record: SourceRecord, submitted: SubmittedRecord | None, error: Any, message: Any
    ) -> None:
        if error is not None:
            self._not_delivered(record, submitted, KafkaException(error))
            return
        if submitted is not None:
            submitted.is_stored = True
        metadata = self._count_stored(message)
        if metadata is not None:
            self._commit_record(record, metadata)

    def _not_delivered(
        self, record: SourceRecord, submitted: SubmittedRecord | None, error: Exception
    ) -> None:
        if not self._parts.steps.tolerance.settings.is_tolerated:
            self._send_error = self._send_error or error
            return
        self._parts.steps.failed_outside(Stage.KAFKA_PRODUCE, type(self), error, record)
        if submitted is not None:
            submitted.is_stored = True
        self._commit_record(record, None)

    def _serve(self) -> None:
        """Process delivery reports, and write offsets when the interval is over."""
        assert self._producer is not None
        self._producer.poll(0)
        self._take_stored()
        self._remind_of_topics()
        if now_ms() >= self._next_commit_ms:
            self._commit()

    def _commit_last(self) -> None:
        assert self._producer is not None
        self._producer.flush(self._parts.flush_timeout_ms / 1000)
        self._commit()

    def _take_stored(self) -> None:
        """Drop the stored records; keep the last offset of each source partition."""
        for partition, offset in self._submitted.take_offsets():
            self._kept[key_of(partition)] = (partition, offset)

    def _commit(self) -> None:
        self._next_commit_ms = now_ms() + self._parts.flush_interval_ms
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
            self.counts.offset_commit_failure_total += 1
            trace = self._thread.concealing.trace(error)
            log.error("offsets were not kept task=%s\n%s", self._thread.task, trace)
            return
        self.counts.offset_commit_completion_total += 1
        self._tell_task()
