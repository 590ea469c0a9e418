"""A simulated disk that loses, tears and fails: `Storage` in memory for the tests of the log.

A file has a *synced* content and the operations since the last sync. A power failure keeps the
synced content and any prefix of the operations, of which the last may be torn at any byte. The same
holds for the names in a directory: those at `sync_directory`, and any prefix of later changes. A
killed process (`keep_unsynced`) keeps everything that was written.

`fail_after(n)` lets n more calls through and fails every one after that, until the next crash.
"""

import errno
from dataclasses import dataclass, field
from random import Random

from broker.log.storage import FileStatus
from broker.records.header import BytesLike


@dataclass
class Contents:
    """The content of a file, now and after a power failure."""

    data: bytearray = field(default_factory=bytearray)
    synced: bytes = b""
    is_locked: bool = False
    unsynced: list[tuple[int, bytes | None]] = field(default_factory=list)
    """Operations since the last sync: (position, data), or (size, None) for a truncation."""

    def apply(self, position: int, data: bytes | None) -> None:
        if data is None:
            del self.data[position:]
            self.data.extend(bytes(position - len(self.data)))
            return
        self.data.extend(bytes(max(0, position - len(self.data))))
        self.data[position : position + len(data)] = data

    def forget(self, random: Random) -> None:
        """Apply a power failure: lose all operations except a prefix, whose last one is torn."""
        survivors = random.randint(0, len(self.unsynced))
        lost = self.unsynced[survivors:]
        kept = self.unsynced[:survivors]
        self.data = bytearray(self.synced)
        for operation in kept:
            self.apply(*operation)
        if lost and lost[0][1]:
            position, data = lost[0]
            torn_at = random.randint(0, len(data))
            # Some file systems store the new size before the new bytes: a tail of zeros.
            rest = bytes(len(data) - torn_at) if random.random() < 0.3 else b""
            self.apply(position, data[:torn_at] + rest)
        self.synced, self.unsynced = bytes(self.data), []


@dataclass
class Directory:
    """The names in a directory, now and as a power failure may leave them."""

    names: dict[str, "Contents | Directory"] = field(default_factory=dict)
    history: list[dict[str, "Contents | Directory"]] = field(default_factory=lambda: [{}])
    """The last synced names, and those after every change since."""

    def changed(self) -> None:
        self.history.append(dict(self.names))

    def forget(self, random: Random) -> None:
        self.names = dict(random.choice(self.history))
        self.history = [dict(self.names)]


class SimulatedFile:
    """A file handle, which is invalid after the end of the process that opened it."""

    def __init__(self, storage: "SimulatedStorage", contents: Contents) -> None:
        self._storage = storage
        self._generation = storage.generation
        self._contents = contents
        self._holds_lock = False

    def _call(self, name: str) -> None:
        assert self._generation == self._storage.generation, "a handle from before the crash"
        self._storage.count_call(name)

    def read(self, position: int, length: int) -> bytes:
        self._call("read")
        assert length >= 0
        assert position >= 0
        return bytes(self._contents.data[position : position + length])

    def write(self, position: int, *parts: BytesLike) -> None:
        data = b"".join(parts)
        try:
            self._call("write")
        except OSError:
            # ENOSPC and EIO occur after a part of the bytes was written.
            torn = data[: self._storage.random.randint(0, len(data))]
            self._contents.apply(position, torn)
            self._contents.unsynced.append((position, torn))
            raise
        self._contents.apply(position, data)
        self._contents.unsynced.append((position, data))

    def truncate(self, size_bytes: int) -> None:
        self._call("truncate")
        self._contents.apply(size_bytes, None)
        self._contents.unsynced.append((size_bytes, None))

    def sync(self) -> None:
        self._call("sync")
        self._contents.synced, self._contents.unsynced = bytes(self._contents.data), []

    def size_bytes(self) -> int:
        self._call("size")
        return len(self._contents.data)

    def fileno(self) -> int:
        raise AssertionError("a simulated file has no descriptor")

    def lock(self) -> None:
        self._call("lock")
        if self._contents.is_locked:
            raise BlockingIOError(errno.EAGAIN, "locked")
        self._contents.is_locked = self._holds_lock = True

    def __del__(self) -> None:
        # Only the holder of a lock releases it.
        if self._holds_lock:
            self._contents.is_locked = False


