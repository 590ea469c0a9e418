"""A task of ObjectStoreSink: gathers records, and writes files when they are complete.

Offsets are committed up to what is written. A store that is away keeps the files waiting here and
the records of that `put` coming again; those that were taken before are known by their offsets.
"""

import logging
from collections.abc import Mapping, Sequence

from connect.clock import now_ms
from connect.connectors.object_store.files import FileSettings, PartitionFiles
from connect.connectors.object_store.formats import format_of
from connect.connectors.object_store.settings import CONFIG, VERSION
from connect.connectors.object_store.store import Store
from millrace.connect import (
    DataException,
    RetriableException,
    SinkRecord,
    SinkTask,
    TopicPartition,
)
from millrace.connect.connectors import Settings

log = logging.getLogger(__name__)


class ObjectStoreSinkTask(SinkTask):
    """Owns the records that are in no file yet, at most `flush.size` for each folder."""

    kafka_class = "io.confluent.connect.s3.S3SinkTask"

    @classmethod
    def version(cls) -> str:
        return VERSION

    def start(self, settings: Settings) -> None:
        parsed = CONFIG.parse(settings)
        self._settings = FileSettings(parsed)
        self._store = Store(parsed)
        self._format = format_of(parsed)
        self._schedule_ms: int = parsed["rotate.schedule.interval.ms"]
        self._next_end_ms = now_ms() + self._schedule_ms
        self._files: dict[TopicPartition, PartitionFiles] = {}

    def open(self, partitions: Sequence[TopicPartition]) -> None:
        for at in partitions:
            self._files.pop(at, None)

    def close(self, partitions: Sequence[TopicPartition]) -> None:
        # What is not complete is another task's to read again.
        for at in partitions:
            self._files.pop(at, None)

    def put(self, records: Sequence[SinkRecord]) -> None:
        for record in records:
            self._add(record)
        if self._schedule_ms > 0 and now_ms() >= self._next_end_ms:
            self._next_end_ms = now_ms() + self._schedule_ms
            for files in self._files.values():
                files.end()
        self._write()

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        found = {}
        for at, offset in offsets.items():
            files = self._files.get(at)
            found[at] = offset if files is None else min(offset, files.written_offset)
            if files is not None and not files.opened and not files.complete:
                # What came behind it was left out before it reached this task.
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
        try:
            files.add(record)
        except DataException as error:
            reporter = self.context.errant_record_reporter
            if reporter is None:
                raise
            reporter.report(record, error)
            files.next_offset = record.original_kafka_offset + 1

    def _remove_uncommitted(self, record: SinkRecord, at: TopicPartition) -> None:
        """Remove files from this record on: where they ended, the clock had said.

        They were written and their offsets were not committed, so that all of them come again, and
        might fall into other files.
        """
        prefix = self._settings.prefix(*at)
        try:
            for path in self._store.paths(self._settings.topic_folder(record.topic)):
                name = path.rpartition("/")[2]
                first = name.removeprefix(prefix).partition(".")[0]
                if not name.startswith(prefix) or not first.isdecimal():
                    continue
                if int(first) >= record.original_kafka_offset:
                    log.warning("file was not committed and is removed path=%s", path)
                    self._store.remove(path)
        except OSError as error:
            raise RetriableException(f"The store cannot be looked at: {error}") from error

    def _write(self) -> None:
        for files in self._files.values():
            for file in list(files.complete):
                body = self._format(file)
                try:
                    self._store.write(file.path, body)
                except OSError as error:
                    raise RetriableException(f"The store does not take it: {error}") from error
                files.complete.remove(file)
                log.info(
                    "file written path=%s records=%s bytes=%s",
                    file.path,
                    len(file.values),
                    len(body),
                )
                self.context.request_commit()
