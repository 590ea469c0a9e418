"""Decides when to check that records belong to the intended topic. Pure.

A topic that is deleted and created again has another id, and a consumer continues in it silently:
at the old offset, or from the beginning when the old offset is beyond the new end. So the mirror
requests the topic's id after reading records and before passing them on. That proves their topic,
since an id is never used again. Consecutive records need no check: between two topics a consumer is
refused, requests metadata and waits. In addition there is one check per second, for a consumer that
is behind and reads records from its own queue.
"""

from collections.abc import Iterable, Sequence
from itertools import islice
from operator import lt
from typing import Final

from millstream.connect.connectors import TopicPartition

_GAP_MS: Final = 20
_LONGEST_MS: Final = 1_000


class TopicIdentity:
    """Owns the times of the last read of each topic and of the last check of its id."""

    def __init__(self) -> None:
        self._offsets: dict[TopicPartition, int] = {}
        self._read_ms: dict[str, int] = {}
        self._proven_ms: dict[str, int] = {}

    def doubtful(
        self, read: Iterable[tuple[TopicPartition, Sequence[int]]], now_ms: int
    ) -> set[str]:
        """Note offsets in reading order; return the topics whose ids must be checked first."""
        found = set()
        for at, offsets in read:
            went_back = offsets[0] <= self._offsets.get(at, -1) or not _is_rising(offsets)
            self._offsets[at] = offsets[-1]
            if went_back or not self._is_fresh(at.topic, now_ms):
                found.add(at.topic)
            self._read_ms[at.topic] = now_ms
        return found

    def _is_fresh(self, topic: str, now_ms: int) -> bool:
        read_ms, proven_ms = self._read_ms.get(topic), self._proven_ms.get(topic)
        if read_ms is None or proven_ms is None:
            return False
        return now_ms - read_ms <= _GAP_MS and now_ms - proven_ms <= _LONGEST_MS

    def proven(self, topics: Iterable[str], now_ms: int) -> None:
        """Note that an answer has confirmed the ids of topics."""
        for topic in topics:
            self._proven_ms[topic] = now_ms

    def begins_anew(self, topic: str) -> None:
        """Forget a topic: a new one with its name is read from its beginning."""
        self._offsets = {at: each for at, each in self._offsets.items() if at.topic != topic}
        self._read_ms.pop(topic, None)


def _is_rising(offsets: Sequence[int]) -> bool:
    return all(map(lt, offsets, islice(offsets, 1, None)))
