"""TxnOffsetCommit (key 28), and the end of a transaction with committed offsets.

Versions 0-2 name a group and no member: the producer of the transaction may commit for any group.
From v3 the member is checked as in OffsetCommit (KIP-447), so that a consumer that has lost its
partitions cannot commit for them. Unlike OffsetCommit, the request is also allowed while the group
waits for its assignment. A wrong epoch is ILLEGAL_GENERATION for members of both protocols, because
producers know no other error for it.

The caller checks that the transaction is open and includes this partition.
"""

from broker.coordinator.classic_group.classic_group import ClassicGroup, GroupState
from broker.coordinator.classic_group.records import offset_record
from broker.coordinator.consumer_group.administration import commit_refusal
from broker.coordinator.consumer_group.consumer_group import ConsumerGroup
from broker.coordinator.consumer_group.member import ConsumerMember
from broker.coordinator.group.offsets import metadata_code, validate_no_share_group
from broker.coordinator.group_state.config import fits_record
from broker.coordinator.group_state.pending_offsets import NO_TOPIC_ID, OffsetAndMetadata
from broker.coordinator.group_state.step import Step
from broker.coordinator.output import (
    EndOfTransaction,
    InTransaction,
    Output,
    ShardContext,
    Token,
)
from broker.coordinator.streams_group.administration import Committer, allow_all, committer
from broker.coordinator.streams_group.streams_group import StreamsGroup
from broker.model import TopicPartition
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)


def refuse_transactional_commit(
    context: ShardContext, request: TxnOffsetCommitRequest, code: ErrorCode
) -> TxnOffsetCommitResponse:
    """Build the answer to a refused TxnOffsetCommit, with the error at every partition."""
    topics = [_answer(topic, [code] * len(topic.partitions)) for topic in request.topics]
    return TxnOffsetCommitResponse(topics=topics)


def _answer(
    topic: TxnOffsetCommitRequestTopic, codes: list[ErrorCode]
) -> TxnOffsetCommitResponseTopic:
    return TxnOffsetCommitResponseTopic(
        name=topic.name,
        partitions=[
            TxnOffsetCommitResponsePartition(
                partition_index=partition.partition_index, error_code=code
            )
            for partition, code in zip(topic.partitions, codes, strict=True)
        ],
    )


def commit_in_transaction(
    step: Step, token: Token, context: ShardContext, request: TxnOffsetCommitRequest
) -> None:
    """Write the offsets as a part of the producer's transaction."""
    member, group = None, None
    check: Committer = allow_all
    validate_no_share_group(step, request.group_id)
    consumer_group = step.shard.of(ConsumerGroup).get(request.group_id)
    streams_group = step.shard.of(StreamsGroup).get(request.group_id)
    if streams_group is not None:
        check = streams_committer(streams_group, request)
    elif consumer_group is None:
        group = committing_group(step, request)
    else:
        member = committing_member(consumer_group, request)
    answers: list[TxnOffsetCommitResponseTopic] = []
    accepted: list[tuple[TopicPartition, OffsetAndMetadata]] = []
    for topic in request.topics:
        codes = [
            metadata_code(step, topic.name, partition.committed_metadata)
            or epoch_code(
                step, member, request, TopicPartition(topic.name, partition.partition_index)
            )
            or in_generations(check(topic.name, NO_TOPIC_ID, partition.partition_index))
            for partition in topic.partitions
        ]
        answers.append(_answer(topic, codes))
        accepted += [
            (
                TopicPartition(topic.name, partition.partition_index),
                OffsetAndMetadata(
                    partition.committed_offset,
                    partition.committed_leader_epoch,
                    partition.committed_metadata or "",
                    step.now.timestamp_ms,
                ),
            )
            for partition, code in zip(topic.partitions, codes, strict=True)
            if code is ErrorCode.NONE
        ]
    write_pending(step, request, accepted)
    if group is not None and accepted:
        step.shard.of(ClassicGroup).setdefault(group.group_id, group)
    step.reply(token, TxnOffsetCommitResponse(topics=answers))


def write_pending(
    step: Step,
    request: TxnOffsetCommitRequest,
    offsets: list[tuple[TopicPartition, OffsetAndMetadata]],
) -> None:
    """Append the records of one commit, which must fit into one batch, and apply them."""
    group_id = request.group_id
    records = [offset_record(group_id, *offset) for offset in offsets]
    if Output(records).batch_size_bytes > step.shard.config.max_batch_bytes:
        raise KafkaError(ErrorCode.INVALID_COMMIT_OFFSET_SIZE)
    if not records:
        return
    step.output.records += records
    step.output.transaction = InTransaction(request.producer_id, request.producer_epoch)
    for partition, offset in offsets:
        step.shard.offsets.put_pending(request.producer_id, group_id, partition, offset)


def committing_group(step: Step, request: TxnOffsetCommitRequest) -> ClassicGroup:
    """Return the group, or a new simple one; raise KafkaError if the commit is not allowed."""
    if not request.group_id or not fits_record(request.group_id):
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    group = step.shard.of(ClassicGroup).get(request.group_id)
    if group is None:
        if request.generation_id >= 0:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        return ClassicGroup(request.group_id, current_state_timestamp_ms=step.now.timestamp_ms)
    if request.generation_id < 0 and (group.state is GroupState.EMPTY or not names_member(request)):
        return group
    group.validate_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation_id:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    return group


def names_member(request: TxnOffsetCommitRequest) -> bool:
    """Return True if the request names the member that commits."""
    return bool(request.member_id) or request.group_instance_id is not None


def committing_member(
    group: ConsumerGroup, request: TxnOffsetCommitRequest
) -> ConsumerMember | None:
    """Return the member that commits, None if the request may leave it out; raise KafkaError."""
    epoch = request.generation_id
    if epoch < 0 and (not group.members or not names_member(request)):
        return None
    member = group.member(request.member_id)
    if epoch > member.member_epoch:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    return member


def streams_committer(group: StreamsGroup, request: TxnOffsetCommitRequest) -> Committer:
    """Return the check of each partition of a commit to a streams group; raise KafkaError."""
    if request.generation_id < 0 and not names_member(request):
        return allow_all
    try:
        return committer(group, request.member_id, request.generation_id)
    except KafkaError as refusal:
        raise KafkaError(in_generations(refusal.code), refusal.message) from refusal


def in_generations(code: ErrorCode) -> ErrorCode:
    """Return an error in the words of this API, which knows generations and no epochs."""
    return ErrorCode.ILLEGAL_GENERATION if code is ErrorCode.STALE_MEMBER_EPOCH else code


def epoch_code(
    step: Step,
    member: ConsumerMember | None,
    request: TxnOffsetCommitRequest,
    partition: TopicPartition,
) -> ErrorCode:
    """Return ILLEGAL_GENERATION if the member did not own the partition in its epoch."""
    if member is None or request.generation_id == member.member_epoch:
        return ErrorCode.NONE
    topic = step.shard.image().topics.by_name.get(partition.topic)
    topic_id = NO_TOPIC_ID if topic is None else topic.topic_id
    refusal = commit_refusal(member, request.generation_id, topic_id, partition.partition)
    return ErrorCode.ILLEGAL_GENERATION if refusal else ErrorCode.NONE


def end_transaction(step: Step, token: Token, end: EndOfTransaction) -> None:
    """Write the marker, and make the producer's pending offsets valid or drop them."""
    step.output.transaction = end
    step.shard.offsets.end_transaction(end.producer_id, is_commit=end.is_commit)
    step.reply(token, ErrorCode.NONE)
