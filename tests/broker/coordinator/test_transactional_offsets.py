"""Offsets that groups commit in transactions: pending, then counting or forgotten."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.coordinator.classic_group.records import offset_record
from broker.coordinator.group.shard import GroupShard
from broker.coordinator.group_state.config import GroupConfig
from broker.coordinator.group_state.offset_store import NO_TOPIC_ID, OffsetStore
from broker.coordinator.group_state.pending_offsets import OffsetAndMetadata
from broker.coordinator.output import EndOfTransaction, InTransaction, ShardContext
from broker.model import TopicPartition
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from common.kafka.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from common.kafka.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.lib.group_scenario import GROUP, Scenario
from tests.lib.logs import last_of

DAY_MS = 24 * 3_600_000
UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT


class Transactions:
    """A group's shard, and producers that commit its offsets in transactions."""

    def __init__(self, config: GroupConfig | None = None) -> None:
        self.scenario = Scenario() if config is None else Scenario(config)

    def commit(self, offset: int, *, producer_id: int = 1, version: int = 3, **fields):
        partition = TxnOffsetCommitRequestPartition(
            partition_index=fields.pop("partition", 0),
            committed_offset=offset,
            committed_metadata=fields.pop("metadata", ""),
        )
        topic = TxnOffsetCommitRequestTopic(name=fields.pop("topic", "t"), partitions=[partition])
        request = TxnOffsetCommitRequest(
            **{
                "group_id": GROUP,
                "transactional_id": "copier",
                "producer_id": producer_id,
                "producer_epoch": 0,
                "topics": [topic],
                **fields,
            }
        )
        scenario = self.scenario
        answer = scenario.ask(scenario.shard.commit_in_transaction, ShardContext(version), request)
        ((answered,),) = (each.partitions for each in answer.topics)
        return ErrorCode(answered.error_code)

    def end(self, *, producer_id: int = 1, is_commit: bool = True) -> None:
        scenario = self.scenario
        scenario.token_count += 1
        end = EndOfTransaction(producer_id, 0, is_commit, coordinator_epoch=0)
        output = scenario.shard.end_transaction(scenario.token_count, end, scenario.now)
        assert output.transaction == end
        assert not output.records
        scenario.take(output)
        assert scenario.replies.pop(scenario.token_count) is ErrorCode.NONE

    def fetch(self, partition: int = 0, *, require_stable: bool = False):
        """Give the committed offset, or why it is not told."""
        scenario = self.scenario
        topics = [OffsetFetchRequestTopics(name="t", partition_indexes=[partition])]
        request = OffsetFetchRequestGroup(group_id=GROUP, topics=topics)
        token = scenario.token_count = scenario.token_count + 1
        scenario.take(
            scenario.shard.fetch_offsets(
                token, ShardContext(9), request, scenario.now, require_stable=require_stable
            )
        )
        (topic,) = scenario.replies.pop(token).topics
        (answered,) = topic.partitions
        return ErrorCode(answered.error_code) or answered.committed_offset


def test_an_offset_of_a_transaction_counts_when_that_is_committed():
    group = Transactions()
    assert group.commit(5) is ErrorCode.NONE
    assert group.fetch() == -1
    assert group.fetch(require_stable=True) == UNSTABLE
    assert group.fetch(1, require_stable=True) == -1
    group.end()
    assert group.fetch(require_stable=True) == 5


def test_an_offset_of_an_aborted_transaction_never_counts():
    group = Transactions()
    group.scenario.commit({("t", 0): 3})
    group.commit(5)
    assert (group.fetch(), group.fetch(require_stable=True)) == (3, UNSTABLE)
    group.end(is_commit=False)
    assert group.fetch(require_stable=True) == 3


def test_its_records_belong_to_the_transaction():
    group = Transactions()
    request = TxnOffsetCommitRequest(
        group_id=GROUP,
        producer_id=7,
        producer_epoch=2,
        topics=[
            TxnOffsetCommitRequestTopic(
                name="t",
                partitions=[TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)],
            )
        ],
    )
    scenario = group.scenario
    output = scenario.shard.commit_in_transaction(1, ShardContext(3), request, scenario.now)
    assert output.transaction == InTransaction(7, 2)
    assert len(output.records) == 1


