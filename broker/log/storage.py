"""The only access to the disk: `Storage` for names, `File` for bytes, and the real disk.

All code in `broker.log` uses these two protocols, so that tests can use a simulated disk that
loses, tears and fails writes. An `OSError` is passed on unchanged: it takes the log directory
offline (`log_directories`), and no operation is retried.

A file stays open as long as its object exists, so a `FileRegion` that is being sent survives the
deletion of its segment.
"""

import ctypes
import fcntl
import os
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple, Protocol

from broker.records.header import BytesLike

_SYNCFS = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)


class FileStatus(NamedTuple):
    """The status of a path."""

    size_bytes: int
    modified_ms: int
    is_directory: bool


class File(Protocol):
    """Access to bytes by position; different threads may read and write."""

    def read(self, position: int, length: int) -> bytes:
        """Return up to `length` bytes; fewer only at the end of the file."""

    def write(self, position: int, *parts: BytesLike) -> None:
        """Write all parts in order, starting at a position."""

    def truncate(self, size_bytes: int) -> None:
        """Truncate the file to a size."""

    def sync(self) -> None:
        """Make the content survive a power failure."""

    def size_bytes(self) -> int:
        """Return the size."""

    def fileno(self) -> int:
        """Return the file descriptor for sendfile."""

    def lock(self) -> None:
        """Lock the file while this object exists; raise BlockingIOError if it is locked."""


