"""What is left of a log of offsets makes the same of a shard as all of it."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from broker.coordinator.classic_group.records import offset_record
from broker.coordinator.group.shard import GroupShard
from broker.coordinator.group_state.config import GroupConfig
from broker.coordinator.group_state.last_offsets import LastOffsets, OffsetFound
from broker.coordinator.group_state.pending_offsets import OffsetAndMetadata
from broker.model import TopicPartition
from broker.records.header import NO_PRODUCER_ID

GROUPS, PARTITIONS, PRODUCERS = ("a", "b"), (0, 1), (7, 8, 9)
COMMITS = st.tuples(
    st.sampled_from(GROUPS),
    st.sampled_from(PARTITIONS),
    st.sampled_from((NO_PRODUCER_ID, *PRODUCERS)),
)
DELETIONS = st.tuples(st.sampled_from(GROUPS), st.sampled_from(PARTITIONS))
MARKERS = st.tuples(st.sampled_from(PRODUCERS), st.booleans())
LOGS = st.lists(st.one_of(COMMITS, DELETIONS, MARKERS), max_size=40)


def new_shard() -> GroupShard:
    return GroupShard(GroupConfig(), Random(1))


def key_of(group: str, partition: int) -> tuple[bytes, bytes | None]:
    committed = OffsetAndMetadata(0, commit_timestamp_ms=1)
    return offset_record(group, TopicPartition("t", partition), committed)


def known(shard: GroupShard) -> object:
    """All that a shard knows of offsets, with what waits for a partition in its order."""
    offsets = shard.state.offsets
    waiting = {
        (group, number): list(offsets.pending._waiting(group, TopicPartition("t", number)).items())
        for group in GROUPS
        for number in PARTITIONS
    }
    return {group: offsets.topics_of(group) for group in GROUPS}, waiting


@given(LOGS)
def test_nothing_that_counts_is_left_out(entries) -> None:
    whole, offsets = new_shard(), LastOffsets()
    for place, entry in enumerate(entries):
        match entry:
            case (str() as group, partition, producer_id):
                committed = OffsetAndMetadata(place, commit_timestamp_ms=1)
                key, value = offset_record(group, TopicPartition("t", partition), committed)
                whole.replay(key, value, producer_id)
                offsets.add(OffsetFound(place, key, value, producer_id))
            case (str() as group, partition):
                key, _ = key_of(group, partition)
                whole.replay(key, None)
                offsets.add(OffsetFound(place, key, None))
            case (producer_id, is_commit):
                whole.state.offsets.end_transaction(producer_id, is_commit=is_commit)
                offsets.end(producer_id, is_commit=is_commit)
    quick = new_shard()
    for found in offsets.left():
        quick.replay(found.key, found.value, found.producer_id)
    assert known(quick) == known(whole)
    for producer_id in PRODUCERS:
        for shard in (whole, quick):
            shard.state.offsets.end_transaction(producer_id, is_commit=True)
        assert known(quick) == known(whole)
