"""What an offset of the source is in the target, by the offset syncs that were written: pure.

Of each partition few syncs are kept, the nearer to the newest the closer together: between two that
are kept, the older is at most twice as far from the newest as the younger, unless no sync was
written between them. So whoever is n records behind the newest sync reads at most about n records
again, and whoever is at the end reads none.

A translation never lies behind a record that was not read: the group has read the record of the
sync before its offset, and of all records behind that the target has at most the copy next to the
sync's. How many of them were mirrored and how many left out nobody knows (KAFKA-12468).
"""

from bisect import bisect_left, bisect_right
from typing import Final

from millrace.connect.connectors import TopicPartition
from millrace.mirror.records import OffsetSync

_THINNED_ABOVE: Final = 64


class OffsetSyncStore:
    """Owns the syncs of all partitions, the oldest first, both offsets rising."""

    def __init__(self) -> None:
        self._syncs: dict[TopicPartition, list[OffsetSync]] = {}

    def replay(self, sync: OffsetSync, *, forgets_older: bool = False) -> None:
        """Take a sync of the topic, in the order of the topic.

        With `forgets_older` nothing before it is translated any more: it was written by then what
        offsets became of it, and that is not known here.
        """
        syncs = self._syncs.setdefault(sync.topic_partition, [])
        if forgets_older or (syncs and sync.downstream_offset <= syncs[-1].downstream_offset):
            # The target began anew.
            syncs.clear()
        # Copied again from further back, or the source began anew. What is before that stays: the
        # offsets it is translated to lie before all that is copied now.
        del syncs[bisect_left(syncs, sync.upstream_offset, key=_upstream_offset) :]
        syncs.append(sync)
        if len(syncs) > _THINNED_ABOVE:
            self._syncs[sync.topic_partition] = _thinned(syncs)

    def translate(self, at: TopicPartition, upstream_offset: int) -> int | None:
        """Return where a group goes on in the target; None when no sync is old enough to tell."""
        syncs = self._syncs.get(at, ())
        place = bisect_right(syncs, upstream_offset, key=_upstream_offset)
        if not place:
            return None
        sync = syncs[place - 1]
        return sync.downstream_offset + (upstream_offset > sync.upstream_offset)

    def newest(self, at: TopicPartition) -> OffsetSync | None:
        syncs = self._syncs.get(at)
        return syncs[-1] if syncs else None

    def kept(self, at: TopicPartition) -> tuple[OffsetSync, ...]:
        """Return the syncs of a partition, the oldest first."""
        return tuple(self._syncs.get(at, ()))


def _upstream_offset(sync: OffsetSync) -> int:
    return sync.upstream_offset


def _thinned(syncs: list[OffsetSync]) -> list[OffsetSync]:
    """Leave out what the next older sync can stand for."""
    newest = syncs[-1].upstream_offset
    kept = [syncs[-1]]
    for place in range(len(syncs) - 2, 0, -1):
        reach = 2 * (newest - kept[-1].upstream_offset)
        if newest - syncs[place - 1].upstream_offset > reach:
            kept.append(syncs[place])
    kept.append(syncs[0])
    kept.reverse()
    return kept
