"""The files of a backup, and their checksums.

    SHA256SUMS                              of all other files, as `sha256sum --check` reads it
    manifest.json                           topics, groups, access rules, quotas
    topics/NAME/PARTITION/BASE-OFFSET.log   segments of the log that is restored

SHA256SUMS is written last: a folder without it is no whole backup.
"""

import hashlib
import re
from collections.abc import Iterator
from types import TracebackType
from typing import IO, Final, Self

from backup.manifest import Manifest, ManifestError, TopicBackup, of_json, to_json
from backup.places import Place
from backup.records import HEADER, DamagedBatchError, check, count_of, placed, size_of

SEGMENT_BYTES: Final = 64 << 20
MAX_MANIFEST_BYTES: Final = 256 << 20
MAX_BATCH_BYTES: Final = 100 << 20
"""What brokers accept at most in one request, by default."""
_SUMS, _MANIFEST = "SHA256SUMS", "manifest.json"
_LINE: Final = re.compile(r"([0-9a-f]{64})  ([A-Za-z0-9._/-]{1,400})\n")
_CHUNK_BYTES: Final = 1 << 20


class FolderError(Exception):
    """A place cannot be used, holds no backup, or a damaged one; the text names the file."""


class NewBackup:
    """Owns the place that a backup is written into."""

    def __init__(self, place: Place) -> None:
        """Raise FolderError if there are files."""
        self.place = place
        self.sums: dict[str, str] = {}
        """File -> its checksum."""
        try:
            if not place.is_empty():
                raise FolderError(f"{place} has files already; a backup needs a folder of its own")
        except OSError as error:
            raise FolderError(f"{place}: {error.strerror or error}") from error

    def partition(self, topic: str, partition: int) -> "PartitionWriter":
        return PartitionWriter(self, f"topics/{topic}/{partition}")

    def end(self, manifest: Manifest) -> None:
        """Write what makes the backup whole."""
        text = to_json(manifest).encode()
        self.place.write_whole(_MANIFEST, text)
        self.sums[_MANIFEST] = hashlib.sha256(text).hexdigest()
        lines = [f"{digest}  {name}\n" for name, digest in sorted(self.sums.items())]
        self.place.write_whole(_SUMS, "".join(lines).encode())


class PartitionWriter:
    """Owns the open segment of a partition; used in a `with` block."""

    def __init__(self, backup: NewBackup, place: str) -> None:
        self._backup = backup
        self._place = place
        self._file: IO[bytes] | None = None
        self._name = ""
        self._digest = hashlib.sha256()
        self.records = 0

    def append(self, batch: bytes) -> None:
        """Write a batch behind the others."""
        if self._file is not None and self._file.tell() >= SEGMENT_BYTES:
            self._end_segment()
        if self._file is None:
            self._name = f"{self._place}/{self.records:020}.log"
            self._file, self._digest = self._backup.place.create(self._name), hashlib.sha256()
        data = placed(batch, self.records)
        self._file.write(data)
        self._digest.update(data)
        self.records += count_of(data)

    def _end_segment(self) -> None:
        if self._file is not None:
            self._backup.place.finish(self._file)
            self._backup.sums[self._name] = self._digest.hexdigest()
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end_segment()


class StoredBackup:
    """A place with a backup. Methods raise FolderError."""

    def __init__(self, place: Place) -> None:
        """Read the checksums and the manifest."""
        self.place = place
        self._sums = self._read_sums()
        text = self._small_file(_MANIFEST)
        if hashlib.sha256(text).hexdigest() != self._sums.get(_MANIFEST):
            raise self._damaged(_MANIFEST, "it does not have the checksum of SHA256SUMS")
        try:
            self.manifest = of_json(text)
        except ManifestError as error:
            raise self._damaged(_MANIFEST, str(error)) from error

    def check(self, topic: TopicBackup) -> None:
        """Raise FolderError unless the files of a topic are what was written."""
        for number, partition in enumerate(topic.partitions):
            for name in self._segments(topic.name, number):
                self._check_sum(name)
            found = sum(map(count_of, self.batches(topic.name, number)))
            if found != partition.records:
                place = f"topics/{topic.name}/{number}"
                raise self._damaged(
                    place, f"{found} records are there, {partition.records} in the manifest"
                )

    def batches(self, topic: str, partition: int) -> Iterator[bytes]:
        """Yield the batches of a partition in order."""
        for name in self._segments(topic, partition):
            try:
                with self.place.open(name) as file:
                    yield from self._batches(name, file)
            except OSError as error:
                raise self._damaged(name, str(error.strerror or error)) from error

    def _batches(self, name: str, file: IO[bytes]) -> Iterator[bytes]:
        while header := file.read(HEADER.size):
            try:
                size = size_of(header)
                if size > MAX_BATCH_BYTES:
                    raise DamagedBatchError(f"a batch has more than {MAX_BATCH_BYTES} bytes")
                batch = header + file.read(size - len(header))
                if len(batch) < size:
                    raise DamagedBatchError("its last batch is cut off")
                check(batch)
            except DamagedBatchError as error:
                raise self._damaged(name, str(error)) from error
            yield batch

    def _segments(self, topic: str, partition: int) -> list[str]:
        before = f"topics/{topic}/{partition}/"
        return sorted(name for name in self._sums if name.startswith(before))

    def _check_sum(self, name: str) -> None:
        digest = hashlib.sha256()
        try:
            with self.place.open(name) as file:
                while chunk := file.read(_CHUNK_BYTES):
                    digest.update(chunk)
        except OSError as error:
            raise self._damaged(name, str(error.strerror or error)) from error
        if digest.hexdigest() != self._sums[name]:
            raise self._damaged(name, "it does not have the checksum of SHA256SUMS")

    def _read_sums(self) -> dict[str, str]:
        found = {}
        text = self._small_file(_SUMS).decode(errors="replace")
        for number, line in enumerate(text.splitlines(keepends=True), 1):
            match = _LINE.fullmatch(line)
            if match is None or ".." in match[2].split("/") or match[2].startswith("/"):
                raise self._damaged(_SUMS, f"line {number} is no checksum of a file of a backup")
            found[match[2]] = match[1]
        return found

    def _small_file(self, name: str) -> bytes:
        try:
            with self.place.open(name) as file:
                data = file.read(MAX_MANIFEST_BYTES + 1)
        except FileNotFoundError as error:
            raise FolderError(f"{self.place} is no whole backup: there is no {name}") from error
        except OSError as error:
            raise self._damaged(name, str(error.strerror or error)) from error
        if len(data) > MAX_MANIFEST_BYTES:
            raise self._damaged(name, f"it has more than {MAX_MANIFEST_BYTES} bytes")
        return data

    def _damaged(self, name: str, why: str) -> FolderError:
        return FolderError(f"{self.place}/{name}: {why}")
