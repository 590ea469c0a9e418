"""The requests of a group's members: each is put to the shard of its group.

    JoinGroup (key 11)              0-9  become a member of the next generation. v4 first sends a
                                         new member away with an id of its own (KIP-394), v5 adds
                                         static members (KIP-345). The answer waits until the
                                         generation is complete.
    SyncGroup (key 14)              0-5  hand in the leader's assignment, or wait for one's own
    Heartbeat (key 12)              0-4  stay a member, and learn of a rebalance
    LeaveGroup (key 13)             0-5  leave at once; v3 names many members (KIP-345)
    ConsumerGroupHeartbeat (key 68) 0-1  be a member of a consumer group (KIP-848). v1 lets the
                                         client choose its id (KIP-1082) and subscribe to a pattern.
    ShareGroupHeartbeat (key 76)    1    be a member of a share group (KIP-932)
    StreamsGroupHeartbeat (key 88)  0    be a member of a streams group (KIP-1071)

The heartbeats of the last three never wait: the answer has the next step of the member, and later
heartbeats get the others.
"""

from collections.abc import Callable, Generator, Iterable
from typing import Any, Final

from broker.coordinator.group.shard import GroupShard
from broker.coordinator.output import Instant, Output, ShardContext
from broker.coordinator.streams_group.configured_topology import InternalTopic, StatusCode
from broker.coordinator.streams_group.heartbeat import HeartbeatAnswer
from broker.metadata.topic_names import SHARE_GROUP_STATE
from broker.server.authorization.access import CLUSTER, TOPIC
from broker.server.authorization.guard import Guard
from broker.server.cluster.auto_topics import AutoTopics
from broker.server.cluster.internal_topics import InternalTopics
from broker.server.coordinators.groups import Groups
from broker.server.coordinators.parts import MAX_ENTRIES_AT_ONCE
from broker.server.coordinators.shards import AskedShard
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps
from broker.server.quotas.mutations import Creations
from common.kafka.acls import AclOperation
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from common.kafka.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from common.kafka.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from common.kafka.protocol.messages.streams_group_heartbeat import (
    Status,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

JOIN_EPOCH = 0
TOLD_ERRORS = 3
INTERVALS_OF_ERRORS = 2

AskShard = Callable[[GroupShard, AskedShard, ShardContext, Any, Instant], Output]

ASK_SHARD: Final[dict[ApiKey, AskShard]] = {
    ApiKey.JOIN_GROUP: GroupShard.join_group,
    ApiKey.SYNC_GROUP: GroupShard.sync_group,
    ApiKey.HEARTBEAT: GroupShard.heartbeat,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: GroupShard.consumer_group_heartbeat,
    ApiKey.SHARE_GROUP_HEARTBEAT: GroupShard.share_group_heartbeat,
}
"""The method of a shard that answers an API."""


class MemberRequests:
    """Puts the requests of one API to the shards of their groups."""

    def __init__(self, groups: Groups, api_key: ApiKey) -> None:
        self._groups = groups
        self._ask_shard = ASK_SHARD[api_key]

    def handle(self, context: RequestContext, request: Any) -> Answer | Steps[Answer]:
        """Put the request to the group's shard."""
        return self._groups.answer(
            context,
            request.group_id,
            lambda shard, asked, who, now: self._ask_shard(shard, asked, who, request, now),
        )


class Heartbeats(MemberRequests):
    """Answers the members of classic groups."""

    def __init__(self, groups: Groups) -> None:
        super().__init__(groups, ApiKey.HEARTBEAT)

    def handle(self, context: RequestContext, request: HeartbeatRequest) -> Answer | Steps[Answer]:
        """Put the request to the group's shard.

        While the shard is loading, after a change of its leader, the member is unknown, and the
        answer has no error, as in Kafka: some clients do not survive any other answer.
        """
        try:
            return super().handle(context, request)
        except KafkaError as error:
            if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                return HeartbeatResponse(error_code=ErrorCode.NONE)
            raise


class ShareGroupHeartbeats(MemberRequests):
    """Answers the members of share groups, and has the topic of their state created."""

    def __init__(self, groups: Groups, auto_topics: AutoTopics) -> None:
        super().__init__(groups, ApiKey.SHARE_GROUP_HEARTBEAT)
        self._auto_topics = auto_topics

    def handle(
        self, context: RequestContext, request: ShareGroupHeartbeatRequest
    ) -> Answer | Steps[Answer]:
        """Put the request to the group's shard.

        The first member of the cluster has the topic of the share coordinator created: without it
        no partition can be assigned.
        """
        if request.member_epoch == JOIN_EPOCH and self._groups.lacks_share_coordinator:
            return self._create_topic_and_ask(context, request)
        return super().handle(context, request)

    def _create_topic_and_ask(
        self, context: RequestContext, request: ShareGroupHeartbeatRequest
    ) -> Steps[Answer]:
        yield from self._auto_topics.ensure([SHARE_GROUP_STATE])
        answer = super().handle(context, request)
        return (yield from answer) if isinstance(answer, Generator) else answer


class LeaveGroup:
    """Splits a request with very many members into parts, as OffsetCommit does (`parts`)."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def handle(self, context: RequestContext, request: LeaveGroupRequest) -> Steps[Answer]:
        """Put the request to the group's shard; the refusal of a part is the whole answer."""
        questions = [self._ask(context, request, request.members[:MAX_ENTRIES_AT_ONCE])]
        for start in range(MAX_ENTRIES_AT_ONCE, len(request.members), MAX_ENTRIES_AT_ONCE):
            yield None
            part = request.members[start : start + MAX_ENTRIES_AT_ONCE]
            questions.append(self._ask(context, request, part))
        response: LeaveGroupResponse = yield questions[0]
        for question in questions[1:]:
            following: LeaveGroupResponse = yield question
            if response.error_code or following.error_code:
                return response if response.error_code else following
            response.members += following.members
        return response

    def _ask(
        self, context: RequestContext, request: LeaveGroupRequest, members: list[MemberIdentity]
    ) -> AskedShard:
        part = LeaveGroupRequest(
            group_id=request.group_id, member_id=request.member_id, members=members
        )
        return self._groups.ask(
            context,
            part.group_id,
            lambda shard, asked, who, now: shard.leave_group(asked, who, part, now),
        )


class StreamsGroupHeartbeats:
    """Answers the members of streams groups, and has internal topics created.

    If internal topics of the group are missing, the broker creates them in the name of the member:
    it needs CREATE on the cluster or on each of the topics.
    """

    def __init__(
        self,
        groups: Groups,
        internal_topics: InternalTopics,
        creations: Creations,
        guard: Guard | None,
    ) -> None:
        self._groups = groups
        self._creations = creations
        self._internal_topics = internal_topics
        self._guard = guard

    def handle(
        self, context: RequestContext, request: StreamsGroupHeartbeatRequest
    ) -> Steps[Answer]:
        """Put the request to the group's shard."""
        answer: HeartbeatAnswer = yield self._groups.ask(
            context,
            request.group_id,
            lambda shard, asked, who, now: shard.streams_group_heartbeat(asked, who, request, now),
        )
        if answer.missing_topics:
            self._create(context, answer)
        return answer.response

    def _create(self, context: RequestContext, answer: HeartbeatAnswer) -> None:
        """Have internal topics created, and tell the member what prevents it."""
        topics, response = answer.missing_topics, answer.response
        denied = self._denied(context, topics)
        if denied:
            add_detail(response, f"; Unauthorized to CREATE on topics {', '.join(denied)}.")
            return
        wanted = self._internal_topics.not_under_way(topics)
        affordable = set(
            self._creations.take(context, {topic.name: topic.partition_count for topic in wanted})
        )
        if len(affordable) < len(wanted):
            add_detail(response, "; Creation waits for the quota controller_mutation_rate.")
        wanted = [topic for topic in wanted if topic.name in affordable]
        self._internal_topics.create(wanted, INTERVALS_OF_ERRORS * response.heartbeat_interval_ms)
        errors = self._internal_topics.errors_of(topic.name for topic in topics)
        if errors:
            told = [f"{name} ({text})" for name, text in list(errors.items())[:TOLD_ERRORS]]
            rest = len(errors) - len(told)
            more = f" and {rest} more" if rest else ""
            add_detail(response, f"; Creation failed: {', '.join(told)}{more}.")

    def _denied(self, context: RequestContext, topics: Iterable[InternalTopic]) -> list[str]:
        """Return the names of the topics that the client may not create."""
        if self._guard is None:
            return []
        access = self._guard.access(context.connection, "STREAMS_GROUP_HEARTBEAT")
        if access.can_see(AclOperation.CREATE, CLUSTER):
            return []
        return [
            topic.name for topic in topics if not access.may(AclOperation.CREATE, TOPIC, topic.name)
        ]


def add_detail(response: StreamsGroupHeartbeatResponse, detail: str) -> None:
    """Append to the status of missing topics."""
    response.status = [
        Status(status_code=each.status_code, status_detail=each.status_detail + detail)
        if each.status_code == StatusCode.MISSING_INTERNAL_TOPICS
        else each
        for each in response.status or ()
    ]
