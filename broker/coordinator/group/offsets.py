"""OffsetCommit (key 8), OffsetFetch (key 9), OffsetDelete (key 47), and the expiry of offsets.

A commit comes from a member of the current generation, or (generation -1, no member) from a
*simple* consumer or an administrator; the latter need a group without members. OffsetCommit v2-4
has a retention time; v6 adds the leader epoch, v7 group_instance_id; v9 returns GROUP_ID_NOT_FOUND
where older versions return ILLEGAL_GENERATION. OffsetFetch v8 names several groups: here each of
them is one request. From v10 both APIs name topics by id: the caller fills in the names, and an
empty name means an unknown id. A topic id that both sides know also protects a new topic from the
offsets of a deleted one with the same name. The empty group id is valid here, as in Kafka.
"""

from broker.coordinator.classic_group.classic_group import ClassicGroup, GroupState
from broker.coordinator.classic_group.records import group_tombstone, offset_record
from broker.coordinator.classic_group.sessions import existing_group, restart_session
from broker.coordinator.consumer_group.administration import (
    commit_refusal,
    committing_member,
    validate_fetch,
)
from broker.coordinator.consumer_group.consumer_group import ConsumerGroup
from broker.coordinator.consumer_group.migration import erase_group
from broker.coordinator.group_state.config import MAX_TIMESTAMP_MS, fits_record
from broker.coordinator.group_state.offset_store import NO_TIMESTAMP, NO_TOPIC_ID, OffsetAndMetadata
from broker.coordinator.group_state.step import Step
from broker.coordinator.output import Output, ShardContext, Token
from broker.coordinator.share_group.share_group import ShareGroup
from broker.coordinator.streams_group import departures as streams_departures
from broker.coordinator.streams_group.administration import Committer, allow_all, committer
from broker.coordinator.streams_group.administration import validate_fetch as validate_streams_fetch
from broker.coordinator.streams_group.streams_group import StreamsGroup
from broker.model import TopicPartition
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from common.kafka.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from common.kafka.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND = 9
FIRST_VERSION_WITH_TOPIC_IDS = 10
NO_RETENTION_TIME = -1
NO_OFFSET = -1
MAX_OFFSETS_AT_ONCE = 1_000
"""The most offsets in one answer of a shard; few groups read as many partitions."""

OffsetsByTopic = dict[str, dict[int, OffsetAndMetadata]]


def refuse_commit(
    context: ShardContext, request: OffsetCommitRequest, code: ErrorCode
) -> OffsetCommitResponse:
    """Build the answer to a refused OffsetCommit, with the error at every partition."""
    topics = [commit_answer(topic, [code] * len(topic.partitions)) for topic in request.topics]
    return OffsetCommitResponse(topics=topics)


def commit_answer(
    topic: OffsetCommitRequestTopic, codes: list[ErrorCode]
) -> OffsetCommitResponseTopic:
    """Build the answer for one topic, with one code per partition in the request's order."""
    partitions = [
        OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code)
        for partition, code in zip(topic.partitions, codes, strict=True)
    ]
    return OffsetCommitResponseTopic(
        name=topic.name, topic_id=topic.topic_id, partitions=partitions
    )


def validate_no_share_group(step: Step, group_id: str) -> None:
    """Raise GROUP_ID_NOT_FOUND for a share group, which commits no offsets."""
    if group_id in step.shard.of(ShareGroup):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")


