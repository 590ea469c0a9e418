"""Collect records into files and decide where a file ends. Does no IO.

All files of a Kafka partition end together. So the committed offset is that of the next record, and
records that are read again after a restart go into the same files.
"""

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from common.process.clock import timestamp_ms
from connect.connectors.object_store.settings import TIMED, extractor, short
from connect.connectors.object_store.times import Clock, field_of, folders_of_times, timestamp_of
from millstream.connect import DataException, Schema, SinkRecord
from millstream.connect.data.string_form import string_form

Partitioner = Callable[[SinkRecord], str]
_HOUR_MS: Final = 3_600_000
_FIXED: Final = {
    "DailyPartitioner": ("'year'=YYYY/'month'=MM/'day'=dd", 24 * _HOUR_MS),
    "HourlyPartitioner": ("'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH", _HOUR_MS),
}


def partitioner_of(parsed: Mapping[str, Any], clock: Clock) -> Partitioner:
    """Return the partitioner that the settings name; raise ConfigException."""
    kind = short(parsed["partitioner.class"])
    if kind == "DefaultPartitioner":
        return lambda record: f"partition={record.kafka_partition}"
    if kind == "FieldPartitioner":
        names: list[str] = parsed["partition.field.name"]
        return lambda record: "/".join(
            f"{name}={_folder(field_of(record, name))}" for name in names
        )
    pattern, duration_ms = _FIXED.get(
        kind, (parsed["path.format"], parsed["partition.duration.ms"])
    )
    return folders_of_times(parsed, pattern, duration_ms, timestamp_of(parsed, clock))


def _folder(value: Any) -> str:
    """Return a value as the name of one folder; a slash in it is escaped. Raise DataException."""
    text = str(value) if isinstance(value, datetime.date) else string_form(None, value)
    try:
        return quote(text, safe=" ,;=@+()[]:")
    except UnicodeEncodeError as error:
        raise DataException(f"A field that names a folder is not valid Unicode: {error}") from None


UNFINISHED = ".unfinished"
"""The extension of a file that is being written, which keeps it from readers of *.parquet."""
MOST_PATH_BYTES = 1024
"""The longest key of S3."""
MOST_NAME_BYTES = 255 - len(UNFINISHED)
SHOWN_CHARACTERS = 100
EXTENSIONS = {"ParquetFormat": ".parquet", "AvroFormat": ".avro", "JsonFormat": ".json"}


@dataclass(slots=True)
class File:
    """Records that go into one file, in their order; all have one schema."""

    path: str
    schema: Schema | None
    first_ms: int
    begin_offset: int
    """The first offset of all files that end together with this one."""
    records: list[SinkRecord] = field(default_factory=list)

    @property
    def values(self) -> list[Any]:
        return [record.value for record in self.records]


@dataclass(slots=True)
class PartitionFiles:
    """The records of one Kafka partition that are not written yet.

    Invariant: every record from `written_offset` up to `next_offset` is in a file of `complete` or
    `opened`, or was ignored. A task that starts at `written_offset` makes the same files.
    """

    settings: "FileSettings"
    next_offset: int
    complete: list[File] = field(default_factory=list)
    opened: dict[str, File] = field(default_factory=dict)

    @property
    def written_offset(self) -> int:
        """The offset before which all records are written."""
        files = (*self.complete, *self.opened.values())
        return min((file.begin_offset for file in files), default=self.next_offset)

    def add(self, record: SinkRecord) -> None:
        """Add a record unless it was added before; raise DataException."""
        offset = record.original_kafka_offset
        if offset < self.next_offset:
            return
        if record.value is None:
            if self.settings.fails_on_null:
                raise DataException(f"A record without value: {record.topic} offset {offset}")
            self.next_offset = offset + 1
            return
        folder, time_ms = self.settings.place(record)
        open_file = self.opened.get(folder)
        if open_file is not None and self.settings.ends_before(open_file, record, time_ms):
            self.end()
            open_file = None
        if open_file is None:
            others = next(iter(self.opened.values()), None)
            begin_offset = offset if others is None else others.begin_offset
            path = self.settings.path(record, folder)
            open_file = File(path, record.value_schema, time_ms, begin_offset)
            self.opened[folder] = open_file
        open_file.records.append(record)
        self.next_offset = offset + 1
        if len(open_file.records) >= self.settings.flush_size:
            self.end()

    def end(self) -> None:
        """End all open files."""
        self.complete += self.opened.values()
        self.opened.clear()


class FileSettings:
    """The settings for files."""

    def __init__(self, parsed: Mapping[str, Any], clock: Clock = timestamp_ms) -> None:
        """Raise ConfigException for invalid settings."""
        self.flush_size: int = parsed["flush.size"]
        self.fails_on_null: bool = parsed["behavior.on.null.values"] == "fail"
        self._interval_ms: int = parsed["rotate.interval.ms"]
        self._partitioner: Partitioner = partitioner_of(parsed, clock)
        is_wallclock = extractor(parsed["timestamp.extractor"]) == "Wallclock"
        if is_wallclock and short(parsed["partitioner.class"]) not in TIMED:
            # Only the records decide where files end, unless the clock decides their folders.
            parsed = {**parsed, "timestamp.extractor": "Record"}
        self._time_of: Callable[[SinkRecord], int] = timestamp_of(parsed, clock)
        self._folder = parsed["topics.dir"].strip("/")
        self._width: int = parsed["filename.offset.zero.pad.width"]
        self._extension = _extension(parsed)
        is_folder = parsed["store.url"].startswith("file:")
        self._most_name_bytes = MOST_NAME_BYTES if is_folder else MOST_PATH_BYTES

    def place(self, record: SinkRecord) -> tuple[str, int]:
        """Return a record's folder, and its time if a setting needs it."""
        folder = f"{self.topic_folder(record.topic)}/{self._partitioner(record)}"
        return folder, 0 if self._interval_ms < 0 else self._time_of(record)

    def topic_folder(self, topic: str) -> str:
        return f"{self._folder}/{topic}"

    def prefix(self, topic: str, partition: int) -> str:
        """Return the beginning of the names of a partition's files."""
        return f"{topic}+{partition}+"

    def path(self, record: SinkRecord, folder: str) -> str:
        """Return the path of a file by its first record's topic, partition and offset.

        Raise DataException for a path that is too long for the store.
        """
        prefix = self.prefix(record.original_topic, record.original_kafka_partition)
        offset = str(record.original_kafka_offset).zfill(self._width)
        path = f"{folder}/{prefix}{offset}{self._extension}"
        longest = max(len(name.encode()) for name in path.split("/"))
        if len(path.encode()) > MOST_PATH_BYTES or longest > self._most_name_bytes:
            raise DataException(
                f"The file's path is longer than the store allows: {path[:SHOWN_CHARACTERS]}"
            )
        return path

    def ends_before(self, file: File, record: SinkRecord, time_ms: int) -> bool:
        """Return whether a record needs a new file: its schema differs, or it is too much later."""
        if file.schema is not record.value_schema and file.schema != record.value_schema:
            return True
        return self._interval_ms >= 0 and time_ms - file.first_ms >= self._interval_ms


def _extension(parsed: Mapping[str, Any]) -> str:
    kind = short(parsed["format.class"])
    found: str = EXTENSIONS.get(kind, parsed["format.bytearray.extension"])
    is_packed = (
        kind in ("JsonFormat", "ByteArrayFormat") and parsed["s3.compression.type"] == "gzip"
    )
    return f"{found}.gz" if is_packed else found
