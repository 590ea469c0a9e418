"""Which leader epoch wrote which offsets (KIP-101, KIP-279).

Entries are (epoch, start offset), both strictly ascending. A follower that asks for the end of an
epoch learns where its own log may differ from the leader's.
"""

from bisect import bisect_right

from broker.log.checkpoints import LEADER_EPOCH_CHECKPOINT, read_epochs, write_epochs
from broker.log.storage import Storage
from broker.model import OffsetAndEpoch

UNDEFINED = -1


class LeaderEpochs:
    """The epochs of one partition's log; changes are on disk after `save`."""

    __slots__ = ("_path", "_storage", "entries", "is_changed", "latest_epoch")

    def __init__(self, storage: Storage, directory: str) -> None:
        self._storage = storage
        self._path = f"{directory}/{LEADER_EPOCH_CHECKPOINT}"
        self.is_changed = False
        self.entries: list[OffsetAndEpoch] = []
        self.latest_epoch = UNDEFINED

    def load(self) -> bool:
        """Read the checkpoint; False when it is damaged and must be rebuilt from the log."""
        entries = read_epochs(self._storage, self._path)
        self._replace(entries or [])
        self.is_changed = False
        return entries is not None

    def save(self, *, is_durable: bool = True) -> bool:
        """Write the checkpoint if anything changed; True when the directory must be synced.

        It is written before the recovery point moves, not with every new epoch: what is above the
        recovery point is read again from the batches. Not durable is for a caller who syncs the
        whole file system next.
        """
        if not self.is_changed:
            return False
        write_epochs(self._storage, self._path, self.entries, is_durable=is_durable)
        self.is_changed = False
        return True

    def move_to(self, directory: str) -> None:
        """Follow the partition's directory to another name or place."""
        self._path = f"{directory}/{LEADER_EPOCH_CHECKPOINT}"

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that `epoch` begins at an offset; entries that contradict it go."""
        if epoch <= self.latest_epoch:
            return
        kept = [entry for entry in self.entries if entry.offset < start_offset]
        self._replace([*kept, OffsetAndEpoch(start_offset, epoch)])

    def epoch_for(self, offset: int) -> int:
        """Give the epoch that wrote an offset."""
        entry = bisect_right(self.entries, offset, key=lambda entry: entry.offset) - 1
        return self.entries[entry].leader_epoch if entry >= 0 else UNDEFINED

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Give the largest epoch at or below the one asked, and where it ends.

        (-1, -1) when nothing is known: no epochs, a newer epoch than any here, or one that is
        older than all here.
        """
        if epoch == UNDEFINED or epoch > self.latest_epoch:
            return UNDEFINED, UNDEFINED
        if epoch == self.latest_epoch:
            return epoch, log_end_offset
        following = bisect_right(self.entries, epoch, key=lambda entry: entry.leader_epoch)
        if following == 0:
            # Older than everything here: the log begins with a later epoch.
            return epoch, self.entries[0].offset
        return self.entries[following - 1].leader_epoch, self.entries[following].offset

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget the epochs that begin at or after an offset."""
        if self.entries and self.entries[-1].offset >= end_offset:
            self._replace([entry for entry in self.entries if entry.offset < end_offset])

    def truncate_from_start(self, start_offset: int) -> None:
        """Let the log begin later: the epoch of the new start begins there."""
        following = bisect_right(self.entries, start_offset, key=lambda entry: entry.offset)
        if following == 0 or self.entries[0].offset == start_offset:
            return
        first = OffsetAndEpoch(start_offset, self.entries[following - 1].leader_epoch)
        self._replace([first, *self.entries[following:]])

    def clear(self) -> None:
        """Forget everything."""
        self._replace([])

    def _replace(self, entries: list[OffsetAndEpoch]) -> None:
        self.is_changed = self.is_changed or entries != self.entries
        self.entries = entries
        self.latest_epoch = entries[-1].leader_epoch if entries else UNDEFINED
