"""The leader epochs of a log: which epoch wrote which offsets (KIP-101, KIP-279).

Entries are (epoch, start offset), both strictly ascending. A follower asks for the end offset of an
epoch to find where its log may diverge from the leader's.
"""

from bisect import bisect_right

from broker.log.checkpoints import LEADER_EPOCH_CHECKPOINT, read_epochs, write_epochs
from broker.log.storage import Storage
from broker.model import OffsetAndEpoch

UNDEFINED = -1


class LeaderEpochs:
    """The leader epochs of one partition's log; `save` writes changes to the disk."""

    __slots__ = ("_path", "_storage", "entries", "is_changed", "latest_epoch")

    def __init__(self, storage: Storage, directory: str) -> None:
        self._storage = storage
        self._path = f"{directory}/{LEADER_EPOCH_CHECKPOINT}"
        self.is_changed = False
        self.entries: list[OffsetAndEpoch] = []
        self.latest_epoch = UNDEFINED

    def load(self) -> bool:
        """Read the checkpoint; return False if it is damaged and must be rebuilt from the log."""
        entries = read_epochs(self._storage, self._path)
        self._replace(entries or [])
        self.is_changed = False
        return entries is not None

    def save(self, *, is_durable: bool = True) -> bool:
        """Write the checkpoint if it has changed; return True if the directory must be synced.

        The caller writes it before the recovery point moves and not with every new epoch, because
        recovery reads the epochs above the recovery point from the batches. With
        `is_durable=False` the caller syncs the whole file system next.
        """
        if not self.is_changed:
            return False
        write_epochs(self._storage, self._path, self.entries, is_durable=is_durable)
        self.is_changed = False
        return True

    def move_to(self, directory: str) -> None:
        """Use another directory, after the partition's directory was renamed or moved."""
        self._path = f"{directory}/{LEADER_EPOCH_CHECKPOINT}"

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that `epoch` starts at an offset; remove entries that contradict it."""
        if epoch <= self.latest_epoch:
            return
        kept = [entry for entry in self.entries if entry.offset < start_offset]
        self._replace([*kept, OffsetAndEpoch(start_offset, epoch)])

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Return the largest epoch at or below `epoch`, and its end offset.

        Return (-1, -1) if there are no epochs or `epoch` is newer than all of them. For an epoch
        older than all of them, return it with the start of the first one.
        """
        if epoch == UNDEFINED or epoch > self.latest_epoch:
            return UNDEFINED, UNDEFINED
        if epoch == self.latest_epoch:
            return epoch, log_end_offset
        following = bisect_right(self.entries, epoch, key=lambda entry: entry.leader_epoch)
        if following == 0:
            # The log starts with a later epoch.
            return epoch, self.entries[0].offset
        return self.entries[following - 1].leader_epoch, self.entries[following].offset

    def truncate_from_end(self, end_offset: int) -> None:
        """Remove the epochs that start at or after an offset."""
        if self.entries and self.entries[-1].offset >= end_offset:
            self._replace([entry for entry in self.entries if entry.offset < end_offset])

    def truncate_from_start(self, start_offset: int) -> None:
        """Move the start of the log: the epoch at `start_offset` then starts there."""
        following = bisect_right(self.entries, start_offset, key=lambda entry: entry.offset)
        if following == 0 or self.entries[0].offset == start_offset:
            return
        first = OffsetAndEpoch(start_offset, self.entries[following - 1].leader_epoch)
        self._replace([first, *self.entries[following:]])

    def clear(self) -> None:
        """Remove all epochs."""
        self._replace([])

    def _replace(self, entries: list[OffsetAndEpoch]) -> None:
        self.is_changed = self.is_changed or entries != self.entries
        self.entries = entries
        self.latest_epoch = entries[-1].leader_epoch if entries else UNDEFINED
