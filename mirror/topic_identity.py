"""Whether what was read of a topic is of the one that is meant, or of another with its name: pure.

A topic that is deleted and made again has another id, and a consumer reads on in it without a word:
at the old offset, or from the beginning when that lies behind the new end. So the id is asked for
after reading and before handing on, which proves it: no id comes twice. Not always: between two
topics a consumer is refused, asks for metadata and waits, so what comes right behind the last
record is of the same topic. A check every second besides is for a consumer that is behind, whose
records come out of its own queue.
"""

from collections.abc import Iterable, Sequence
from itertools import islice
from operator import lt
from typing import Final

from millrace.connect.connectors import TopicPartition

_GAP_MS: Final = 20
_LONGEST_MS: Final = 1_000


class TopicIdentity:
    """Owns when something of a topic was read, and when its id was seen."""

    def __init__(self) -> None:
        self._offsets: dict[TopicPartition, int] = {}
        self._read_ms: dict[str, int] = {}
        self._proven_ms: dict[str, int] = {}

    def doubtful(
        self, read: Iterable[tuple[TopicPartition, Sequence[int]]], now_ms: int
    ) -> set[str]:
        """Take offsets in the order they were read; returns the topics to be looked at first."""
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
        """Learn that topics are those that are meant, by an answer that came now."""
        for topic in topics:
            self._proven_ms[topic] = now_ms

    def begins_anew(self, topic: str) -> None:
        """Forget a topic: another of its name is read from its beginning."""
        self._offsets = {at: each for at, each in self._offsets.items() if at.topic != topic}
        self._read_ms.pop(topic, None)


def _is_rising(offsets: Sequence[int]) -> bool:
    return all(map(lt, offsets, islice(offsets, 1, None)))
