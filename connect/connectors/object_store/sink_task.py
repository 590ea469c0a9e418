"""A task of ObjectStoreSink: collects records and writes files when they are complete.

Offsets are committed up to the last written record. If the store is unreachable, the files stay in
memory and the worker puts the same records again; the task recognizes them by their offsets.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from common.process.clock import timestamp_ms
from connect.connectors.object_store.files import File, FileSettings, PartitionFiles
from connect.connectors.object_store.formats import format_of
from connect.connectors.object_store.settings import CONFIG
from connect.connectors.object_store.store import Store
from connect.connectors.object_store.times import next_end_ms, zone_in
from connect.connectors.original import VERSION
from millstream.connect import (
    DataException,
    RetriableException,
    SinkRecord,
    SinkTask,
    TopicPartition,
)
from millstream.connect.connectors import Settings

log = logging.getLogger(__name__)


class ObjectStoreSinkTask(SinkTask):
    """Owns the records that are not written yet, at most `flush.size` for each folder."""

    kafka_class = "io.confluent.connect.s3.S3SinkTask"

    @classmethod
    def version(cls) -> str:
        return VERSION

    def start(self, settings: Settings) -> None:
        parsed = CONFIG.parse(settings)
        self._settings = FileSettings(parsed)
        self._store = Store(parsed)
        self._format = format_of(parsed)
        self._reports_null: bool = parsed["report.null.values.to.dlq"]
        self._schedule_ms: int = parsed["rotate.schedule.interval.ms"]
        self._zone = zone_in(parsed)
        self._next_end_ms = 0
        if self._schedule_ms > 0:
            self._next_end_ms = next_end_ms(timestamp_ms(), self._schedule_ms, self._zone)
        self._files: dict[TopicPartition, PartitionFiles] = {}

    def open(self, partitions: Sequence[TopicPartition]) -> None:
        for at in partitions:
            self._files.pop(at, None)

    def close(self, partitions: Sequence[TopicPartition]) -> None:
        # The next task of this partition reads the records of incomplete files again.
        for at in partitions:
            self._files.pop(at, None)

    def put(self, records: Sequence[SinkRecord]) -> None:
        for record in records:
            self._add(record)
        now_ms = timestamp_ms()
        if self._schedule_ms > 0 and now_ms >= self._next_end_ms:
            self._next_end_ms = next_end_ms(now_ms, self._schedule_ms, self._zone)
            for files in self._files.values():
                files.end()
        self._write()

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        found = {}
        for at, offset in offsets.items():
            files = self._files.get(at)
            found[at] = offset if files is None else min(offset, files.written_offset)
            if files is not None and not files.opened and not files.complete:
                # The worker dropped the records after it, so their offsets can be committed.
                found[at] = offset
        return found

    def _add(self, record: SinkRecord) -> None:
        at = TopicPartition(record.original_topic, record.original_kafka_partition)
        files = self._files.get(at)
        if files is None:
            offset = record.original_kafka_offset
            files = PartitionFiles(self._settings, offset)
            if self._schedule_ms > 0:
                self._remove_uncommitted(record, at)
            self._files[at] = files
        if record.value is None and not self._settings.fails_on_null:
            self._report_ignored(record)
        try:
            files.add(record)
        except DataException as error:
            self._report(record, error)
            files.next_offset = record.original_kafka_offset + 1

    def _report(self, record: SinkRecord, error: DataException) -> None:
        """Report a record that cannot be written; raise the error if errors are not tolerated."""
        reporter = self.context.errant_record_reporter
        if reporter is None:
            raise error
        reporter.report(record, error)

    def _report_ignored(self, record: SinkRecord) -> None:
        reporter = self.context.errant_record_reporter
        if self._reports_null and reporter is not None:
            reporter.report(record, DataException(f"A record without value: {record.topic}"))

    def _remove_uncommitted(self, record: SinkRecord, at: TopicPartition) -> None:
        """Remove the partition's files that begin at or after this record.

        They were written, but their offsets were not committed. Their records come again, and may
        go into other files because the clock decides where these end.
        """
        prefix = self._settings.prefix(*at)
        try:
            for path in self._store.paths(self._settings.topic_folder(record.topic)):
                name = path.rpartition("/")[2]
                first = name.removeprefix(prefix).partition(".")[0]
                if not name.startswith(prefix) or not first.isdecimal():
                    continue
                if int(first) >= record.original_kafka_offset:
                    log.warning("file without a committed offset is removed path=%s", path)
                    self._store.remove(path)
        except OSError as error:
            raise RetriableException(f"The files in the store cannot be listed: {error}") from error

    def _write(self) -> None:
        for files in self._files.values():
            for file in list(files.complete):
                body = self._body(file)
                try:
                    if body is not None:
                        self._store.write(file.path, body)
                except OSError as error:
                    raise RetriableException(
                        f"A file cannot be written to the store: {error}"
                    ) from error
                files.complete.remove(file)
                log.info(
                    "file written path=%s records=%s bytes=%s",
                    file.path,
                    len(file.records),
                    len(body or b""),
                )
                self.context.request_commit()

    def _body(self, file: File) -> bytes | None:
        """Return a file's bytes without records that cannot be written; None if no record is left.

        Such records are reported. Raise DataException if errors are not tolerated.
        """
        try:
            return self._format(file)
        except DataException as error:
            if self.context.errant_record_reporter is None:
                raise
            log.warning(
                "file has records that cannot be written path=%s error=%s", file.path, error
            )
        good = []
        for record in file.records:
            try:
                self._format(replace(file, records=[record]))
            except DataException as error:
                self._report(record, error)
            else:
                good.append(record)
        file.records = good
        return self._format(file) if good else None