class SimulatedStorage:
    """The files and directories of one disk; every call may be the one that fails."""

    def __init__(self, seed: int = 0) -> None:
        self.random = Random(seed)
        self.root = Directory()
        self.generation = 0
        self.calls = 0
        self._remaining: int | None = None
        self._error = errno.EIO

    # For tests.

    def fail_after(self, calls: int, error: int = errno.EIO) -> None:
        """Allow some more calls, then fail all."""
        self._remaining, self._error = calls, error

    def heal(self) -> None:
        """Stop failing."""
        self._remaining = None

    def crash(self, *, keep_unsynced: bool) -> None:
        """End the process, by a kill or by a power failure."""
        self.generation += 1
        self._remaining = None
        self._unlock(self.root)
        if not keep_unsynced:
            self._forget(self.root)

    def _forget(self, directory: Directory) -> None:
        if directory is not self.root:
            directory.forget(self.random)
        for _, entry in sorted(directory.names.items()):
            if isinstance(entry, Directory):
                self._forget(entry)
            else:
                entry.forget(self.random)

    def _unlock(self, directory: Directory) -> None:
        for _, entry in sorted(directory.names.items()):
            if isinstance(entry, Directory):
                self._unlock(entry)
            else:
                entry.is_locked = False

    def count_call(self, name: str) -> None:
        self.calls += 1
        if self._remaining is None:
            return
        if self._remaining <= 0:
            raise OSError(self._error, f"simulated failure in {name}")
        self._remaining -= 1

    # Storage.

    def _find(self, path: str) -> Contents | Directory | None:
        entry: Contents | Directory | None = self.root
        for part in path.strip("/").split("/"):
            if not isinstance(entry, Directory):
                return None
            entry = entry.names.get(part)
        return entry

    def _parent(self, path: str) -> tuple[Directory, str]:
        above, _, name = path.strip("/").rpartition("/")
        directory = self._find(above) if above else self.root
        if not isinstance(directory, Directory):
            raise FileNotFoundError(errno.ENOENT, "no directory", path)
        return directory, name

    def open(self, path: str, *, create: bool = False) -> SimulatedFile:
        self.count_call("open")
        directory, name = self._parent(path)
        contents = directory.names.get(name)
        if contents is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no file", path)
            contents = directory.names[name] = Contents()
            directory.changed()
        assert isinstance(contents, Contents), path
        return SimulatedFile(self, contents)

    def names(self, directory: str) -> list[str]:
        self.count_call("names")
        entry = self._find(directory)
        if not isinstance(entry, Directory):
            raise FileNotFoundError(errno.ENOENT, "no directory", directory)
        return sorted(entry.names)

    def status(self, path: str) -> FileStatus | None:
        self.count_call("status")
        entry = self._find(path)
        if entry is None:
            return None
        if isinstance(entry, Directory):
            return FileStatus(0, 0, True)
        return FileStatus(len(entry.data), 0, False)

    def rename(self, old: str, new: str) -> None:
        self.count_call("rename")
        source, old_name = self._parent(old)
        target, new_name = self._parent(new)
        if old_name not in source.names:
            raise FileNotFoundError(errno.ENOENT, "nothing to rename", old)
        target.names[new_name] = source.names.pop(old_name)
        source.changed()
        if target is not source:
            target.changed()

    def remove(self, path: str) -> None:
        self.count_call("remove")
        directory, name = self._parent(path)
        entry = directory.names[name]
        assert not (isinstance(entry, Directory) and entry.names), f"{path} is not empty"
        del directory.names[name]
        directory.changed()

    def make_directory(self, path: str) -> None:
        self.count_call("make_directory")
        directory = self.root
        for part in path.strip("/").split("/"):
            below = directory.names.get(part)
            if below is None:
                below = directory.names[part] = Directory()
                directory.changed()
            assert isinstance(below, Directory), path
            directory = below

    def sync_directory(self, path: str) -> None:
        self.count_call("sync_directory")
        entry = self._find(path)
        assert isinstance(entry, Directory), path
        entry.history = [dict(entry.names)]

    def sync_all(self, path: str) -> None:
        self.count_call("sync_all")
        self._sync(self.root)

    def _sync(self, directory: Directory) -> None:
        directory.history = [dict(directory.names)]
        for _, entry in sorted(directory.names.items()):
            if isinstance(entry, Directory):
                self._sync(entry)
            else:
                entry.synced, entry.unsynced = bytes(entry.data), []
