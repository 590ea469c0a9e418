"""The offsets file of a standalone worker."""

import os
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from connect.herder.offset_file import OffsetFileError, decode_offset_file, encode_offset_file
from connect.herder.offsets import OffsetState
from connect.worker.offset_store import Entries
from millstream.connect.connectors import SourcePartition
from millstream.connect.errors import ConnectException


class FileOffsetStore:
    """Owns the offsets file. It is replaced as a whole: a crash leaves the old file or the new."""

    def __init__(self, path: Path, changed: Callable[[], None] = lambda: None) -> None:
        """Raises ConnectException when the file exists and cannot be read."""
        self._path = path
        self._lock = threading.Lock()
        self._state = OffsetState()
        self._changed = changed
        try:
            data = path.read_bytes() if path.exists() else b""
            # Apache Kafka's worker creates an empty file before it has offsets.
            entries = decode_offset_file(data) if data else {}
        except (OSError, OffsetFileError) as error:
            raise ConnectException(f"offsets file {path} cannot be read: {error}") from error
        for key, value in entries.items():
            self._state.replay(key, value)

    def offsets(self, connector: str, partitions: Sequence[SourcePartition]) -> list[Any]:
        with self._lock:
            return [self._state.offset(connector, each) for each in partitions]

    def of_connector(self, connector: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        with self._lock:
            return self._state.of_connector(connector)

    def write(self, connector: str, entries: Entries, timeout_ms: int) -> None:
        del timeout_ms
        with self._lock:
            for partition, offset in entries:
                self._state.replay(*self._state.record(connector, partition, offset))
            try:
                self._save(encode_offset_file(self._state.records()))
            except OSError as error:
                raise ConnectException(f"offsets cannot be written: {error}") from error
        self._changed()

    def _save(self, data: bytes) -> None:
        descriptor, name = tempfile.mkstemp(dir=self._path.parent, prefix=self._path.name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, self._path)
        except BaseException:
            os.unlink(name)
            raise
