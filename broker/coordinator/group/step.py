"""The handling of one input: the shard's state, the time, and the output under construction.

Handlers take a `Step`, so that every change of state, record, reply and deadline of one input goes
through one object, and no handler must pass results through its callers.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, TypeVar

from broker.coordinator.consumer_group.config import ConsumerGroupConfig
from broker.coordinator.consumer_group.consumer_group import ConsumerGroup
from broker.coordinator.group.classic_group import ClassicGroup
from broker.coordinator.group.config import GroupConfig
from broker.coordinator.group.member import Member
from broker.coordinator.group.offset_store import OffsetStore
from broker.coordinator.output import (
    BATCH_OVERHEAD_BYTES,
    CoordinatorRecord,
    Instant,
    Output,
    RandomSource,
    Reply,
    Token,
    Waiting,
    record_size_bytes,
)
from broker.coordinator.share_group.config import ShareGroupConfig
from broker.coordinator.share_group.share_group import ShareGroup
from broker.coordinator.streams_group.config import StreamsGroupConfig
from broker.coordinator.streams_group.streams_group import StreamsGroup
from broker.coordinator.timers import Timers
from broker.metadata.features import GROUP_VERSION, SHARE_VERSION, STREAMS_VERSION
from broker.metadata.image import MetadataImage
from broker.metadata.parts.configs import GROUP_RESOURCE
from common.kafka.errors import ErrorCode, KafkaError

A_MOMENT_MS = 1
"""At least 1: a deadline that is already due would be handled in the same turn."""

GroupT = TypeVar("GroupT", ConsumerGroup, ShareGroup, StreamsGroup)


class DeadlineKind(Enum):
    """The purpose of a deadline."""

    JOIN = "end of the join phase"
    SYNC = "end of the wait for SyncGroup"
    SESSION = "a member's session"
    CONSUMER_SESSION = "a consumer group member's session"
    REVOCATION = "the time to revoke partitions"
    CLASSIC_JOIN = "a classic member's time to join a consumer group again"
    CLASSIC_SYNC = "a classic member's time to sync in a consumer group"
    MATCHING = "the rest of the topics for a pattern"
    ASSIGNING = "the rest of the targets"
    SHARE_SESSION = "a share group member's session"
    INITIAL_DELAY = "the first assignment of a streams group"


class Deadline(NamedTuple):
    """The name of a deadline; `member_id` is the member, or the pattern for MATCHING, or empty."""

    kind: DeadlineKind
    group_id: str
    member_id: str = ""


class Parked(NamedTuple):
    """The group and member of a parked request."""

    group_id: str
    member_id: str


@dataclass(slots=True)
class ShardState:
    """The whole state of a shard, as tables:

    groups            group id -> classic group, persisted by records of type 2
    consumer_groups   group id -> consumer group, persisted by records of types 3, 5 to 8 and 16
    share_groups      group id -> share group, persisted by records of types 10 to 15
    streams_groups    group id -> streams group, persisted by records of types 17 and 19 to 23
    offsets           (group id, topic, partition) -> committed and pending offsets, types 0 and 1
    timers            deadlines; soft state
    parked            token -> the group and member of a parked request; soft state

    Invariant: a group id is in at most one of the four tables of groups.
    """

    config: GroupConfig
    random: RandomSource
    image: Callable[[], MetadataImage]
    """Returns the cluster's current metadata, which a handler must not keep."""
    groups: dict[str, ClassicGroup] = field(default_factory=dict)
    offsets: OffsetStore = field(default_factory=OffsetStore)
    timers: Timers[Deadline] = field(default_factory=Timers)
    parked: dict[Token, Parked] = field(default_factory=dict)
    consumer_groups: dict[str, ConsumerGroup] = field(default_factory=dict)
    share_groups: dict[str, ShareGroup] = field(default_factory=dict)
    streams_groups: dict[str, StreamsGroup] = field(default_factory=dict)
    consumer_rebalance_count: int = 0
    """A counter of new epochs of consumer groups, for the metrics."""
    streams_rebalance_count: int = 0
    """The same of streams groups."""
    share_rebalance_count: int = 0
    """The same of share groups."""
    topics_version: int = 0
    """A counter of changes of the cluster's topics."""

    def has_other_protocol(self, group_id: str) -> bool:
        """Return True for a group that a classic member cannot join, nor replace while empty."""
        streams_group = self.streams_groups.get(group_id)
        return group_id in self.share_groups or bool(streams_group and streams_group.members)

    def has_other_group(self, group_id: str, *, than: Mapping[str, object]) -> bool:
        """Return True if a table other than this one has the group."""
        tables: tuple[Mapping[str, object], ...] = (
            self.groups,
            self.consumer_groups,
            self.share_groups,
            self.streams_groups,
        )
        return any(group_id in table for table in tables if table is not than)


