"""The counters of a broker as plain numbers; `metrics_page` makes text of them on request."""

from collections.abc import Iterable, Sized
from typing import Protocol, Self

TopicKey = str | bytes
"""A topic's name, or its id where a request names topics by id."""


class TopicTraffic:
    """What clients have done with one topic at this broker; each number only ever grows."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "failed_fetches",
        "failed_produces",
        "fetches",
        "produces",
        "records_in",
    )

    def __init__(self) -> None:
        self.bytes_in = 0
        self.bytes_out = 0
        self.records_in = 0
        self.produces = 0
        self.failed_produces = 0
        self.fetches = 0
        self.failed_fetches = 0

    def add(self, other: Self) -> None:
        """Add the numbers of another one."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Answered(Protocol):
    """The answer about one partition."""

    error_code: int
    records: Sized | None


class Traffic(dict[TopicKey, TopicTraffic]):
    """The traffic of each topic that a client has used here, and of all that are deleted.

    Only a topic that exists may be looked up with `[]`: clients can name any number of others.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rest = TopicTraffic()
        """The traffic of deleted topics, and failures at topics that are not known here."""

    def __missing__(self, key: TopicKey) -> TopicTraffic:
        made = self[key] = TopicTraffic()
        return made

    def note_failed_produce(self, key: TopicKey) -> None:
        """Count a refused append."""
        self.get(key, self.rest).failed_produces += 1

    def note_fetched(self, answers: "Iterable[tuple[tuple[TopicKey, int], Answered]]") -> None:
        """Count the answer of a client's Fetch: each is a topic and a partition, and its part."""
        for (key, _), answer in answers:
            if answer.error_code:
                # `get` would be a call for each of many thousand unknown partitions.
                if key in self:
                    self[key].failed_fetches += 1
                else:
                    self.rest.failed_fetches += 1
                continue
            traffic = self[key]
            traffic.fetches += 1
            if answer.records:
                traffic.bytes_out += len(answer.records)

    def forget(self, *keys: TopicKey) -> None:
        """Drop a deleted topic; its traffic stays in the sum of all."""
        for key in keys:
            gone = self.pop(key, None)
            if gone is not None:
                self.rest.add(gone)

    def sum(self) -> TopicTraffic:
        """Return the traffic of all topics that there have been."""
        total = TopicTraffic()
        for each in (self.rest, *self.values()):
            total.add(each)
        return total


class Metrics:
    """Counters that only ever grow."""

    __slots__ = (
        "failed_isr_updates",
        "isr_expands",
        "isr_shrinks",
        "replicated_in_bytes",
        "replicated_out_bytes",
        "traffic",
    )

    def __init__(self) -> None:
        self.traffic = Traffic()
        self.replicated_in_bytes = 0
        self.replicated_out_bytes = 0
        self.failed_isr_updates = 0
        self.isr_expands = 0
        self.isr_shrinks = 0

    def note_replicated_in(self, size_bytes: int) -> None:
        """Count the bytes that a follower has appended."""
        self.replicated_in_bytes += size_bytes
