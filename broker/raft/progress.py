"""The leader's view of the replicas: how far each has come and when it was last heard of."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from broker.raft.config import NEVER_MS, majority_of

UNKNOWN_OFFSET = -1


@dataclass(slots=True)
class ReplicaProgress:
    """Invariant: what is below `end_offset` is on the replica's disk and equal to the leader's."""

    last_fetch_ms: int
    """When it last fetched; at first when the epoch began, so that everybody gets a chance."""
    end_offset: int = UNKNOWN_OFFSET
    last_caught_up_ms: int = -1
    has_fetched: bool = False

    def note_fetch(self, now_ms: int) -> None:
        """Note a sign of life."""
        self.last_fetch_ms = max(self.last_fetch_ms, now_ms)
        self.has_fetched = True

    def note_position(self, end_offset: int, leader_end_offset: int, now_ms: int) -> None:
        """Note that the replica has everything below an offset on its disk.

        A late duplicate of a request says less than what is known; it changes nothing.
        """
        self.end_offset = max(self.end_offset, end_offset)
        if self.end_offset >= leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)


def majority_end_offset(end_offsets: Iterable[int]) -> int:
    """Compute the offset that a majority of the voters has reached."""
    descending = sorted(end_offsets, reverse=True)
    return descending[majority_of(len(descending)) - 1]


def compute_high_watermark(
    end_offsets: Iterable[int], epoch_start_offset: int, high_watermark: int
) -> int:
    """Compute the leader's new high watermark.

    An entry of an older epoch is never committed by counting replicas, because a later leader may
    still replace it: only once an entry of this epoch is on a majority is all before it committed
    too (Raft, section 5.4.2 and figure 8).
    """
    reached = majority_end_offset(end_offsets)
    if reached <= epoch_start_offset:
        return high_watermark
    return max(high_watermark, reached)


def majority_heard_ms(
    progress: Mapping[int, ReplicaProgress], node_id: int, voters: tuple[int, ...]
) -> int:
    """Compute the latest time at which a majority had been heard of.

    The leader hears itself all the time, so alone it has heard of one until the end of time.
    """
    return majority_end_offset(
        NEVER_MS if voter == node_id else progress[voter].last_fetch_ms for voter in voters
    )
