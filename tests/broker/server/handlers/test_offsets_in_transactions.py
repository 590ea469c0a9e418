"""TxnOffsetCommit and the markers of `__consumer_offsets`, at a broker that leads it."""

from types import SimpleNamespace
from typing import Any

import pytest

from broker.coordinator.group_state.config import GroupConfig
from broker.metadata.topic_names import CONSUMER_OFFSETS
from broker.records.batch import split_batches
from broker.server.coordinators import parts
from broker.server.coordinators.groups import Groups
from broker.server.coordinators.shards import ShardParts
from broker.server.handlers.groups.offset_fetch import OffsetFetch
from broker.server.handlers.transactions.txn_offset_commit import TxnOffsetCommit
from broker.server.handlers.transactions.write_txn_markers import WriteTxnMarkers
from common.kafka.errors import ErrorCode
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from common.kafka.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from common.kafka.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from common.kafka.protocol.records.metadata import (
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
)
from tests.lib.logs import joined
from tests.lib.scripted_coordinator import ScriptedCoordinator, state_topic
from tests.lib.served_replica import TOPIC, Context, ServedReplica

OFFSETS_ID = b"o" * 16
GROUP = "orders"
UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT


class Coordinator:
    """The only replica of the only partition of the offsets topic, and who asks it."""

    def __init__(self) -> None:
        self.node = node = ServedReplica()
        self.transactions = ScriptedCoordinator()
        node.replay(
            *state_topic(),
            TopicRecord(name=CONSUMER_OFFSETS, topic_id=OFFSETS_ID),
            PartitionRecord(
                partition_id=0,
                topic_id=OFFSETS_ID,
                replicas=[1],
                isr=[1],
                leader=1,
                leader_epoch=0,
                partition_epoch=0,
                directories=[bytes(16)],
            ),
        )
        self.log.producers.requires_verification = True
        self.metadata: Any = SimpleNamespace(image=node.image)
        self.groups = Groups(
            ShardParts(node.loop, node.clock, self.metadata, node.partitions),
            GroupConfig(),
            None,
            None,
        )
        self.groups.follow_partitions()
        verifier = self.transactions.verifier(node.loop, node.image, node.partitions)
        self.commits = TxnOffsetCommit(self.metadata, self.groups, verifier, node.clock)
        self.markers = WriteTxnMarkers(node.config, node.logs, node.parked_produces, self.groups)

    @property
    def log(self) -> Any:
        found = self.node.partitions.find(CONSUMER_OFFSETS, 0)
        assert found is not None
        return found.log

    def commit(self, *offsets: int, version: int = 3, **fields: Any) -> Context:
        wanted = [
            TxnOffsetCommitRequestPartition(
                partition_index=index, committed_offset=offset, committed_metadata=""
            )
            for index, offset in enumerate(offsets)
        ]
        request = TxnOffsetCommitRequest(
            **{
                "transactional_id": "copier",
                "group_id": GROUP,
                "producer_id": 9,
                "producer_epoch": 0,
                "topics": [TxnOffsetCommitRequestTopic(name=TOPIC, partitions=wanted)],
                **fields,
            }
        )
        return self.ask(self.commits.handle, request, version)

    def end(self, *, is_commit: bool = True, **fields: Any) -> int:
        marker = WritableTxnMarker(
            producer_id=9,
            producer_epoch=0,
            transaction_result=is_commit,
            topics=[WritableTxnMarkerTopic(name=CONSUMER_OFFSETS, partition_indexes=[0])],
        )
        for name, value in fields.items():
            setattr(marker, name, value)
        answer = self.ask(self.markers.handle, WriteTxnMarkersRequest(markers=[marker]), 2).answer
        ((topic,),) = (each.topics for each in answer.markers)
        code: int = topic.partitions[0].error_code
        return code

    def fetch(self) -> int:
        """Give the group's stable offset, or why there is none."""
        topics = [OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])]
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=GROUP, topics=topics)], require_stable=True
        )
        answer = self.ask(OffsetFetch(self.metadata, self.groups).handle, request, 9).answer
        (found,) = answer.groups[0].topics[0].partitions
        return int(found.error_code or found.committed_offset)

    def ask(self, handle: Any, request: Message, version: int) -> Context:
        return Context(version).handle(handle, request)

    def batches(self) -> list[Any]:
        read = self.log.read(0, max_bytes=9999, max_offset=self.log.log_end_offset)
        return [
            (each.header.producer_id, each.header.is_transactional, each.header.is_control)
            for each in split_batches(joined(read.parts))
        ]


def codes(context: Context) -> list[int]:
    return [each.error_code for topic in context.answer.topics for each in topic.partitions]