def commit_offsets(
    step: Step, token: Token, context: ShardContext, request: OffsetCommitRequest
) -> None:
    """Write the valid offsets in one batch; an invalid one gets an error code of its own."""
    group = None
    check: Committer = allow_all
    validate_no_share_group(step, request.group_id)
    consumer_group = step.shard.of(ConsumerGroup).get(request.group_id)
    streams_group = step.shard.of(StreamsGroup).get(request.group_id)
    if streams_group is not None:
        epoch = request.generation_id_or_member_epoch
        check = committer(streams_group, request.member_id, epoch, context.api_version)
    elif consumer_group is None:
        group = committing_group(step, context, request)
    else:
        check = consumer_committer(step, consumer_group, context, request)
    expire_timestamp_ms = NO_TIMESTAMP
    if request.retention_time_ms != NO_RETENTION_TIME:
        expire_timestamp_ms = step.now.timestamp_ms + request.retention_time_ms
        expire_timestamp_ms = min(expire_timestamp_ms, MAX_TIMESTAMP_MS)
    answers: list[OffsetCommitResponseTopic] = []
    accepted: list[tuple[TopicPartition, OffsetAndMetadata]] = []
    for topic in request.topics:
        codes = [commit_code(step, context, topic, partition) for partition in topic.partitions]
        codes = [
            code or check(topic.name, topic.topic_id, partition.partition_index)
            for code, partition in zip(codes, topic.partitions, strict=True)
        ]
        answers.append(commit_answer(topic, codes))
        accepted += [
            (
                TopicPartition(topic.name, partition.partition_index),
                OffsetAndMetadata(
                    partition.committed_offset,
                    partition.committed_leader_epoch,
                    partition.committed_metadata or "",
                    step.now.timestamp_ms,
                    expire_timestamp_ms,
                    topic.topic_id,
                ),
            )
            for partition, code in zip(topic.partitions, codes, strict=True)
            if code is ErrorCode.NONE
        ]
    write_offsets(step, request.group_id, accepted)
    if group is not None:
        if accepted:
            step.shard.of(ClassicGroup).setdefault(group.group_id, group)
        if group.state in (GroupState.STABLE, GroupState.PREPARING_REBALANCE):
            restart_session(step, group, group.members[request.member_id])
    step.reply(token, OffsetCommitResponse(topics=answers))


def commit_code(
    step: Step,
    context: ShardContext,
    topic: OffsetCommitRequestTopic,
    partition: OffsetCommitRequestPartition,
) -> ErrorCode:
    """Return the error code for one partition of an allowed commit."""
    if not topic.name and context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
        return ErrorCode.UNKNOWN_TOPIC_ID
    return metadata_code(step, topic.name, partition.committed_metadata)


def metadata_code(step: Step, topic: str, metadata: str | None) -> ErrorCode:
    """Return the error code for an offset that does not fit into a record, else NONE."""
    if not fits_record(topic):
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    metadata = metadata or ""
    limit_bytes = step.shard.config.offset_metadata_max_bytes
    if len(metadata) > limit_bytes or not fits_record(metadata):
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    return ErrorCode.NONE


def consumer_committer(
    step: Step, group: ConsumerGroup, context: ShardContext, request: OffsetCommitRequest
) -> Committer:
    """Return the check of each partition of a commit to a consumer group; raise KafkaError."""
    epoch = request.generation_id_or_member_epoch
    member = committing_member(group, request.member_id, epoch, context.api_version)
    if member is None or epoch == member.member_epoch:
        return allow_all
    topics = step.shard.image().topics.by_name

    def check(topic: str, topic_id: bytes, partition: int) -> ErrorCode:
        if topic_id == NO_TOPIC_ID and topic in topics:
            topic_id = topics[topic].topic_id
        return commit_refusal(member, epoch, topic_id, partition)

    return check


def write_offsets(
    step: Step, group_id: str, offsets: list[tuple[TopicPartition, OffsetAndMetadata]]
) -> None:
    """Append the records of one commit, which must fit into one batch, and apply them.

    Raise INVALID_COMMIT_OFFSET_SIZE for a batch that is too large. Kafka answers
    UNKNOWN_SERVER_ERROR, because only its log detects the size.
    """
    records = [offset_record(group_id, *offset) for offset in offsets]
    if Output(records).batch_size_bytes > step.shard.config.max_batch_bytes:
        raise KafkaError(ErrorCode.INVALID_COMMIT_OFFSET_SIZE)
    step.output.records += records
    for partition, committed in offsets:
        step.shard.offsets.put(group_id, partition, committed)


