"""The snapshots of the metadata log: files beside its segments (KIP-630).

A snapshot is named `<end offset, 20 digits>-<epoch, 10 digits>.checkpoint`. While it is written it
has `.part` at its end; it gets its name only when its bytes are on disk.
"""

import logging
import re

from broker.log.storage import Storage, remove_files
from broker.model import OffsetAndEpoch
from broker.records.header import BytesLike

SUFFIX = ".checkpoint"
PART_SUFFIX = ".part"
_NAME = re.compile(r"[0-9]{20}-[0-9]{10}\.checkpoint", re.ASCII)
_logger = logging.getLogger("millstream.quorum.snapshots")


class SnapshotFiles:
    """The snapshots in one directory; `ids` is ascending."""

    def __init__(self, storage: Storage, directory: str) -> None:
        self._storage = storage
        self._directory = directory
        names = storage.names(directory)
        unfinished = [name for name in names if name.endswith(SUFFIX + PART_SUFFIX)]
        remove_files(storage, [f"{directory}/{name}" for name in unfinished])
        for name in names:
            if name.endswith(SUFFIX) and not _NAME.fullmatch(name):
                _logger.warning("not a snapshot, left alone file=%s/%s", directory, name)
        self.ids = [_parse(name) for name in names if _NAME.fullmatch(name)]

    def _path(self, snapshot_id: OffsetAndEpoch) -> str:
        return f"{self._directory}/{file_name(snapshot_id)}"

    def size_bytes(self, snapshot_id: OffsetAndEpoch) -> int | None:
        """Return a snapshot's size; None if there is no such snapshot."""
        if snapshot_id not in self.ids:
            return None
        status = self._storage.status(self._path(snapshot_id))
        assert status is not None, snapshot_id
        return status.size_bytes

    def read(self, snapshot_id: OffsetAndEpoch, position: int, max_bytes: int) -> bytes:
        """Read a part of a snapshot."""
        return self._storage.open(self._path(snapshot_id)).read(position, max_bytes)

    def write(self, snapshot_id: OffsetAndEpoch, position: int, data: BytesLike) -> None:
        """Write a part of an unfinished snapshot; position 0 starts it again."""
        file = self._storage.open(self._path(snapshot_id) + PART_SUFFIX, create=True)
        if position == 0:
            file.truncate(0)
        file.write(position, data)

    def read_unfinished(self, snapshot_id: OffsetAndEpoch) -> bytes:
        """Read all parts of an unfinished snapshot."""
        file = self._storage.open(self._path(snapshot_id) + PART_SUFFIX)
        return file.read(0, file.size_bytes())

    def finish(self, snapshot_id: OffsetAndEpoch) -> None:
        """Sync a written snapshot, and give it its name."""
        path = self._path(snapshot_id)
        self._storage.open(path + PART_SUFFIX).sync()
        self._storage.rename(path + PART_SUFFIX, path)
        self._storage.sync_directory(self._directory)
        self.ids = sorted({*self.ids, snapshot_id})

    def abandon(self, snapshot_id: OffsetAndEpoch) -> None:
        """Remove an unfinished snapshot."""
        remove_files(self._storage, [self._path(snapshot_id) + PART_SUFFIX])

    def remove_before(self, offset: int) -> None:
        """Remove the snapshots that end before an offset."""
        older = [snapshot_id for snapshot_id in self.ids if snapshot_id.offset < offset]
        if older:
            remove_files(self._storage, [self._path(snapshot_id) for snapshot_id in older])
            self._storage.sync_directory(self._directory)
            self.ids = self.ids[len(older) :]


def file_name(snapshot_id: OffsetAndEpoch) -> str:
    """Return a snapshot's file name, as Kafka writes it."""
    return f"{snapshot_id.offset:020d}-{snapshot_id.leader_epoch:010d}{SUFFIX}"


def _parse(name: str) -> OffsetAndEpoch:
    offset, _, epoch = name.removesuffix(SUFFIX).partition("-")
    return OffsetAndEpoch(int(offset), int(epoch))