def test_offsets_are_written_as_a_part_of_the_transaction_and_count_with_its_marker():
    broker = Coordinator()
    commit = broker.commit(5)
    assert commit.answer is None
    (asked,) = broker.transactions.transactions
    assert asked.verify_only
    assert [(topic.name, topic.partitions) for topic in asked.topics] == [(CONSUMER_OFFSETS, [0])]
    broker.transactions.answer()
    assert codes(commit) == [0]
    assert broker.fetch() == UNSTABLE
    assert codes(broker.commit(6)) == [0], "the transaction is open: nobody is asked"
    assert broker.end() == 0
    assert broker.fetch() == 6
    assert broker.batches() == [(9, True, False), (9, True, False), (9, True, True)]


def test_a_new_coordinator_of_the_group_knows_what_is_pending():
    broker = Coordinator()
    broker.commit(5)
    broker.transactions.answer()
    broker.end()
    broker.commit(7, version=3)
    broker.transactions.answer()
    broker.groups._unload_shard(0)
    broker.groups.follow_partitions()
    broker.node.loop.advance()
    assert broker.fetch() == UNSTABLE
    broker.end(is_commit=False)
    assert broker.fetch() == 5


def test_from_version_5_on_the_offsets_are_added_to_the_transaction():
    broker = Coordinator()
    broker.commit(5, version=5)
    (asked,) = broker.transactions.transactions
    assert not asked.verify_only


@pytest.mark.parametrize(
    ("said", "version", "told"),
    [
        (ErrorCode.INVALID_TXN_STATE, 3, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.TRANSACTION_ABORTABLE, 3, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.TRANSACTION_ABORTABLE, 4, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.PRODUCER_FENCED, 3, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.NETWORK_EXCEPTION, 3, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (ErrorCode.NETWORK_EXCEPTION, 1, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 3, ErrorCode.CONCURRENT_TRANSACTIONS),
    ],
)
def test_what_the_transaction_coordinator_refuses_is_refused(said, version, told):
    broker = Coordinator()
    commit = broker.commit(5, version=version)
    broker.transactions.answer(said)
    assert codes(commit) == [told]
    assert broker.fetch() == -1


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"producer_id": -1}, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ({"producer_epoch": -1}, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
def test_what_cannot_be_in_a_transaction_asks_nobody(fields, code):
    broker = Coordinator()
    assert codes(broker.commit(5, **fields)) == [code]
    assert not broker.transactions.asked


def test_a_former_member_is_refused_after_the_word_and_the_shard_lives_on():
    broker = Coordinator()
    commit = broker.commit(5, generation_id=3, member_id="ghost")
    broker.transactions.answer()
    assert codes(commit) == [ErrorCode.ILLEGAL_GENERATION]
    assert broker.log.log_end_offset == 0


def test_a_fenced_producer_does_not_cost_the_shard_its_state():
    """The log is asked before the shard is: an append that fails would drop the shard."""
    broker = Coordinator()
    shard = broker.groups._shards[0]
    broker.commit(5, producer_epoch=4)
    broker.transactions.answer()
    broker.end(producer_epoch=4)
    old = broker.commit(6, producer_epoch=3)
    broker.transactions.answer()
    assert codes(old) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert broker.end(producer_epoch=3) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert broker.groups._shards[0] is shard
    assert broker.fetch() == 5


def test_a_former_coordinators_marker_is_fenced():
    broker = Coordinator()
    assert broker.end(coordinator_epoch=4) == 0
    assert broker.end(coordinator_epoch=3) == ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_partitions_that_do_not_exist_are_refused_alone():
    broker = Coordinator()
    commit = broker.commit(5, 6)
    broker.transactions.answer()
    assert sorted(codes(commit)) == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    only = broker.commit(5, topics=[TxnOffsetCommitRequestTopic(name="nowhere", partitions=[])])
    assert only.answer.topics == []


def test_very_many_offsets_are_committed_in_parts_of_one_transaction(monkeypatch):
    broker = Coordinator()
    monkeypatch.setattr(parts, "MAX_ENTRIES_AT_ONCE", 2)
    wanted = [
        TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=""
        )
        for offset in range(5)
    ]
    topics = [TxnOffsetCommitRequestTopic(name=TOPIC, partitions=wanted)]
    commit = broker.commit(topics=topics)
    broker.transactions.answer()
    assert codes(commit) == [0] * 5
    assert len(broker.batches()) == 3
    broker.end()
    assert broker.fetch() == 4


def test_a_marker_for_groups_that_are_elsewhere_is_told_so():
    broker = Coordinator()
    broker.node.replay(
        PartitionChangeRecord(partition_id=0, topic_id=OFFSETS_ID, leader=2, isr=[2])
    )
    broker.groups.follow_partitions()
    assert broker.end() == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert codes(broker.commit(5)) == [ErrorCode.NOT_COORDINATOR]