def test_the_order_in_the_log_decides_and_not_that_of_the_markers():
    group = Transactions()
    group.commit(1, producer_id=1)
    group.commit(2, producer_id=2)
    group.end(producer_id=2)
    group.end(producer_id=1)
    assert group.fetch() == 2


def test_a_plain_commit_overtakes_what_is_pending_and_what_comes_later_overtakes_it():
    group = Transactions()
    group.commit(1, producer_id=1)
    group.scenario.commit({("t", 0): 9})
    group.commit(10, producer_id=2)
    assert group.fetch(require_stable=True) == UNSTABLE
    group.end(producer_id=1)
    assert group.fetch() == 9
    group.end(producer_id=2)
    assert group.fetch() == 10


def test_a_later_commit_of_the_same_producer_takes_the_place_of_its_former_one():
    group = Transactions()
    group.commit(1, producer_id=1)
    group.commit(2, producer_id=2)
    group.commit(3, producer_id=1)
    group.end(producer_id=2)
    group.end(producer_id=1)
    assert group.fetch() == 3


def test_a_marker_without_offsets_changes_nothing():
    group = Transactions()
    group.end()
    assert group.scenario.groups == {}


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"generation_id": 1}, ErrorCode.NONE),
        ({"generation_id": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation_id": -1}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation_id": 1, "member_id": "ghost"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation_id": -1, "member_id": ""}, ErrorCode.NONE),
        ({"generation_id": 1, "member_id": ""}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation_id": 1, "group_instance_id": "ghost"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group_id": "other", "generation_id": 1}, ErrorCode.ILLEGAL_GENERATION),
        ({"group_id": "other", "generation_id": -1}, ErrorCode.NONE),
        ({"group_id": "", "generation_id": -1}, ErrorCode.INVALID_GROUP_ID),
    ],
)
def test_who_is_no_member_any_more_commits_nothing(fields, code):
    """And who says nothing of a member may: producers before version 3 do not."""
    group = Transactions()
    client, _ = group.scenario.stable_group(2)
    assert group.commit(1, **{"member_id": client.member_id, **fields}) is code


def test_a_static_member_that_was_taken_over_is_fenced():
    group = Transactions()
    (client,) = group.scenario.stable_group(1, instance_id="i")
    fields = {"generation_id": 1, "group_instance_id": "i"}
    assert group.commit(1, member_id="other", **fields) is ErrorCode.FENCED_INSTANCE_ID
    assert group.commit(1, member_id=client.member_id, **fields) is ErrorCode.NONE


def test_metadata_that_is_too_long_is_refused_alone():
    group = Transactions()
    assert group.commit(1, metadata="x" * 4097) is ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert group.fetch(require_stable=True) == -1


def test_deleting_offsets_takes_what_is_pending_too():
    group = Transactions()
    group.commit(5)
    request = OffsetDeleteRequest(
        group_id=GROUP,
        topics=[
            OffsetDeleteRequestTopic(
                name="t", partitions=[OffsetDeleteRequestPartition(partition_index=0)]
            )
        ],
    )
    scenario = group.scenario
    before = len(scenario.log)
    scenario.ask(scenario.shard.delete_offsets, ShardContext(0), request)
    assert len(scenario.log) == before + 1
    group.end()
    assert group.fetch(require_stable=True) == -1


def test_deleting_a_group_takes_what_is_pending_too():
    group = Transactions()
    group.scenario.commit({("t", 1): 3})
    group.commit(5)
    scenario = group.scenario
    before = len(scenario.log)
    scenario.ask(scenario.shard.delete_group, ShardContext(2), GROUP)
    assert len(scenario.log) == before + 2
    group.end()
    assert group.fetch(require_stable=True) == -1


def test_deleting_a_topic_takes_what_is_pending_too():
    group = Transactions()
    group.commit(5)
    group.scenario.take(
        group.scenario.shard.on_topic_deleted("t", NO_TOPIC_ID, group.scenario.now.timestamp_ms)
    )
    group.end()
    assert group.fetch(require_stable=True) == -1


