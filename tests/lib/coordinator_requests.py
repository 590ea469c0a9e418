"""Valid and invalid requests to the coordinators of groups and transactions, and their errors."""

from typing import Any

from broker.records.build import build_batch
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from common.kafka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from common.kafka.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from common.kafka.protocol.messages.describe_transactions import DescribeTransactionsRequest
from common.kafka.protocol.messages.end_txn import EndTxnRequest
from common.kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from common.kafka.protocol.messages.heartbeat import HeartbeatRequest
from common.kafka.protocol.messages.init_producer_id import InitProducerIdRequest
from common.kafka.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from common.kafka.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from common.kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from common.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from common.kafka.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from common.kafka.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.lib.raw_kafka import RawConnection
from tests.lib.waiting import until

TOPIC = "bad-orders"
PARTITION = 1  # what `produce` writes to
KNOWN, OPEN = "known", "open"
CLASSIC, MODERN = "classic-group", "modern-group"
NOBODY = "nobody-of-that-name"
TOO_LONG = "x" * 4097  # the limit is 4096
TIMEOUT_MS = 600_000
NOW_MS = 1_700_000_000_000


class Asks:
    """Sends requests over one connection; arguments replace valid defaults."""

    def __init__(self, connection: RawConnection) -> None:
        self._connection = connection

    def ask(self, key: ApiKey, version: int, request: Message) -> Any:
        return self._connection.ask(key, version, request)

    def has_coordinators(self, key_type: int, names: list[str]) -> bool:
        """Whether all partitions have a leader; the first request creates the topic."""
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=names)
        found = self.ask(ApiKey.FIND_COORDINATOR, 4, request).coordinators
        return not any(one.error_code for one in found)

    def init(self, name: str | None, timeout_ms: int = TIMEOUT_MS, **fields: int) -> Any:
        request = InitProducerIdRequest(
            transactional_id=name, transaction_timeout_ms=timeout_ms, **fields
        )
        return self.ask(ApiKey.INIT_PRODUCER_ID, 4, request)

    def producer_of(self, name: str, timeout_ms: int = TIMEOUT_MS) -> tuple[int, int]:
        """Initialize a transactional producer, or initialize it again."""
        known: list[tuple[int, int]] = []

        def is_known() -> bool:
            answer = self.init(name, timeout_ms)
            known.append((answer.producer_id, answer.producer_epoch))
            return not answer.error_code

        until(is_known)
        return known[-1]

    def add_partitions(
        self,
        name: str,
        producer: tuple[int, int],
        topic: str,
        version: int = 3,
        partition: int = 0,
    ) -> int:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[partition])],
        )
        answer = self.ask(ApiKey.ADD_PARTITIONS_TO_TXN, version, request)
        return answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code

    def add_offsets(self, name: str, producer: tuple[int, int], group: str) -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id=name,
            producer_id=producer[0],
            producer_epoch=producer[1],
            group_id=group,
        )
        return self.ask(ApiKey.ADD_OFFSETS_TO_TXN, 3, request).error_code

    def end(self, name: str, producer: tuple[int, int], version: int, committed: bool) -> int:
        request = EndTxnRequest(
            transactional_id=name,
            producer_id=producer[0],
            producer_epoch=producer[1],
            committed=committed,
        )
        return self.ask(ApiKey.END_TXN, version, request).error_code

    def state_of(self, name: str) -> str:
        """Return the state of a transaction from its coordinator."""
        request = DescribeTransactionsRequest(transactional_ids=[name])
        return (
            self.ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, request)
            .transaction_states[0]
            .transaction_state
        )

    def txn_commit(
        self,
        producer: tuple[int, int],
        version: int = 4,
        metadata: str = "",
        name: str = OPEN,
        **member: Any,
    ) -> int:
        partition = TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=1, committed_metadata=metadata
        )
        request = TxnOffsetCommitRequest(
            transactional_id=name,
            group_id=CLASSIC,
            producer_id=producer[0],
            producer_epoch=producer[1],
            topics=[TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[partition])],
            **member,
        )
        answer = self.ask(ApiKey.TXN_OFFSET_COMMIT, version, request)
        return answer.topics[0].partitions[0].error_code

    def commit(
        self, group: str, generation: int, member_id: str, metadata: str = "", topic: str = TOPIC
    ) -> int:
        partition = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=1, committed_metadata=metadata
        )
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])],
        )
        answer = self.ask(ApiKey.OFFSET_COMMIT, 9, request)
        return answer.topics[0].partitions[0].error_code

    def produce(
        self,
        name: str,
        producer: tuple[int, int],
        version: int,
        sequence: int = 0,
        value: bytes = b"bad",
        topic: str = TOPIC,
    ) -> int:
        batch = build_batch(
            [(None, value, (), NOW_MS)],
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=sequence,
            is_transactional=True,
        )
        data = PartitionProduceData(index=PARTITION, records=batch)
        request = ProduceRequest(
            transactional_id=name,
            acks=-1,
            timeout_ms=10_000,
            topic_data=[TopicProduceData(name=topic, partition_data=[data])],
        )
        answer = self.ask(ApiKey.PRODUCE, version, request)
        return answer.responses[0].partition_responses[0].error_code

    def join(self, group: str, member_id: str = "", **fields: Any) -> Any:
        named = {
            "session_timeout_ms": TIMEOUT_MS,
            "protocol_type": "consumer",
            "protocols": [JoinGroupRequestProtocol(name="range", metadata=b"\0\1" + bytes(12))],
            **fields,
        }
        request = JoinGroupRequest(
            group_id=group, rebalance_timeout_ms=60_000, member_id=member_id, **named
        )
        return self.ask(ApiKey.JOIN_GROUP, 7, request)

    def sync(self, group: str, member_id: str, generation: int, assigned: bytes = b"") -> int:
        assignment = SyncGroupRequestAssignment(member_id=member_id, assignment=assigned)
        request = SyncGroupRequest(
            group_id=group,
            member_id=member_id,
            generation_id=generation,
            assignments=[assignment],
        )
        return self.ask(ApiKey.SYNC_GROUP, 4, request).error_code

    def heartbeat(self, member_id: str, generation: int) -> int:
        request = HeartbeatRequest(group_id=CLASSIC, member_id=member_id, generation_id=generation)
        return self.ask(ApiKey.HEARTBEAT, 4, request).error_code

    def leave(self, group: str, member_id: str) -> int:
        request = LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=member_id)])
        answer = self.ask(ApiKey.LEAVE_GROUP, 4, request)
        return answer.error_code or answer.members[0].error_code

    def modern(self, member_id: str, epoch: int, group: str = MODERN, **fields: Any) -> Any:
        request = ConsumerGroupHeartbeatRequest(
            group_id=group, member_id=member_id, member_epoch=epoch, **fields
        )
        return self.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request)

    def modern_join(self, **fields: Any) -> int:
        named: dict[str, Any] = {
            "rebalance_timeout_ms": 60_000,
            "subscribed_topic_names": [TOPIC],
            "topic_partitions": [],
            **fields,
        }
        member_id = named.pop("member_id", "a-new-member")
        return self.modern(member_id, 0, named.pop("group", MODERN), **named).error_code