def committing_group(
    step: Step, context: ShardContext, request: OffsetCommitRequest
) -> ClassicGroup:
    """Return the group, or a new simple one; raise KafkaError if the commit is not allowed."""
    if not fits_record(request.group_id):
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    group = step.shard.of(ClassicGroup).get(request.group_id)
    generation_id = request.generation_id_or_member_epoch
    if group is None:
        if generation_id < 0:
            return ClassicGroup(request.group_id, current_state_timestamp_ms=step.now.timestamp_ms)
        has_error = context.api_version >= FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND
        raise KafkaError(
            ErrorCode.GROUP_ID_NOT_FOUND if has_error else ErrorCode.ILLEGAL_GENERATION
        )
    if generation_id < 0 and group.state is GroupState.EMPTY:
        return group
    if generation_id < 0 and not request.member_id and request.group_instance_id is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    group.validate_member(request.member_id, request.group_instance_id)
    if generation_id != group.generation_id:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    if group.state is GroupState.COMPLETING_REBALANCE:
        # The member knows the generation but has no assignment: it must sync first.
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
    return group


def refuse_fetch(
    context: ShardContext, request: OffsetFetchRequestGroup, code: ErrorCode
) -> OffsetFetchResponseGroup:
    """Build the answer to a refused OffsetFetch for one group."""
    return OffsetFetchResponseGroup(group_id=request.group_id, error_code=code)


def fetch_offsets(
    step: Step,
    token: Token,
    context: ShardContext,
    request: OffsetFetchRequestGroup,
    *,
    require_stable: bool = False,
) -> None:
    """Answer with the committed offsets of a group; -1 for a partition or group without one.

    With `require_stable`, a partition that an open transaction may change gets
    UNSTABLE_OFFSET_COMMIT (KIP-447). If the request asks for all offsets and there are more than
    MAX_OFFSETS_AT_ONCE, the answer is `OffsetsByTopic`, and the caller builds the response in
    parts: one response would take too long.
    """
    validate_no_share_group(step, request.group_id)
    consumer_group = step.shard.of(ConsumerGroup).get(request.group_id)
    streams_group = step.shard.of(StreamsGroup).get(request.group_id)
    if consumer_group is not None:
        validate_fetch(consumer_group, request.member_id, request.member_epoch)
    elif streams_group is not None:
        validate_streams_fetch(streams_group, request.member_id, request.member_epoch)
    if request.topics is None:
        stored = step.shard.offsets.topics_of(request.group_id)
        if sum(map(len, stored.values())) > MAX_OFFSETS_AT_ONCE:
            step.reply(token, dict(stored))
            return
        topics = [
            OffsetFetchResponseTopics(
                name=name,
                topic_id=next(iter(partitions.values())).topic_id,
                partitions=[
                    fetched_partition(index, committed) for index, committed in partitions.items()
                ],
            )
            for name, partitions in stored.items()
        ]
    else:
        topics = [fetched_topic(step, context, request.group_id, each) for each in request.topics]
    if require_stable and request.group_id in step.shard.offsets.pending:
        hide_unstable(step, request.group_id, topics)
    step.reply(token, OffsetFetchResponseGroup(group_id=request.group_id, topics=topics))


def hide_unstable(step: Step, group_id: str, topics: list[OffsetFetchResponseTopics]) -> None:
    """Replace offsets that an open transaction may change by UNSTABLE_OFFSET_COMMIT."""
    pending = step.shard.offsets.pending
    for topic in topics:
        topic.partitions = [
            fetched_partition(each.partition_index, None, ErrorCode.UNSTABLE_OFFSET_COMMIT)
            if pending.has(group_id, TopicPartition(topic.name, each.partition_index))
            else each
            for each in topic.partitions
        ]


