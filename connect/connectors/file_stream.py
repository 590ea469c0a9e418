"""FileStreamSource reads the lines of a file as records; FileStreamSink writes records as lines.

Settings, offsets and results are those of Kafka's connect-file: the source's partition is
{"filename": ...} and its offset {"position": ...}, the number of bytes before the next line. A
line ends with \\n, \\r or \\r\\n. Without `file` they use standard input and output, which have no
offsets.

Files must be in a directory that the worker's `file.allowed.directories` names. A pipe, or any
other file that is not a regular one, is opened without a wait for its other end and has no offsets.

Kafka's source counts characters but seeks by bytes, so its offsets are wrong after the first
character that is not ASCII. This source counts bytes, which gives the same offsets for ASCII.
"""

import os
import re
import select
import stat
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import IO, Any, Final

from common.process.clock import timestamp_ms
from connect.local_files import allowed_path
from millstream.connect import (
    ConfigDef,
    ConfigException,
    ConfigValue,
    ConnectException,
    ExactlyOnceSupport,
    Importance,
    Schema,
    SinkConnector,
    SinkRecord,
    SinkTask,
    SourceConnector,
    SourceRecord,
    SourceTask,
    TopicPartition,
)
from millstream.connect.config.types import Type
from millstream.connect.config.validators import NonEmptyString
from millstream.connect.connectors import Settings, SourceOffset, SourcePartition
from millstream.connect.data.string_form import string_form

FILENAME: Final = "filename"
POSITION: Final = "position"
_PACKAGE = "org.apache.kafka.connect.file"
_READ_BYTES = 1 << 16
_WAIT_SECONDS = 0.25
# After a \r at the end of the buffer, a \n may follow.
_LINE_END = re.compile(rb"\r\n|\n|\r(?!\Z)")
_VERSION = "4.3.1"  # Kafka's version; users see no difference to its connectors.
_STRING = Schema.string()

_FILE_DOC = "The file to {}. Missing or empty: standard {}."
_SOURCE_CONFIG = (
    ConfigDef()
    .define("file", Type.STRING, Importance.HIGH, _FILE_DOC.format("read", "input"), default=None)
    .define(
        "topic",
        Type.STRING,
        Importance.HIGH,
        "The file that lines are written to.",
        validator=NonEmptyString(),
    )
    .define(
        "batch.size",
        Type.INT,
        Importance.LOW,
        "The largest number of records that one poll returns.",
        default=2000,
    )
)
_SINK_CONFIG = ConfigDef().define(
    "file",
    Type.STRING,
    Importance.HIGH,
    _FILE_DOC.format("append to", "output"),
    default=None,
)


def _file_of(settings: Settings) -> str | None:
    """Return the file that a configuration names, None for standard input and output.

    It is the parsed value, without control characters and spaces around it, as Kafka's is.
    """
    filename: str | None = _SINK_CONFIG.parse(settings)["file"]
    return filename or None


def _with_file_mistake(values: dict[str, ConfigValue]) -> dict[str, ConfigValue]:
    """Add an error to the setting of a file that the worker does not allow."""
    file = values["file"]
    try:
        if file.value:
            allowed_path("file", str(file.value))
    except ConfigException as error:
        file.error_messages.append(str(error))
    return values


def _opened(filename: str, flags: int) -> int:
    """Open a file that the worker allows, without a wait for the other end of a pipe.

    Raise ConfigException if the file is not allowed, OSError if it cannot be opened.
    """
    path = allowed_path("file", filename)
    # All links are resolved already: a link found here was created after the check.
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)


class FileStreamSourceConnector(SourceConnector):
    """Reads a file line by line, and waits for new lines."""

    kafka_class = f"{_PACKAGE}.FileStreamSourceConnector"

    @classmethod
    def version(cls) -> str:
        return _VERSION

    @classmethod
    def config(cls) -> ConfigDef:
        return _SOURCE_CONFIG

    def validate(self, settings: Settings) -> dict[str, ConfigValue]:
        return _with_file_mistake(super().validate(settings))

    def start(self, settings: Settings) -> None:
        _SOURCE_CONFIG.parse(settings)
        if filename := _file_of(settings):
            allowed_path("file", filename)
        super().start(settings)

    def changed_by_reading(self, settings: Settings) -> str | None:
        filename = _file_of(settings)
        if not filename:
            return "standard input cannot be read a second time"
        path = allowed_path("file", filename)
        if os.path.exists(path) and not os.path.isfile(path):
            return "it is not a regular file, so it cannot be read a second time"
        return None

    def task_class(self) -> type[SourceTask]:
        return FileStreamSourceTask

    def exactly_once_support(self, settings: Settings) -> ExactlyOnceSupport:
        is_file = _file_of(settings) is not None
        return ExactlyOnceSupport.SUPPORTED if is_file else ExactlyOnceSupport.UNSUPPORTED

    def alter_offsets(
        self,
        settings: Settings,
        offsets: Sequence[tuple[SourcePartition | None, SourceOffset | None]],
    ) -> bool:
        if _file_of(settings) is None:
            raise ConnectException(
                "Offsets cannot be modified if the 'file' configuration is unspecified. This is "
                "because stdin is used for input and offsets are not tracked."
            )
        for partition, offset in offsets:
            # Offsets of any partition may be removed, even invalid ones.
            if offset is not None:
                _check_offset(partition, offset)
        return True


def _check_offset(partition: SourcePartition | None, offset: Mapping[str, Any]) -> None:
    if POSITION not in offset:
        raise ConnectException(
            f"Offset objects should either be null or contain the key '{POSITION}'"
        )
    position = offset[POSITION]
    if not isinstance(position, int) or isinstance(position, bool):
        raise ConnectException(
            f"The value for the '{POSITION}' key in the offset is expected to be a Long value"
        )
    if position < 0:
        raise ConnectException(
            f"The value for the '{POSITION}' key in the offset should be a non-negative value"
        )
    if partition is None:
        raise ConnectException("Partition objects cannot be null")
    if FILENAME not in partition:
        raise ConnectException(f"Partition objects should contain the key '{FILENAME}'")