@dataclass(slots=True)
class Step:
    """The handling of one input, from the state before it to its output."""

    shard: ShardState
    now: Instant
    output: Output = field(default_factory=Output)

    def append(self, record: CoordinatorRecord) -> None:
        """Add a record to the batch of this input."""
        self.output.records.append(record)

    def reply(self, token: Token, response: object) -> None:
        """Answer a request."""
        self.output.replies.append(Reply(token, response))

    def group(self, group_id: str, error: ErrorCode) -> ClassicGroup:
        """Return the classic group; raise KafkaError with `error` if there is none."""
        group = self.shard.groups.get(group_id)
        if group is None:
            raise KafkaError(error, f"Group {group_id} not found.")
        return group

    def _group_of(self, groups: Mapping[str, GroupT], group_id: str, what: str) -> GroupT:
        """Return a group of one type; raise GROUP_ID_NOT_FOUND, for one of another type too."""
        group = groups.get(group_id)
        if group is None:
            is_other = self.shard.has_other_group(group_id, than=groups)
            reason = f"is not {what}" if is_other else "not found"
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {reason}.")
        return group

    @property
    def are_consumer_groups_enabled(self) -> bool:
        """True if this broker's settings and the cluster's features allow consumer groups."""
        features = self.shard.image().features
        return self.shard.config.consumer.is_enabled and features.get(GROUP_VERSION, 0) > 0

    def consumer_group(self, group_id: str) -> ConsumerGroup:
        """Return the consumer group; raise GROUP_ID_NOT_FOUND."""
        return self._group_of(self.shard.consumer_groups, group_id, "a consumer group")

    def share_group(self, group_id: str) -> ShareGroup:
        """Return the share group; raise GROUP_ID_NOT_FOUND."""
        return self._group_of(self.shard.share_groups, group_id, "a share group")

    def validate_share_groups(self) -> None:
        """Raise UNSUPPORTED_VERSION if the cluster's features do not allow share groups."""
        if self.shard.image().features.get(SHARE_VERSION, 0) < 1:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "The version of API is not supported.")

    def validate_no_share_group(self, group_id: str) -> None:
        """Raise GROUP_ID_NOT_FOUND for a share group, which commits no offsets."""
        if group_id in self.shard.share_groups:
            raise KafkaError(
                ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group."
            )

    def share_config(self, group_id: str) -> ShareGroupConfig:
        """Return the settings of a share group."""
        settings = self.shard.image().configs.settings_of(GROUP_RESOURCE, group_id)
        return self.shard.config.share.of_group(settings)

    @property
    def are_streams_groups_enabled(self) -> bool:
        """True if this broker's settings and the cluster's features allow streams groups."""
        features = self.shard.image().features
        return self.shard.config.streams.is_enabled and features.get(STREAMS_VERSION, 0) > 0

    def streams_group(self, group_id: str) -> StreamsGroup:
        """Return the streams group; raise GROUP_ID_NOT_FOUND."""
        return self._group_of(self.shard.streams_groups, group_id, "a streams group")

    def streams_config(self, group_id: str) -> StreamsGroupConfig:
        """Return the settings of a streams group."""
        settings = self.shard.image().configs.settings_of(GROUP_RESOURCE, group_id)
        return self.shard.config.streams.of_group(settings)

    def consumer_config(self, group_id: str) -> ConsumerGroupConfig:
        """Return the settings of a consumer group."""
        settings = self.shard.image().configs.settings_of(GROUP_RESOURCE, group_id)
        return self.shard.config.consumer.of_group(settings)

    def fits(self, record: CoordinatorRecord) -> bool:
        """Return True if the record fits into a batch of its own."""
        limit_bytes = self.shard.config.max_batch_bytes
        return BATCH_OVERHEAD_BYTES + record_size_bytes(record) <= limit_bytes

    def park(
        self,
        waiting: dict[str, Waiting | None],
        group: ClassicGroup,
        member: Member,
        request: Waiting,
    ) -> Waiting | None:
        """Park a request; return the one that it supersedes, which the caller must answer."""
        superseded = self.unpark(waiting, member.member_id)
        waiting[member.member_id] = request
        self.shard.parked[request.token] = Parked(group.group_id, member.member_id)
        return superseded

    def unpark(self, waiting: dict[str, Waiting | None], member_id: str) -> Waiting | None:
        """End a wait; return the request to answer, None if there is none or it is closed."""
        request = waiting.pop(member_id, None)
        if request is not None:
            del self.shard.parked[request.token]
        return request

    def schedule(self, deadline: Deadline, delay_ms: int) -> None:
        """Set or move a deadline."""
        self.shard.timers.schedule(deadline, self.now.now_ms + delay_ms)

    def go_on_later(self, deadline: Deadline) -> None:
        """Set a deadline at which the rest of a long computation continues."""
        self.schedule(deadline, A_MOMENT_MS)

    def cancel(self, deadline: Deadline) -> None:
        """Drop a deadline."""
        self.shard.timers.cancel(deadline)

    def restart_session(self, group: ClassicGroup, member: Member) -> None:
        """Start a member's session timeout anew."""
        deadline = Deadline(DeadlineKind.SESSION, group.group_id, member.member_id)
        self.schedule(deadline, member.session_timeout_ms)

    def end_session(self, group: ClassicGroup, member_id: str) -> None:
        """Cancel a member's session timeout."""
        self.cancel(Deadline(DeadlineKind.SESSION, group.group_id, member_id))
