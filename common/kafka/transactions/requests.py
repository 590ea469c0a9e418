"""The requests of a transaction, and what their answers say. Pure.

Protocol 2 (KIP-890): Produce 12 and TxnOffsetCommit 5 add their partition to the transaction by
themselves, EndTxn 5 answers with the epoch of the next transaction. Protocol 1 stays below these
versions. TxnOffsetCommit names the member and the generation of its group (KIP-447), OffsetFetch 7
waits for offsets that are not settled (KIP-447).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from aiokafka.structs import TopicPartition

from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from common.kafka.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)
from common.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from common.kafka.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from common.kafka.transactions.rules import Answer, Member, Producer, Write

PRODUCE_VERSIONS: Final = {1: 9, 2: 12}
OFFSETS_VERSIONS: Final = {1: 3, 2: 5}
END_VERSIONS: Final = {1: 3, 2: 5}
"""By protocol, the highest version."""
ADD_VERSION: Final = 3
INIT_VERSION: Final = 4
FETCH_VERSION: Final = 7
_ACKS_ALL: Final = -1


def produce(
    producer: Producer, batches: Mapping[Write, bytes], writes: Iterable[Write], timeout_ms: int
) -> ProduceRequest:
    """Return the request that writes some of the batches of a transaction to one leader."""
    by_topic: dict[str, list[PartitionProduceData]] = defaultdict(list)
    for write in writes:
        data = PartitionProduceData(index=write.partition, records=batches[write])
        by_topic[write.topic].append(data)
    return ProduceRequest(
        transactional_id=producer.transactional_id,
        acks=_ACKS_ALL,
        timeout_ms=timeout_ms,
        topic_data=[
            TopicProduceData(name=topic, partition_data=data) for topic, data in by_topic.items()
        ],
    )


def produced(response: ProduceResponse, writes: Iterable[Write]) -> list[Answer]:
    """Return the error code of each write; one that is not answered counts as lost."""
    codes = {
        (topic.name, each.index): each.error_code
        for topic in response.responses
        for each in topic.partition_responses
    }
    lost = ErrorCode.NETWORK_EXCEPTION
    return [(write, codes.get((write.topic, write.partition), lost)) for write in writes]


def add_partitions(
    producer: Producer, partitions: Iterable[TopicPartition]
) -> AddPartitionsToTxnRequest:
    """Return the request that tells which partitions will be written."""
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=producer.transactional_id,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=[
            AddPartitionsToTxnTopic(name=topic, partitions=numbers)
            for topic, numbers in _by_topic(partitions)
        ],
    )


def added(response: AddPartitionsToTxnResponse) -> int:
    """Return the first error code, 0 if there is none."""
    return _first_error(
        each.partition_error_code
        for topic in response.results_by_topic_v3_and_below
        for each in topic.results_by_partition
    )


def commit_offsets(
    producer: Producer, member: Member, offsets: Mapping[TopicPartition, int]
) -> TxnOffsetCommitRequest:
    """Return the request that writes consumed offsets."""
    by_topic: dict[str, list[TxnOffsetCommitRequestPartition]] = defaultdict(list)
    for partition, offset in offsets.items():
        by_topic[partition.topic].append(
            TxnOffsetCommitRequestPartition(
                partition_index=partition.partition,
                committed_offset=offset,
                committed_metadata=None,
            )
        )
    return TxnOffsetCommitRequest(
        transactional_id=producer.transactional_id,
        group_id=member.group_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        generation_id=member.generation_id,
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        topics=[
            TxnOffsetCommitRequestTopic(name=topic, partitions=found)
            for topic, found in by_topic.items()
        ],
    )


def offsets_committed(response: TxnOffsetCommitResponse) -> int:
    """Return the first error code, 0 if there is none."""
    return _first_error(each.error_code for topic in response.topics for each in topic.partitions)


def fetch_offsets(group_id: str, partitions: Iterable[TopicPartition]) -> OffsetFetchRequest:
    """Return the request for the offsets that no open transaction can change."""
    topics = [
        OffsetFetchRequestTopic(name=topic, partition_indexes=numbers)
        for topic, numbers in _by_topic(partitions)
    ]
    return OffsetFetchRequest(group_id=group_id, topics=topics, require_stable=True)


def fetched_error(response: OffsetFetchResponse) -> int:
    """Return the first error code, 0 if there is none."""
    codes = [each.error_code for topic in response.topics for each in topic.partitions]
    return _first_error([response.error_code, *codes])


def fetched(response: OffsetFetchResponse) -> dict[TopicPartition, int]:
    """Return the committed offsets."""
    return {
        TopicPartition(topic.name, each.partition_index): each.committed_offset
        for topic in response.topics
        for each in topic.partitions
        if each.committed_offset >= 0
    }


def _by_topic(partitions: Iterable[TopicPartition]) -> Iterator[tuple[str, list[int]]]:
    found: dict[str, list[int]] = defaultdict(list)
    for partition in partitions:
        found[partition.topic].append(partition.partition)
    for topic, numbers in found.items():
        yield topic, sorted(numbers)


def _first_error(codes: Iterable[int]) -> int:
    return next((code for code in codes if code), ErrorCode.NONE)