def test_nothing_expires_that_an_open_transaction_may_change():
    group = Transactions()
    group.scenario.commit({("t", 0): 1})
    group.commit(5)
    late_ms = group.scenario.now.timestamp_ms + 100 * DAY_MS
    group.scenario.take(group.scenario.shard.expire_offsets(late_ms))
    assert group.fetch() == 1
    group.end(is_commit=False)
    group.scenario.take(group.scenario.shard.expire_offsets(late_ms))
    assert group.fetch() == -1
    assert group.scenario.groups == {}


def test_a_commit_that_does_not_fit_into_a_batch_is_refused():
    group = Transactions(GroupConfig(max_batch_bytes=200))
    refused = group.commit(1, metadata="x" * 300)
    assert refused is ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    assert group.scenario.groups == {}


def test_a_shard_that_is_loaded_knows_what_is_pending():
    def record(offset: int) -> tuple[bytes, bytes | None]:
        committed = OffsetAndMetadata(offset, commit_timestamp_ms=1)
        return offset_record(GROUP, TopicPartition("t", 0), committed)

    group = Transactions()
    shard = GroupShard(group.scenario.config, group.scenario.random)
    shard.replay(*record(1))
    shard.replay(*record(2), 7)
    shard.replay(*record(3), 8)
    shard.state.offsets.end_transaction(7, is_commit=True)
    group.scenario.shard = shard
    group.scenario.take(last_of(shard.loaded(group.scenario.now)))
    assert (group.fetch(), group.fetch(require_stable=True)) == (2, UNSTABLE)
    group.end(producer_id=8)
    assert group.fetch(require_stable=True) == 3


def test_a_group_that_only_has_pending_offsets_is_there_after_loading():
    group = Transactions()
    shard = group.scenario.shard
    committed = OffsetAndMetadata(4, commit_timestamp_ms=1)
    shard.replay(*offset_record(GROUP, TopicPartition("t", 0), committed), 7)
    group.scenario.take(last_of(shard.loaded(group.scenario.now)))
    assert list(group.scenario.groups) == [GROUP]


# Against a plain reading of the log.

PLAIN, PENDING, TOMBSTONE, COMMIT, ABORT = "plain", "pending", "tombstone", "commit", "abort"
EVENTS = st.lists(
    st.tuples(
        st.sampled_from([PLAIN, PENDING, PENDING, TOMBSTONE, COMMIT, ABORT]),
        st.integers(1, 3),  # producer
        st.integers(0, 1),  # partition
    ),
    max_size=25,
)


def read_plainly(events, partition: int):
    """What Kafka's rule says: the commit with the highest record offset among those that count."""
    found, pending = None, {}
    for place, (kind, producer_id, index) in enumerate(events):
        if kind in (COMMIT, ABORT):
            offset = pending.pop(producer_id, None)
            if kind is COMMIT and offset is not None and (found is None or offset > found):
                found = offset
        elif index == partition:
            if kind is PLAIN:
                found = place
            elif kind is PENDING:
                pending[producer_id] = place
            else:
                found, pending = None, {}
    return -1 if found is None else found, bool(pending)


@given(events=EVENTS)
def test_offsets_are_what_a_plain_reading_of_the_log_says(events):
    store = OffsetStore()
    for place, (kind, producer_id, index) in enumerate(events):
        partition, offset = TopicPartition("t", index), OffsetAndMetadata(place)
        if kind is PLAIN:
            store.put(GROUP, partition, offset)
        elif kind is PENDING:
            store.put_pending(producer_id, GROUP, partition, offset)
        elif kind is TOMBSTONE:
            store.remove(GROUP, partition)
        else:
            store.end_transaction(producer_id, is_commit=kind is COMMIT)
    for index in (0, 1):
        committed = store.get(GROUP, "t", index)
        found = -1 if committed is None else committed.offset
        is_open = store.pending.has(GROUP, TopicPartition("t", index))
        assert (found, is_open) == read_plainly(events, index)
    assert (GROUP in store) == any(read_plainly(events, n) != (-1, False) for n in (0, 1))
    assert (GROUP in store.pending) == any(read_plainly(events, n)[1] for n in (0, 1))
