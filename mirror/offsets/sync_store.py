"""Translates an offset of the source into the target, with the offset syncs. Pure.

The store keeps few syncs of each partition, and keeps more of them close to the newest one. Of two
neighbouring syncs, the older is at most twice as far from the newest as the younger, unless no sync
was written between them. So a group that is n records behind the newest sync reads at most about n
records again, and a group at the end reads none.

A translation never skips an unread record. The group has read the record of the last sync before
its offset, so it can continue right after that record's copy, but not further: it is unknown how
many of the records after it were mirrored (KAFKA-12468).
"""

from bisect import bisect_left, bisect_right
from typing import Final

from millstream.connect.connectors import TopicPartition
from millstream.mirror.records import OffsetSync

_THINNED_ABOVE: Final = 64


class OffsetSyncStore:
    """Owns the syncs of all partitions, oldest first; both offsets rise."""

    def __init__(self) -> None:
        self._syncs: dict[TopicPartition, list[OffsetSync]] = {}

    def replay(self, sync: OffsetSync, *, forgets_older: bool = False) -> None:
        """Add the next sync of the topic.

        With `forgets_older`, drop all earlier syncs, so that offsets before this one are not
        translated.
        """
        syncs = self._syncs.setdefault(sync.topic_partition, [])
        if forgets_older or (syncs and sync.downstream_offset <= syncs[-1].downstream_offset):
            # The target topic was recreated.
            syncs.clear()
        # Records are copied again from an earlier offset, or the source was recreated. Earlier
        # syncs stay: they translate to offsets before all records that are copied now.
        del syncs[bisect_left(syncs, sync.upstream_offset, key=_upstream_offset) :]
        syncs.append(sync)
        if len(syncs) > _THINNED_ABOVE:
            self._syncs[sync.topic_partition] = _thinned(syncs)

    def translate(self, at: TopicPartition, upstream_offset: int) -> int | None:
        """Return a group's offset in the target; None when no sync is old enough."""
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
    """Leave out syncs that the next older one can replace."""
    newest = syncs[-1].upstream_offset
    kept = [syncs[-1]]
    for place in range(len(syncs) - 2, 0, -1):
        reach = 2 * (newest - kept[-1].upstream_offset)
        if newest - syncs[place - 1].upstream_offset > reach:
            kept.append(syncs[place])
    kept.append(syncs[0])
    kept.reverse()
    return kept
