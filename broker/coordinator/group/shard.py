"""One partition of `__consumer_offsets`: it dispatches every input to the file that handles it.

This is the shell's whole interface. Every request handler has one shape,

    shard.<handler>(token, context, request, now) -> Output

and each token gets exactly one reply, in this output or in a later one, unless the shell calls
`forget`. Only JoinGroup and SyncGroup may be parked; every other request is answered in the output
of its own call.

The shell splits requests that name several groups (DescribeGroups, DeleteGroups, OffsetFetch), and
sends ListGroups to every shard. The response in a reply is then the element for one group
(`DescribedGroup`, `DeletableGroupResult`, `OffsetFetchResponseGroup`) or the `list[FoundGroup]` of
one shard, and the shell merges the elements.

Any input can move the next deadline: call `next_deadline_ms()` after each.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Final, TypeVar

from broker.coordinator.classic_group import join, liveness, rebalance, sync
from broker.coordinator.classic_group.classic_group import ClassicGroup
from broker.coordinator.classic_group.records import OffsetRecord, decode_record
from broker.coordinator.classic_group.sessions import restart_session
from broker.coordinator.consumer_group import (
    administration,
    classic_members,
    departures,
    heartbeat,
)
from broker.coordinator.consumer_group import records as consumer_records
from broker.coordinator.consumer_group.consumer_group import ConsumerGroup
from broker.coordinator.consumer_group.replay import replay
from broker.coordinator.group import describe, offsets, transactional_offsets
from broker.coordinator.group.deadlines import on_deadline
from broker.coordinator.group_state.config import GroupConfig
from broker.coordinator.group_state.step import Parked, ShardState, Step
from broker.coordinator.output import (
    TIMELESS,
    EndOfTransaction,
    Instant,
    Loading,
    Output,
    RandomSource,
    Reply,
    ShardContext,
    Token,
)
from broker.coordinator.share_group import administration as share_administration
from broker.coordinator.share_group import departures as share_departures
from broker.coordinator.share_group import heartbeat as share_heartbeat
from broker.coordinator.share_group import initialization
from broker.coordinator.share_group import offsets as share_offsets
from broker.coordinator.share_group import records as share_records
from broker.coordinator.share_group.replay import replay as replay_share
from broker.coordinator.share_group.share_group import ShareGroup
from broker.coordinator.share_group.state_partitions import Partitions
from broker.coordinator.streams_group import administration as streams_administration
from broker.coordinator.streams_group import departures as streams_departures
from broker.coordinator.streams_group import heartbeat as streams_heartbeat
from broker.coordinator.streams_group import records as streams_records
from broker.coordinator.streams_group.replay import replay as replay_streams
from broker.coordinator.streams_group.streams_group import StreamsGroup
from broker.coordinator.timers import DEADLINES_AT_ONCE
from broker.metadata.image import MetadataImage
from broker.records.header import NO_PRODUCER_ID
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from common.kafka.protocol.messages.heartbeat import HeartbeatRequest
from common.kafka.protocol.messages.join_group import JoinGroupRequest
from common.kafka.protocol.messages.leave_group import LeaveGroupRequest
from common.kafka.protocol.messages.offset_commit import OffsetCommitRequest
from common.kafka.protocol.messages.offset_delete import OffsetDeleteRequest
from common.kafka.protocol.messages.offset_fetch import OffsetFetchRequestGroup
from common.kafka.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from common.kafka.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from common.kafka.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from common.kafka.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest

KEYS_AT_ONCE = 1_000
"""The groups and members that `loaded` handles between two yields: one or two milliseconds."""

RequestT = TypeVar("RequestT")
GroupRequestT = TypeVar(
    "GroupRequestT", JoinGroupRequest, SyncGroupRequest, HeartbeatRequest, LeaveGroupRequest
)
Handler = Callable[[Step, Token, ShardContext, RequestT], None]
Refuse = Callable[[ShardContext, RequestT, ErrorCode], object]


class GroupShard:
    """All groups of one partition.

    Lifecycle: construct, `replay` every record of the partition, run `loaded(now)` to its end, then
    call handlers and `on_deadline`; at the end `unload(code)`.
    """

    def __init__(
        self,
        config: GroupConfig,
        random: RandomSource,
        image: Callable[[], MetadataImage] = MetadataImage,
    ) -> None:
        self.state: Final = ShardState(config, random, image)

    # Loading and unloading.

    def replay(self, key: bytes, value: bytes | None, producer_id: int = NO_PRODUCER_ID) -> None:
        """Apply one record, in log order, while loading. Handlers apply their own records.

        `producer_id` is that of a batch in a transaction. Raise DecodeError for a damaged record;
        skip record types of other group protocols.
        """
        record = decode_record(key, value)
        if record is None:
            self._replay_of_other_group(key, value)
            return
        state = self.state
        if isinstance(record, OffsetRecord):
            if record.committed is None:
                state.offsets.remove(record.group_id, record.partition)
            elif producer_id != NO_PRODUCER_ID:
                state.offsets.put_pending(
                    producer_id, record.group_id, record.partition, record.committed
                )
            else:
                state.offsets.put(record.group_id, record.partition, record.committed)
        elif record.group is None:
            state.of(ClassicGroup).pop(record.group_id, None)
        else:
            state.of(ClassicGroup)[record.group_id] = record.group

    def _replay_of_other_group(self, key: bytes, value: bytes | None) -> None:
        consumer_record = consumer_records.decode_record(key, value)
        if consumer_record is not None:
            replay(self.state.of(ConsumerGroup), consumer_record)
            return
        share_record = share_records.decode_record(key, value)
        if share_record is not None:
            replay_share(self.state.of(ShareGroup), share_record)
            return
        streams_record = streams_records.decode_record(key, value)
        if streams_record is not None:
            replay_streams(self.state.of(StreamsGroup), streams_record)

    def loaded(self, now: Instant) -> Loading:
        """Start the session of every loaded member; rebalance groups over group.max.size."""
        step = Step(self.state, now)
        left = KEYS_AT_ONCE
        for count in self._take_over(step):
            left -= count
            if left <= 0:
                left = KEYS_AT_ONCE
                yield
        return step.output

    def _take_over(self, step: Step) -> Iterator[int]:
        """Start the sessions group by group; yield the cost of each group."""
        for group_id in self.state.offsets.group_ids():
            offsets.create_simple_group(step, group_id)
            yield 1
        for group in self.state.of(ClassicGroup).values():
            for member in group.members.values():
                restart_session(step, group, member)
            if len(group.members) > self.state.config.group_max_size:
                rebalance.prepare_rebalance(step, group, "loaded with more than group.max.size")
            yield max(1, len(group.members))
        for consumer_group in self.state.of(ConsumerGroup).values():
            departures.restart_timers(step, consumer_group)
            yield max(1, len(consumer_group.members))
        for share_group in self.state.of(ShareGroup).values():
            for member_id in share_group.members:
                share_departures.restart_session(step, share_group, member_id)
            initialization.forget_missing_topics(step, share_group)
            yield max(1, len(share_group.members))
        for streams_group in self.state.of(StreamsGroup).values():
            streams_departures.restart_timers(step, streams_group)
            yield max(1, len(streams_group.members))

    def unload(self, code: ErrorCode) -> list[Reply]:
        """End the shard; return refusals of the parked requests (NOT_COORDINATOR if it moved).

        The cost depends on the parked requests only, because a shard may have very many groups.
        """
        return [self._refusal_of(*parked, code) for parked in self.state.parked.items()]

    def _refusal_of(self, token: Token, where: Parked, code: ErrorCode) -> Reply:
        joining = self.state.of(ClassicGroup)[where.group_id].awaiting_join.get(where.member_id)
        if joining is not None and joining.token == token:
            return Reply(token, rebalance.join_refusal(code, where.member_id, joining.api_version))
        return Reply(token, SyncGroupResponse(error_code=code))

    # Membership. The answers of join_group and sync_group may be parked.

    def join_group(
        self, token: Token, context: ShardContext, request: JoinGroupRequest, now: Instant
    ) -> Output:
        """JoinGroup, v0-9."""
        join_classic = partial(join.join_group, drop_empty=describe.drop_empty)
        handler = self._of_kind(request, join_classic, classic_members.join_group)
        if self._has_other_protocol(request.group_id):
            handler = join.join_other_group
        return self._handle(handler, join.refuse_join, token, context, request, now)

    def sync_group(
        self, token: Token, context: ShardContext, request: SyncGroupRequest, now: Instant
    ) -> Output:
        """SyncGroup, v0-5."""
        handler = self._of_kind(request, sync.sync_group, classic_members.sync_group)
        return self._handle(handler, sync.refuse_sync, token, context, request, now)

    def heartbeat(
        self, token: Token, context: ShardContext, request: HeartbeatRequest, now: Instant
    ) -> Output:
        """Heartbeat, v0-4."""
        handler = self._of_kind(request, liveness.heartbeat, classic_members.heartbeat)
        return self._handle(handler, liveness.refuse_heartbeat, token, context, request, now)

    def leave_group(
        self, token: Token, context: ShardContext, request: LeaveGroupRequest, now: Instant
    ) -> Output:
        """LeaveGroup, v0-5."""
        handler = self._of_kind(request, liveness.leave_group, classic_members.leave_group)
        return self._handle(handler, liveness.refuse_leave, token, context, request, now)

    def consumer_group_heartbeat(
        self,
        token: Token,
        context: ShardContext,
        request: ConsumerGroupHeartbeatRequest,
        now: Instant,
    ) -> Output:
        """ConsumerGroupHeartbeat, v0-1."""
        handler, refuse = heartbeat.consumer_group_heartbeat, heartbeat.refuse_heartbeat
        return self._tried(handler, refuse, token, context, request, now)

    def share_group_heartbeat(
        self,
        token: Token,
        context: ShardContext,
        request: ShareGroupHeartbeatRequest,
        now: Instant,
    ) -> Output:
        """ShareGroupHeartbeat, v1. Its effect may be an `InitializeState`."""
        handler, refuse = share_heartbeat.share_group_heartbeat, share_heartbeat.refuse_heartbeat
        return self._tried(handler, refuse, token, context, request, now)

    def plan(
        self,
        planned_by: Handler[RequestT],
        token: Token,
        context: ShardContext,
        group_id: str,
        request: RequestT,
        now: Instant,
    ) -> Output:
        """Plan a request with a function of `share_group.offsets`, answered by its `Plan`."""
        refuse = partial(share_offsets.refuse_plan, context, group_id)
        return self._tried(planned_by, refuse, token, context, request, now)

    def on_share_state(
        self, group_id: str, done: Partitions, refused: Partitions, now: Instant
    ) -> Output:
        """Note the results of an `InitializeState`."""
        step = Step(self.state, now)
        initialization.on_results(step, group_id, done, refused)
        return step.output

    def streams_group_heartbeat(
        self,
        token: Token,
        context: ShardContext,
        request: StreamsGroupHeartbeatRequest,
        now: Instant,
    ) -> Output:
        """StreamsGroupHeartbeat, v0, answered by a `HeartbeatAnswer`."""
        handler = streams_heartbeat.streams_group_heartbeat
        refuse = streams_heartbeat.refuse_heartbeat
        return self._tried(handler, refuse, token, context, request, now)

    # Offsets. From v10 a request names topics by id, and the caller fills in each `name` (empty if
    # the id is unknown). An id with a name, in any version, identifies a topic that was created
    # again under the same name.

    def commit_offsets(
        self, token: Token, context: ShardContext, request: OffsetCommitRequest, now: Instant
    ) -> Output:
        """OffsetCommit, v0-10. The caller checks that the topics exist."""
        refuse = offsets.refuse_commit
        return self._handle(offsets.commit_offsets, refuse, token, context, request, now)

    def fetch_offsets(
        self,
        token: Token,
        context: ShardContext,
        request: OffsetFetchRequestGroup,
        now: Instant,
        *,
        require_stable: bool = False,
    ) -> Output:
        """One group of an OffsetFetch, v0-10, answered by an OffsetFetchResponseGroup.

        If the request is for all offsets of a group with very many, the answer is
        `offsets.OffsetsByTopic`.
        """
        handler = partial(offsets.fetch_offsets, require_stable=require_stable)
        return self._handle(handler, offsets.refuse_fetch, token, context, request, now)

    def commit_in_transaction(
        self, token: Token, context: ShardContext, request: TxnOffsetCommitRequest, now: Instant
    ) -> Output:
        """TxnOffsetCommit, v0-5; the caller checks that the transaction has this partition."""
        handler = transactional_offsets.commit_in_transaction
        refuse = transactional_offsets.refuse_transactional_commit
        return self._handle(handler, refuse, token, context, request, now)

    def end_transaction(self, token: Token, end: EndOfTransaction, now: Instant) -> Output:
        """One marker of a WriteTxnMarkers, answered by an ErrorCode."""
        step = Step(self.state, now)
        transactional_offsets.end_transaction(step, token, end)
        return step.output

    def delete_offsets(
        self, token: Token, context: ShardContext, request: OffsetDeleteRequest, now: Instant
    ) -> Output:
        """OffsetDelete, v0."""
        refuse = offsets.refuse_delete
        return self._handle(offsets.delete_offsets, refuse, token, context, request, now)

    # Administration, one group at a time.

    def describe_group(
        self, token: Token, context: ShardContext, group_id: str, now: Instant
    ) -> Output:
        """One group of a DescribeGroups, v0-6, answered by a DescribedGroup."""
        step = Step(self.state, now)
        describe.describe_group(step, token, context, group_id)
        return step.output

    def describe_consumer_group(
        self, token: Token, context: ShardContext, group_id: str, now: Instant
    ) -> Output:
        """One group of a ConsumerGroupDescribe, v0-1, answered by its DescribedGroup."""
        step = Step(self.state, now)
        administration.describe_consumer_group(step, token, group_id)
        return step.output

    def describe_share_group(
        self, token: Token, context: ShardContext, group_id: str, now: Instant
    ) -> Output:
        """One group of a ShareGroupDescribe, v1, answered by its DescribedGroup."""
        step = Step(self.state, now)
        share_administration.describe_share_group(step, token, group_id)
        return step.output

    def describe_streams_group(
        self, token: Token, context: ShardContext, group_id: str, now: Instant
    ) -> Output:
        """One group of a StreamsGroupDescribe, v0, answered by its DescribedGroup."""
        step = Step(self.state, now)
        streams_administration.describe_streams_group(step, token, group_id)
        return step.output

    def list_groups(
        self,
        token: Token,
        context: ShardContext,
        states_filter: list[str],
        types_filter: list[str],
    ) -> Output:
        """ListGroups, v0-5, of this shard, answered by a list of `FoundGroup`."""
        step = Step(self.state, TIMELESS)
        describe.list_groups(step, token, states_filter, types_filter)
        return step.output

    def delete_group(
        self, token: Token, context: ShardContext, group_id: str, now: Instant
    ) -> Output:
        """One group of a DeleteGroups, v0-2, answered by a DeletableGroupResult."""
        refuse = describe.refuse_delete_group
        return self._handle(describe.delete_group, refuse, token, context, group_id, now)

    # Events other than requests.

    def forget(self, token: Token, now: Instant) -> Output:
        """Drop the pending reply of a request, if any, because its connection is closed."""
        step = Step(self.state, now)
        parked = self.state.parked.get(token)
        if parked is not None:
            group = self.state.of(ClassicGroup)[parked.group_id]
            liveness.on_connection_closed(step, group, parked.member_id)
        return step.output

    def on_topic_deleted(self, topic: str, topic_id: bytes, timestamp_ms: int) -> Output:
        """Remove the offsets that were committed for a topic before its deletion."""
        step = Step(self.state, Instant(now_ms=TIMELESS.now_ms, timestamp_ms=timestamp_ms))
        offsets.remove_topic(step, topic, topic_id)
        for share_group in self.state.of(ShareGroup).values():
            initialization.forget_topics(step, share_group, {topic_id})
        return step.output

    def on_topics_changed(self) -> None:
        """Note changed topics; each consumer group refreshes at its next heartbeat."""
        self.state.topics_version += 1

    def expire_offsets(self, timestamp_ms: int) -> Output:
        """Remove expired offsets, and groups without members and offsets.

        Call it every offsets.retention.check.interval.ms.
        """
        step = Step(self.state, Instant(now_ms=TIMELESS.now_ms, timestamp_ms=timestamp_ms))
        offsets.expire_offsets(step)
        return step.output

    def next_deadline_ms(self) -> int | None:
        """Return when `on_deadline` must be called (monotonic time); None without a deadline."""
        return self.state.timers.next_deadline_ms()

    def on_deadline(self, now: Instant) -> Output:
        """Act on passed deadlines, at most DEADLINES_AT_ONCE; the others remain due."""
        step = Step(self.state, now)
        for deadline in islice(self.state.timers.pop_due(now.now_ms), DEADLINES_AT_ONCE):
            on_deadline(step, deadline)
        return step.output

    def _has_other_protocol(self, group_id: str) -> bool:
        """Return True for a group that a classic member cannot join, nor replace while empty."""
        streams_group = self.state.of(StreamsGroup).get(group_id)
        is_share_group = group_id in self.state.of(ShareGroup)
        return is_share_group or bool(streams_group and streams_group.members)

    def _of_kind(
        self, request: GroupRequestT, classic: Handler[GroupRequestT], other: Handler[GroupRequestT]
    ) -> Handler[GroupRequestT]:
        """Select the handler by the kind of the group; without members it counts as classic."""
        group = self.state.of(ConsumerGroup).get(request.group_id)
        return classic if group is None or not group.members else other

    def _handle(
        self,
        handler: Handler[RequestT],
        refuse: Refuse[RequestT],
        token: Token,
        context: ShardContext,
        request: RequestT,
        now: Instant,
    ) -> Output:
        """Run a handler whose refusal is answered by its code."""
        step = Step(self.state, now)
        try:
            handler(step, token, context, request)
        except KafkaError as refusal:
            code = refusal.code
        else:
            return step.output
        assert step.output == Output(), ("a refusal changes nothing", step.output)
        step.reply(token, refuse(context, request, code))
        return step.output

    def _tried(
        self,
        handler: Handler[RequestT],
        refuse: Callable[[KafkaError], object],
        token: Token,
        context: ShardContext,
        request: RequestT,
        now: Instant,
    ) -> Output:
        """Run a handler whose refusal is answered by its code and its text."""
        step = Step(self.state, now)
        try:
            handler(step, token, context, request)
        except KafkaError as refusal:
            assert step.output == Output(), ("a refusal changes nothing", step.output)
            step.reply(token, refuse(refusal))
        return step.output
