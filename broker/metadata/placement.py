"""The placement of new partitions, striped over racks and brokers (Kafka's StripedReplicaPlacer).

The first replica, the leader, rotates over the racks and, in each rack, over its unfenced brokers,
from a random start. The other replicas continue from there, so that they are in other racks if
possible. A fenced broker is used only if there are too few unfenced ones, and never as the first
replica. After as many partitions as there are unfenced brokers, the order is shuffled, so that the
same brokers are not always neighbours.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar

from common.kafka.errors import ErrorCode, KafkaError

T = TypeVar("T")


class RandomStart(Protocol):
    """The part of `random.Random` that placement uses."""

    def randrange(self, stop: int, /) -> int:
        """Return a number from 0 to `stop` - 1."""
        ...


class UsableBroker(NamedTuple):
    """A broker that can get replicas."""

    broker_id: int
    rack: str | None
    is_fenced: bool


def compute_placement(
    *,
    partition_count: int,
    replication_factor: int,
    brokers: Sequence[UsableBroker],
    random: RandomStart,
) -> Iterator[list[int]]:
    """Yield the replicas of one partition after the other.

    Raise INVALID_REPLICATION_FACTOR at the call, before the first partition.
    """
    problem = None
    if replication_factor <= 0:
        problem = (
            f"Invalid replication factor {replication_factor}: the replication factor must be "
            "positive."
        )
    elif all(broker.is_fenced for broker in brokers):
        problem = "All brokers are currently fenced."
    elif replication_factor > len(brokers):
        problem = (
            f"The target replication factor of {replication_factor} cannot be reached because "
            f"only {len(brokers)} broker(s) are registered."
        )
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, problem)
    racks = _Racks(brokers, random)
    return (racks.place(replication_factor) for _ in range(partition_count))


class _Ring:
    """The brokers of one rack in rotation; the start moves by one with each partition."""

    def __init__(self, broker_ids: list[int], random: RandomStart) -> None:
        self._broker_ids = broker_ids
        self._random = random
        self._epoch = 0
        self._index = 0
        self._offset = random.randrange(len(broker_ids)) if broker_ids else 0

    def next(self, epoch: int) -> int | None:
        """Return a broker that was not returned in this epoch, None if all were."""
        count = len(self._broker_ids)
        if count == 0:
            return None
        if self._epoch != epoch:
            self._epoch, self._index = epoch, 0
            self._offset = (self._offset + 1) % count
        if self._index >= count:
            return None
        chosen = self._broker_ids[(self._index + self._offset) % count]
        self._index += 1
        return chosen

    def shuffle(self) -> None:
        """Shuffle the order of the brokers."""
        shuffle(self._broker_ids, self._random)


class _Racks:
    """The racks in rotation."""

    def __init__(self, brokers: Sequence[UsableBroker], random: RandomStart) -> None:
        self._random = random
        self._names = sorted(
            {broker.rack for broker in brokers}, key=lambda rack: (rack is not None, rack or "")
        )
        self._unfenced = {
            name: _Ring(_ids(brokers, name, is_fenced=False), random) for name in self._names
        }
        self._fenced = {
            name: _Ring(_ids(brokers, name, is_fenced=True), random) for name in self._names
        }
        self._unfenced_count = sum(not broker.is_fenced for broker in brokers)
        self._epoch = 0
        self._offset = random.randrange(len(self._names))

    def place(self, replication_factor: int) -> list[int]:
        """Return the replicas of the next partition; the caller has checked the broker count."""
        if self._epoch == self._unfenced_count and self._unfenced_count > 1:
            self._shuffle()
            self._epoch = 0
        self._offset %= len(self._names)
        first, first_rack = self._choose_first()
        chosen = [first]
        rack = self._offset
        while len(chosen) < replication_factor:
            # Skip the rack of the first replica once: other racks are used before it is used again.
            if rack == first_rack:
                first_rack = -1
            else:
                replica = self._choose(self._names[rack])
                if replica is not None:
                    chosen.append(replica)
            rack = (rack + 1) % len(self._names)
        self._epoch += 1
        self._offset += 1
        return chosen

    def _choose_first(self) -> tuple[int, int]:
        count = len(self._names)
        for step in range(count):
            rack = (self._offset + step) % count
            chosen = self._unfenced[self._names[rack]].next(self._epoch)
            if chosen is not None:
                return chosen, rack
        raise AssertionError("no unfenced broker", self._names)

    def _choose(self, name: str | None) -> int | None:
        chosen = self._unfenced[name].next(self._epoch)
        return self._fenced[name].next(self._epoch) if chosen is None else chosen

    def _shuffle(self) -> None:
        shuffle(self._names, self._random)
        for name in self._names:
            self._unfenced[name].shuffle()
            self._fenced[name].shuffle()


def _ids(brokers: Sequence[UsableBroker], rack: str | None, *, is_fenced: bool) -> list[int]:
    return sorted(
        broker.broker_id
        for broker in brokers
        if broker.rack == rack and broker.is_fenced == is_fenced
    )


def shuffle(items: list[T], random: RandomStart) -> None:
    """Shuffle in place (Fisher and Yates)."""
    for index in range(len(items) - 1, 0, -1):
        other = random.randrange(index + 1)
        items[index], items[other] = items[other], items[index]
