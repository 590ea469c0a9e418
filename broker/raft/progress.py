"""The leader's view of the replicas: the end offset and the last Fetch of each."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from broker.raft.config import NEVER_MS, majority_of

UNKNOWN_OFFSET = -1


@dataclass(slots=True)
class ReplicaProgress:
    """Invariant: the log below `end_offset` is on the replica's disk and equals the leader's."""

    last_fetch_ms: int
    """When the replica last fetched; at first, when the epoch began."""
    end_offset: int = UNKNOWN_OFFSET
    last_caught_up_ms: int = -1
    has_fetched: bool = False

    def note_fetch(self, now_ms: int) -> None:
        """Note that the replica has sent a Fetch."""
        self.last_fetch_ms = max(self.last_fetch_ms, now_ms)
        self.has_fetched = True

    def note_position(self, end_offset: int, leader_end_offset: int, now_ms: int) -> None:
        """Note that the replica has everything below `end_offset` on its disk.

        A late duplicate of a Fetch has a lower offset and changes nothing.
        """
        self.end_offset = max(self.end_offset, end_offset)
        if self.end_offset >= leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)


def majority_end_offset(end_offsets: Iterable[int]) -> int:
    """Compute the highest offset that a majority of the voters has reached."""
    descending = sorted(end_offsets, reverse=True)
    return descending[majority_of(len(descending)) - 1]


def compute_high_watermark(
    end_offsets: Iterable[int], epoch_start_offset: int, high_watermark: int
) -> int:
    """Compute the leader's new high watermark.

    Counting replicas never commits an entry of an older epoch, because a later leader may still
    replace it. Once a majority has an entry of this epoch, that entry and all before it are
    committed (Raft, section 5.4.2 and figure 8).
    """
    reached = majority_end_offset(end_offsets)
    if reached <= epoch_start_offset:
        return high_watermark
    return max(high_watermark, reached)


def majority_heard_ms(
    progress: Mapping[int, ReplicaProgress], node_id: int, voters: tuple[int, ...]
) -> int:
    """Compute the latest time by which a majority of the voters has fetched.

    The leader counts itself as always heard, so a single voter never loses its majority.
    """
    return majority_end_offset(
        NEVER_MS if voter == node_id else progress[voter].last_fetch_ms for voter in voters
    )