def fetched_topic(
    step: Step, context: ShardContext, group_id: str, topic: OffsetFetchRequestTopics
) -> OffsetFetchResponseTopics:
    """Build the answer for the partitions of one topic."""
    code = ErrorCode.NONE
    if not topic.name and context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
        code = ErrorCode.UNKNOWN_TOPIC_ID
    partitions = []
    for index in topic.partition_indexes:
        committed = step.shard.offsets.get(group_id, topic.name, index)
        if committed is not None and not committed.belongs_to(topic.topic_id):
            committed = None
        partitions.append(fetched_partition(index, committed, code))
    return OffsetFetchResponseTopics(
        name=topic.name, topic_id=topic.topic_id, partitions=partitions
    )


def fetched_partition(
    index: int, committed: OffsetAndMetadata | None, code: ErrorCode = ErrorCode.NONE
) -> OffsetFetchResponsePartitions:
    """Build the answer for one partition."""
    if committed is None:
        committed = OffsetAndMetadata(NO_OFFSET)
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        error_code=code,
    )


def refuse_delete(
    context: ShardContext, request: OffsetDeleteRequest, code: ErrorCode
) -> OffsetDeleteResponse:
    """Build the answer to a refused OffsetDelete."""
    return OffsetDeleteResponse(error_code=code)


def delete_offsets(
    step: Step, token: Token, context: ShardContext, request: OffsetDeleteRequest
) -> None:
    """Delete offsets; a topic that a member reads gets GROUP_SUBSCRIBED_TO_TOPIC."""
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    group: ClassicGroup | ConsumerGroup | StreamsGroup | None
    group_id = request.group_id
    group = step.shard.of(ConsumerGroup).get(group_id) or step.shard.of(StreamsGroup).get(group_id)
    if group is None:
        group = existing_group(step, request.group_id, ErrorCode.GROUP_ID_NOT_FOUND)
        if group.state is not GroupState.EMPTY and not group.uses_consumer_protocol:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
    answers = [delete_topic_offsets(step, group, topic) for topic in request.topics]
    step.reply(token, OffsetDeleteResponse(topics=answers))


def delete_topic_offsets(
    step: Step,
    group: ClassicGroup | ConsumerGroup | StreamsGroup,
    topic: OffsetDeleteRequestTopic,
) -> OffsetDeleteResponseTopic:
    """Delete the offsets of one topic, if there are any."""
    is_subscribed = group.is_subscribed_to(topic.name)
    code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_subscribed else ErrorCode.NONE
    for partition in topic.partitions:
        index = partition.partition_index
        place = TopicPartition(topic.name, index)
        if not is_subscribed and step.shard.offsets.has_any(group.group_id, place):
            remove_offset(step, group.group_id, place)
    return OffsetDeleteResponseTopic(
        name=topic.name,
        partitions=[
            OffsetDeleteResponsePartition(partition_index=each.partition_index, error_code=code)
            for each in topic.partitions
        ],
    )


def remove_offset(step: Step, group_id: str, partition: TopicPartition) -> None:
    """Append the tombstone of a committed offset, and apply it."""
    step.append(offset_record(group_id, partition, None))
    step.shard.offsets.remove(group_id, partition)


def create_simple_group(step: Step, group_id: str) -> None:
    """Create the simple group of loaded offsets; a simple group has no record of its own."""
    if not step.shard.has_other_group(group_id, than={}):
        step.shard.of(ClassicGroup)[group_id] = ClassicGroup(group_id)