class FileStreamSourceTask(SourceTask):
    """Owns the open file, and the bytes of a line whose end was not read yet."""

    kafka_class = f"{_PACKAGE}.FileStreamSourceTask"

    @classmethod
    def version(cls) -> str:
        return _VERSION

    def start(self, settings: Settings) -> None:
        parsed = _SOURCE_CONFIG.parse(settings)
        self._filename = _file_of(settings)
        self._topic: str = parsed["topic"]
        self._batch_size: int = max(1, parsed["batch.size"])
        self._partition = {FILENAME: self._filename}
        self._has_offsets = self._filename is not None
        self._stream: IO[bytes] | None = None if self._filename else sys.stdin.buffer
        self._unread = b""
        self._begin = 0
        """The position in `_unread` at which the next line begins."""
        self._searched = 0
        """The position in `_unread` up to which there is no end of that line."""
        self._position = 0
        self._stopping = threading.Event()

    def poll(self) -> list[SourceRecord] | None:
        if self._stream is None and not self._open():
            self._stopping.wait(_WAIT_SECONDS)
            return None
        records: list[SourceRecord] = []
        while len(records) < self._batch_size:
            line = self._next_line()
            if line is None:
                break
            offset = {POSITION: self._position} if self._has_offsets else None
            records.append(
                SourceRecord(
                    topic=self._topic,
                    value_schema=_STRING,
                    value=line.decode("utf-8", "replace"),
                    timestamp_ms=timestamp_ms(),
                    source_partition=self._partition,
                    source_offset=offset,
                )
            )
        if not records:
            self._stopping.wait(_WAIT_SECONDS)
        return records

    def note(self) -> str | None:
        return None if self._stream is not None else f"There is no file {self._filename} yet."

    def stop(self) -> None:
        self._stopping.set()
        if self._stream is not None and self._filename:
            self._stream.close()

    def _open(self) -> bool:
        assert self._filename is not None
        kept = self.context.offset_storage_reader.offset(self._partition)
        position = 0 if kept is None else kept.get(POSITION) or 0
        if not isinstance(position, int):
            raise ConnectException("Offset position is the incorrect type")
        try:
            descriptor = _opened(self._filename, os.O_RDONLY)
        except FileNotFoundError:
            return False
        self._stream = os.fdopen(descriptor, "rb")
        self._has_offsets = stat.S_ISREG(os.fstat(descriptor).st_mode)
        if self._has_offsets:
            self._stream.seek(position)
            self._position = position
        return True

    def _next_line(self) -> bytes | None:
        """Return the next complete line; None if its end is not in the file yet."""
        while not (end := _LINE_END.search(self._unread, max(self._begin, self._searched - 1))):
            more = self._read()
            if not more:
                return None
            self._unread = self._unread[self._begin :] + more
            self._searched = len(self._unread) - len(more)
            self._begin = 0
        line = self._unread[self._begin : end.start()]
        self._position += end.end() - self._begin
        self._begin = end.end()
        return line

    def _read(self) -> bytes:
        assert self._stream is not None
        if self._filename is None:
            ready, _, _ = select.select([self._stream], [], [], 0)
            return os.read(self._stream.fileno(), _READ_BYTES) if ready else b""
        # A pipe returns None while its writer has written nothing.
        return self._stream.read(_READ_BYTES) or b""


class FileStreamSinkConnector(SinkConnector):
    """Appends records to one file."""

    kafka_class = f"{_PACKAGE}.FileStreamSinkConnector"

    @classmethod
    def version(cls) -> str:
        return _VERSION

    @classmethod
    def config(cls) -> ConfigDef:
        return _SINK_CONFIG

    def validate(self, settings: Settings) -> dict[str, ConfigValue]:
        return _with_file_mistake(super().validate(settings))

    def start(self, settings: Settings) -> None:
        if filename := _file_of(settings):
            allowed_path("file", filename)
        super().start(settings)

    def task_class(self) -> type[SinkTask]:
        return FileStreamSinkTask

    def task_configs(self, max_tasks: int) -> list[Settings]:
        return [self.settings] * max_tasks

    def alter_offsets(
        self, settings: Settings, offsets: Mapping[TopicPartition, int | None]
    ) -> bool:
        return True


class FileStreamSinkTask(SinkTask):
    """Owns the open file. When `put` returns, its records are written to the operating system."""

    kafka_class = f"{_PACKAGE}.FileStreamSinkTask"

    @classmethod
    def version(cls) -> str:
        return _VERSION

    def start(self, settings: Settings) -> None:
        self._filename = _file_of(settings)
        if self._filename is None:
            self._stream: IO[bytes] = sys.stdout.buffer
            return
        try:
            descriptor = _opened(self._filename, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.set_blocking(descriptor, True)
            self._stream = os.fdopen(descriptor, "ab")
        except OSError as error:
            raise ConnectException(
                f"Couldn't find or create file '{self._filename}' for FileStreamSinkTask"
            ) from error

    def put(self, records: Sequence[SinkRecord]) -> None:
        lines = [string_form(record.value_schema, record.value) for record in records]
        # All at once: a batch has some hundred lines, and each encoding has its price.
        self._stream.write("\n".join([*lines, ""]).encode("utf-8", "replace"))
        # As with Kafka's connector, readers of the file see a record as soon as it is put.
        self._stream.flush()

    def stop(self) -> None:
        if self._filename is not None:
            self._stream.close()
