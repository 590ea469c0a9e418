"""The lag of groups in records, for the list of groups and for the live view."""

from common.kafka.admin import group_offsets, leaders, topics
from common.kafka.admin.client import AdminClient
from common.kafka.admin.groups import GroupListing
from common.kafka.admin.share_groups import SHARE
from common.kafka.errors import KafkaError
from common.kafka.topics import TopicPartition

Offsets = dict[TopicPartition, int]


def group_lags(client: AdminClient, visible: tuple[GroupListing, ...]) -> dict[str, str]:
    """Return the lag of each group with committed offsets, as a text of digits."""
    ids = [each.group_id for each in visible if each.group_type != SHARE]
    committed = group_offsets.committed_offsets_of(client, ids)
    ends = partition_ends(client, {each for offsets in committed.values() for each in offsets})
    return {
        group_id: str(sum(max(0, ends[each] - at.offset) for each, at in offsets.items()
                          if each in ends))
        for group_id, offsets in committed.items()
        if offsets
    }  # fmt: skip


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