def remove_topic(step: Step, topic: str, topic_id: bytes) -> None:
    """Remove the offsets of a deleted topic.

    An offset that was committed after `now` belongs to a newer topic of the same name.
    """

    def is_of_it(offset: OffsetAndMetadata) -> bool:
        is_older = offset.commit_timestamp_ms <= step.now.timestamp_ms
        return is_older and offset.belongs_to(topic_id)

    doomed = [
        (group_id, TopicPartition(topic, partition))
        for group_id, partition, committed in step.shard.offsets.of_topic(topic)
        if is_of_it(committed)
    ]
    doomed += [
        place
        for place, offsets in step.shard.offsets.pending.of_topic(topic)
        if all(map(is_of_it, offsets))
    ]
    for group_id, partition in dict.fromkeys(doomed):
        remove_offset(step, group_id, partition)


def expire_offsets(step: Step) -> None:
    """Remove expired offsets, and groups without members and offsets."""
    for group in list(step.shard.of(ClassicGroup).values()):
        for partition, committed in step.shard.offsets.of_group(group.group_id):
            is_decided = not step.shard.offsets.pending.has(group.group_id, partition)
            is_read = group.is_subscribed_to(partition.topic)
            if is_decided and not is_read and has_expired(step, group, committed):
                remove_offset(step, group.group_id, partition)
        has_left = group.state is GroupState.EMPTY and not group.pending_member_ids
        if has_left and group.group_id not in step.shard.offsets:
            remove_group(step, group)
    for consumer_group in list(step.shard.of(ConsumerGroup).values()):
        expire_offsets_of(step, consumer_group)
        if has_nothing_left(step, consumer_group):
            erase_group(step, consumer_group)
    for streams_group in list(step.shard.of(StreamsGroup).values()):
        expire_offsets_of(step, streams_group)
        if has_nothing_left(step, streams_group):
            streams_departures.erase_group(step, streams_group)


def has_nothing_left(step: Step, group: ConsumerGroup | StreamsGroup) -> bool:
    """Return True if a group has neither members nor offsets."""
    return not group.members and group.group_id not in step.shard.offsets


def expire_offsets_of(step: Step, group: ConsumerGroup | StreamsGroup) -> None:
    """Remove the expired offsets of a group of a newer protocol."""
    retention_ms = step.shard.config.offsets_retention_ms
    for partition, committed in step.shard.offsets.of_group(group.group_id):
        age_ms = step.now.timestamp_ms - committed.commit_timestamp_ms
        is_over = age_ms >= retention_ms
        if committed.expire_timestamp_ms != NO_TIMESTAMP:
            is_over = step.now.timestamp_ms >= committed.expire_timestamp_ms
        is_decided = not step.shard.offsets.pending.has(group.group_id, partition)
        if is_decided and is_over and not group.is_subscribed_to(partition.topic):
            remove_offset(step, group.group_id, partition)


def has_expired(step: Step, group: ClassicGroup, committed: OffsetAndMetadata) -> bool:
    """Return True if an offset has expired.

    The retention time of a simple group's offset starts with the commit; that of a group without
    members starts when the last one left; that of a STABLE group starts with the commit, and only
    for topics that no member reads (KIP-211). An offset's own expiry time, from an old client,
    takes precedence.
    """
    base_timestamp_ms = committed.commit_timestamp_ms
    if group.protocol_type is not None:
        is_known = group.state is GroupState.STABLE and group.subscribed_topics is not None
        if group.state is not GroupState.EMPTY and not is_known:
            return False
        # Group records before version 2 do not say when the group became empty.
        if group.state is GroupState.EMPTY and group.current_state_timestamp_ms != NO_TIMESTAMP:
            base_timestamp_ms = group.current_state_timestamp_ms
    if committed.expire_timestamp_ms != NO_TIMESTAMP:
        return step.now.timestamp_ms >= committed.expire_timestamp_ms
    return step.now.timestamp_ms - base_timestamp_ms >= step.shard.config.offsets_retention_ms


def remove_group(step: Step, group: ClassicGroup) -> None:
    """Remove a group, and append its tombstone if it has a record."""
    if group.is_persisted:
        step.append(group_tombstone(group.group_id))
    del step.shard.of(ClassicGroup)[group.group_id]