class Storage(Protocol):
    """Names in directories. Changes of names are durable after `sync_directory`."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and writing; without `create`, raise FileNotFoundError if missing."""

    def names(self, directory: str) -> list[str]:
        """Return the names in a directory, sorted."""

    def status(self, path: str) -> FileStatus | None:
        """Return the status of a path, None if it does not exist."""

    def rename(self, old: str, new: str) -> None:
        """Rename a file or directory, and replace a file of the new name."""

    def remove(self, path: str) -> None:
        """Delete a file or an empty directory."""

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents, if they do not exist."""

    def sync_directory(self, path: str) -> None:
        """Make the names in a directory survive a power failure."""

    def sync_all(self, path: str) -> None:
        """Make everything in the file system of a path survive a power failure."""


class RealFile:
    """A file descriptor that is closed when the object is freed."""

    __slots__ = ("_descriptor", "path")

    def __init__(self, path: str, flags: int) -> None:
        self._descriptor = -1
        self.path = path
        self._descriptor = os.open(path, flags | os.O_CLOEXEC, 0o644)

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def read(self, position: int, length: int) -> bytes:
        """Return up to `length` bytes; fewer only at the end of the file."""
        data = os.pread(self._descriptor, length, position)
        if len(data) == length or not data:
            return data
        # A single call returns less than 2 GiB and may be interrupted.
        return data + self.read(position + len(data), length - len(data))

    def write(self, position: int, *parts: BytesLike) -> None:
        """Write all parts in order, starting at a position."""
        expected = sum(map(len, parts))
        written = os.pwritev(self._descriptor, parts, position)
        if written < expected:
            self._write_rest(position, b"".join(parts), written)

    def _write_rest(self, position: int, data: bytes, written: int) -> None:
        """Continue after a short write; if the disk is full, the next call raises ENOSPC."""
        view = memoryview(data)
        while written < len(data):
            written += os.pwrite(self._descriptor, view[written:], position + written)

    def truncate(self, size_bytes: int) -> None:
        """Truncate the file to a size."""
        os.ftruncate(self._descriptor, size_bytes)

    def sync(self) -> None:
        """Make the content survive a power failure."""
        os.fdatasync(self._descriptor)

    def size_bytes(self) -> int:
        """Return the size."""
        return os.fstat(self._descriptor).st_size

    def fileno(self) -> int:
        """Return the file descriptor for sendfile."""
        return self._descriptor

    def lock(self) -> None:
        """Lock the file while this object exists; raise BlockingIOError if it is locked.

        Both kinds of lock are taken: Apache Kafka uses the POSIX lock, which does not exclude a
        second open in the same process.
        """
        fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class _UnsyncedFile(RealFile):
    """A file that a power failure may damage."""

    __slots__ = ()

    def sync(self) -> None:
        """Do nothing."""


class RealStorage:
    """The disk of this machine.

    Without `is_durable` nothing is synced: the end of the process loses nothing, a power failure
    may. This is for tests, whose files do not outlive them.
    """

    def __init__(self, *, is_durable: bool = True) -> None:
        self._is_durable = is_durable
        self._open = RealFile if is_durable else _UnsyncedFile

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and writing; without `create`, raise FileNotFoundError if missing."""
        try:
            return self._open(path, os.O_RDWR | (os.O_CREAT if create else 0))
        except PermissionError:
            if create:
                raise
            # Apache Kafka makes its snapshots read-only, and a snapshot is never written again.
            return self._open(path, os.O_RDONLY)

    def names(self, directory: str) -> list[str]:
        """Return the names in a directory, sorted."""
        return sorted(os.listdir(directory))

    def status(self, path: str) -> FileStatus | None:
        """Return the status of a path, None if it does not exist."""
        try:
            found = os.stat(path)
        except FileNotFoundError:
            return None
        is_directory = found.st_mode & 0o170000 == 0o040000
        return FileStatus(found.st_size, found.st_mtime_ns // 1_000_000, is_directory)

    def rename(self, old: str, new: str) -> None:
        """Rename a file or directory, and replace a file of the new name."""
        os.replace(old, new)

    def remove(self, path: str) -> None:
        """Delete a file or an empty directory."""
        try:
            os.unlink(path)
        except IsADirectoryError:
            os.rmdir(path)

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents, if they do not exist."""
        os.makedirs(path, exist_ok=True)

    def sync_directory(self, path: str) -> None:
        """Make the names in a directory survive a power failure."""
        if not self._is_durable:
            return
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def sync_all(self, path: str) -> None:
        """Make everything in the file system of a path survive a power failure.

        One syncfs(2), which Python's `os` lacks, costs far less than a thousand fdatasync(2).
        """
        if not self._is_durable:
            return
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if _SYNCFS is None:
                os.sync()
            elif _SYNCFS(descriptor):
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number), path)
        finally:
            os.close(descriptor)


def read_file(storage: Storage, path: str) -> bytes | None:
    """Return the content of a small file; None if it does not exist."""
    try:
        file = storage.open(path)
    except FileNotFoundError:
        return None
    return file.read(0, file.size_bytes())


def replace_file(
    storage: Storage,
    path: str,
    data: bytes,
    *,
    is_durable: bool = True,
    syncs_name: bool = True,
) -> None:
    """Replace a small file atomically: a reader finds the old or the new content, never a part.

    Without `syncs_name` the caller syncs the directory: until then a power failure may restore the
    old content.
    """
    temporary = path + ".tmp"
    file = storage.open(temporary, create=True)
    file.truncate(0)
    file.write(0, data)
    if is_durable:
        file.sync()
    storage.rename(temporary, path)
    if is_durable and syncs_name:
        storage.sync_directory(path.rpartition("/")[0])


def remove_tree(storage: Storage, path: str) -> None:
    """Delete a file, or a directory with its content, if it exists."""
    status = storage.status(path)
    if status is None:
        return
    if status.is_directory:
        for name in storage.names(path):
            remove_tree(storage, f"{path}/{name}")
    storage.remove(path)


def remove_files(storage: Storage, paths: Sequence[str]) -> None:
    """Delete the files that exist."""
    for path in paths:
        if storage.status(path) is not None:
            storage.remove(path)


@dataclass(frozen=True, slots=True)
class FileRegion:
    """`length` bytes of `file` from `position`; the file stays open while this object lives.

    It is passed on instead of its bytes so that the server can use sendfile.
    """

    file: File
    position: int
    length: int

    def __len__(self) -> int:
        return self.length

    def fileno(self) -> int:
        """Return the file descriptor to send from."""
        return self.file.fileno()

    def read(self) -> bytes:
        """Return the bytes, for a connection without sendfile (TLS) and for tests."""
        return self.file.read(self.position, self.length)


class DelayedDeletion:
    """The paths that readers no longer use and that are deleted later, the earliest first.

    A removed segment is first renamed to `.deleted`, and a removed partition to `-delete`. The
    files are deleted after `file.delete.delay.ms`, because unlinking gigabytes can block and a
    reader may still use them. After a crash, the next start removes them.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._waiting: list[tuple[int, str]] = []

    def schedule(self, path: str, due_ms: int) -> None:
        """Schedule the deletion of a path, and of all below it, at a wall-clock time."""
        heappush(self._waiting, (due_ms, path))

    def next_due_ms(self) -> int | None:
        """Return the time of the next deletion; None if nothing waits."""
        return self._waiting[0][0] if self._waiting else None

    def remove_due(self, timestamp_ms: int, limit: int | None = None) -> int:
        """Delete the paths that are due, at most `limit`; return their number."""
        removed = 0
        while self._waiting and self._waiting[0][0] <= timestamp_ms and removed != limit:
            remove_tree(self._storage, heappop(self._waiting)[1])
            removed += 1
        return removed
