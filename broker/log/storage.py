"""The one door to the disk: `Storage` for names, `File` for bytes, and the real ones.

Everything in `broker.log` goes through these two protocols, so that the tests can put a simulated
disk behind them that forgets, tears and fails. An `OSError` passes through untouched: it takes
the log directory offline (`log_directories`), and nothing is tried again.

A file stays open as long as anybody holds the object: a `FileRegion` that is being sent survives
the deletion of its segment.
"""

import ctypes
import fcntl
import os
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from broker.records.header import BytesLike

_SYNCFS = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)


class FileStatus(NamedTuple):
    """What the file system knows of a path."""

    size_bytes: int
    modified_ms: int
    is_directory: bool


class File(Protocol):
    """Bytes at positions; reads and writes may come from different threads."""

    def read(self, position: int, length: int) -> bytes:
        """Give up to `length` bytes; fewer only at the end of the file."""

    def write(self, position: int, *parts: BytesLike) -> None:
        """Write all parts, one after the other."""

    def truncate(self, size_bytes: int) -> None:
        """Cut the file to a size."""

    def sync(self) -> None:
        """Return when the contents survive a power failure."""

    def size_bytes(self) -> int:
        """Give the size."""

    def fileno(self) -> int:
        """Give the descriptor for sendfile."""

    def lock(self) -> None:
        """Keep other processes out while this object lives; BlockingIOError when one is in."""


class Storage(Protocol):
    """Names in directories. A change of names survives a power failure after `sync_directory`."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and writing; without `create` a missing file is FileNotFoundError."""

    def names(self, directory: str) -> list[str]:
        """List a directory, sorted."""

    def status(self, path: str) -> FileStatus | None:
        """Tell about a path, or None when there is nothing."""

    def rename(self, old: str, new: str) -> None:
        """Give a file or directory another name, over what has that name."""

    def remove(self, path: str) -> None:
        """Remove a file or an empty directory."""

    def make_directory(self, path: str) -> None:
        """Make a directory and those above it; one that exists already is fine."""

    def sync_directory(self, path: str) -> None:
        """Return when the names in a directory survive a power failure."""

    def sync_all(self, path: str) -> None:
        """Return when everything in the file system of a path survives a power failure."""


class RealFile:
    """A file descriptor that closes when nobody holds this object any more."""

    __slots__ = ("_descriptor", "path")

    def __init__(self, path: str, flags: int) -> None:
        self._descriptor = -1
        self.path = path
        self._descriptor = os.open(path, flags | os.O_CLOEXEC, 0o644)

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def read(self, position: int, length: int) -> bytes:
        """Give up to `length` bytes; fewer only at the end of the file."""
        data = os.pread(self._descriptor, length, position)
        if len(data) == length or not data:
            return data
        # A single call returns less than 2 GiB and may be interrupted: ask on.
        return data + self.read(position + len(data), length - len(data))

    def write(self, position: int, *parts: BytesLike) -> None:
        """Write all parts, one after the other."""
        expected = sum(map(len, parts))
        written = os.pwritev(self._descriptor, parts, position)
        if written < expected:
            self._write_rest(position, b"".join(parts), written)

    def _write_rest(self, position: int, data: bytes, written: int) -> None:
        """Go on after a short write, which precedes ENOSPC: the next call raises it."""
        view = memoryview(data)
        while written < len(data):
            written += os.pwrite(self._descriptor, view[written:], position + written)

    def truncate(self, size_bytes: int) -> None:
        """Cut the file to a size."""
        os.ftruncate(self._descriptor, size_bytes)

    def sync(self) -> None:
        """Return when the contents survive a power failure."""
        os.fdatasync(self._descriptor)

    def size_bytes(self) -> int:
        """Give the size."""
        return os.fstat(self._descriptor).st_size

    def fileno(self) -> int:
        """Give the descriptor for sendfile."""
        return self._descriptor

    def lock(self) -> None:
        """Keep other processes out while this object lives; BlockingIOError when one is in.

        Both kinds of lock are taken: Apache Kafka uses the POSIX one, which does not keep out a
        second open within one process.
        """
        fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class RealStorage:
    """The disk of this machine."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and writing; without `create` a missing file is FileNotFoundError."""
        try:
            return RealFile(path, os.O_RDWR | (os.O_CREAT if create else 0))
        except PermissionError:
            if create:
                raise
            # Apache Kafka leaves its snapshots read-only, and nobody ever writes to one.
            return RealFile(path, os.O_RDONLY)

    def names(self, directory: str) -> list[str]:
        """List a directory, sorted."""
        return sorted(os.listdir(directory))

    def status(self, path: str) -> FileStatus | None:
        """Tell about a path, or None when there is nothing."""
        try:
            found = os.stat(path)
        except FileNotFoundError:
            return None
        is_directory = found.st_mode & 0o170000 == 0o040000
        return FileStatus(found.st_size, found.st_mtime_ns // 1_000_000, is_directory)

    def rename(self, old: str, new: str) -> None:
        """Give a file or directory another name, over what has that name."""
        os.replace(old, new)

    def remove(self, path: str) -> None:
        """Remove a file or an empty directory."""
        try:
            os.unlink(path)
        except IsADirectoryError:
            os.rmdir(path)

    def make_directory(self, path: str) -> None:
        """Make a directory and those above it; one that exists already is fine."""
        os.makedirs(path, exist_ok=True)

    def sync_directory(self, path: str) -> None:
        """Return when the names in a directory survive a power failure."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def sync_all(self, path: str) -> None:
        """Return when everything in the file system of a path survives a power failure.

        One syncfs(2), which Python does not have, costs far less than a thousand fdatasync.
        """
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
    """Read a small file whole; None when there is none."""
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
    """Give a small file new contents, so that a reader finds the old or the new, never a part.

    Without `syncs_name` the caller syncs the directory: until then a power failure may bring the
    old contents back.
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
    """Remove a file, or a directory with everything in it; nothing there is fine."""
    status = storage.status(path)
    if status is None:
        return
    if status.is_directory:
        for name in storage.names(path):
            remove_tree(storage, f"{path}/{name}")
    storage.remove(path)


def remove_files(storage: Storage, paths: Sequence[str]) -> None:
    """Remove files that may or may not be there."""
    for path in paths:
        if storage.status(path) is not None:
            storage.remove(path)
