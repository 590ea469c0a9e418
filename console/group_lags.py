"""Where groups are: for the list of groups, for the live view, and for a text that is followed."""

from typing import NamedTuple

from common.kafka.admin import group_offsets, leaders, topics
from common.kafka.admin.client import AdminClient
from common.kafka.admin.groups import GroupListing
from common.kafka.admin.share_groups import SHARE
from common.kafka.errors import KafkaError
from common.kafka.topics import TopicPartition

Offsets = dict[TopicPartition, int]


class Position(NamedTuple):
    """How far a group is in a partition; the end is None if its leader does not tell it."""

    committed: int
    end: int | None

    @property
    def lag(self) -> int:
        """How many offsets are left, as far as that is known."""
        return 0 if self.end is None else max(0, self.end - self.committed)


Positions = dict[TopicPartition, Position]


def group_positions(client: AdminClient, groups: tuple[GroupListing, ...]) -> dict[str, Positions]:
    """Return the positions of each group with committed offsets; share groups have none."""
    ids = [each.group_id for each in groups if each.group_type != SHARE]
    committed = group_offsets.committed_offsets_of(client, ids)
    ends = partition_ends(client, {each for offsets in committed.values() for each in offsets})
    return {
        group_id: {each: Position(at.offset, ends.get(each)) for each, at in offsets.items()}
        for group_id, offsets in committed.items()
        if offsets
    }


def lag_of(positions: Positions) -> int:
    """Return the lag of a group in records."""
    return sum(each.lag for each in positions.values())


def partition_ends(client: AdminClient, partitions: set[TopicPartition]) -> Offsets:
    """Return the ends of those partitions that exist and have a leader."""
    there = topics.topic_leaders(client, {each.topic for each in partitions})
    led = [each for each in sorted(partitions) if there.get(each, -1) >= 0]
    found = leaders.list_offsets(client, led, leaders.LATEST)
    return {
        each: outcome.offset
        for each, outcome in found.items()
        if not isinstance(outcome, KafkaError)
    }
