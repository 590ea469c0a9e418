"""Takes one look after the other, and says how far each group is behind in each partition."""

from collections.abc import Iterator
from typing import NamedTuple

from common.kafka.topics import TopicPartition
from lag.backlog import lag_of, written_ms
from lag.evaluate import State, Window, state_of, state_of_group
from lag.facts import Group, Look
from lag.history import History


class PartitionLag(NamedTuple):
    """How far a group is behind in a partition. `lag` is None if the end is not known."""

    committed: int
    end: int | None
    lag: int | None
    seconds: float | None
    """0 without lag; None if it is not known."""
    state: State
    complete: float
    """The share of Burrow's window that was watched; with less than 1 the state says little."""


class GroupLag(NamedTuple):
    """How far a group is behind in all partitions in which it has committed."""

    group: Group
    state: State
    partitions: dict[TopicPartition, PartitionLag]

    @property
    def total(self) -> int:
        """The records of all partitions."""
        return sum(each.lag for each in self.partitions.values() if each.lag is not None)

    @property
    def seconds(self) -> float | None:
        """The lag of the partition that is furthest behind in time."""
        known = [each.seconds for each in self.partitions.values() if each.seconds is not None]
        return max(known, default=None)

    @property
    def is_complete(self) -> bool:
        """True if the windows of all partitions are full."""
        return all(each.complete == 1 for each in self.partitions.values())


class Monitor:
    """Owns the results of earlier looks; groups and topics that have been deleted are dropped."""

    def __init__(self) -> None:
        self.look: Look | None = None
        """The last one."""
        self.groups: dict[str, GroupLag] = {}
        self._histories: dict[TopicPartition, History] = {}
        self._windows: dict[tuple[str, TopicPartition], Window] = {}

    def take(self, look: Look) -> None:
        """Take a look in."""
        self.look = look
        self._histories = {key: self._histories.get(key, History()) for key in look.partitions}
        for key, partition in look.partitions.items():
            if partition.end is not None:
                self._histories[key].note(partition.end, look.at_ms)
        self._windows = {key: self._windows.get(key, Window()) for key in _committed(look)}
        self.groups = {
            group_id: self._measured(group_id, group, look)
            for group_id, group in look.groups.items()
        }

    def _measured(self, group_id: str, group: Group, look: Look) -> GroupLag:
        partitions = {
            key: self._partition(group_id, key, committed, look)
            for key, committed in sorted(group.commits.items())
            if key in look.partitions
        }
        states = ((each.state, each.complete) for each in partitions.values())
        return GroupLag(group, state_of_group(states, least_complete=1), partitions)

    def _partition(
        self, group_id: str, key: TopicPartition, committed: int, look: Look
    ) -> PartitionLag:
        window = self._windows[group_id, key]
        end = look.partitions[key].end
        if end is None:
            return PartitionLag(committed, None, None, None, State.NOTFOUND, window.complete)
        found = look.backlogs.get((key, committed), ())
        lag = lag_of(committed, end, found)
        window.note(committed, end, lag, look.at_ms)
        seconds: float | None = 0.0
        if lag:
            behind = self._histories[key].seconds_behind
            seconds = behind(committed, look.at_ms, written_ms(committed, found))
        state = state_of(list(window.commits), list(window.ends), lag, look.at_ms)
        return PartitionLag(committed, end, lag, seconds, state, window.complete)


def _committed(look: Look) -> Iterator[tuple[str, TopicPartition]]:
    for group_id, group in look.groups.items():
        for key in group.commits:
            if key in look.partitions:
                yield group_id, key
