"""The handling of one input: the shard's state, the time, and the output under construction.

Handlers take a `Step`, so that every change of state, record, reply and deadline of one input goes
through one object, and no handler must pass results through its callers. The state finds groups by
their class: it knows none of the kinds of groups, which all stand above it.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

from broker.coordinator.group_state.config import (
    ConsumerGroupConfig,
    GroupConfig,
    ShareGroupConfig,
    StreamsGroupConfig,
)
from broker.coordinator.group_state.offset_store import OffsetStore
from broker.coordinator.output import (
    BATCH_OVERHEAD_BYTES,
    CoordinatorRecord,
    Instant,
    Output,
    RandomSource,
    Reply,
    Token,
    record_size_bytes,
)
from broker.coordinator.timers import Timers
from broker.metadata.features import GROUP_VERSION, SHARE_VERSION, STREAMS_VERSION
from broker.metadata.image import MetadataImage
from broker.metadata.parts.configs import GROUP_RESOURCE
from common.kafka.errors import ErrorCode, KafkaError

A_MOMENT_MS = 1
"""At least 1: a deadline that is already due would be handled in the same turn."""


class Group(Protocol):
    """A group of any kind."""

    KIND: ClassVar[str]
    """What a group of this kind is called in errors: "a consumer group"."""
    group_id: str


GroupT = TypeVar("GroupT", bound=Group)


class Deadline(NamedTuple):
    """The name of a deadline.

    Each kind of group has an Enum with the purposes of its deadlines. `member_id` is the member, or
    the pattern that is matched, or empty.
    """

    kind: Enum
    group_id: str
    member_id: str = ""


class Parked(NamedTuple):
    """The group and member of a parked request."""

    group_id: str
    member_id: str


@dataclass(slots=True)
class ShardState:
    """The whole state of a shard, as tables:

    tables            class of a group -> group id -> group, persisted by records of these types:
                      classic 2; consumer 3, 5 to 8, 16; share 10 to 15; streams 17, 19 to 23
    offsets           (group id, topic, partition) -> committed and pending offsets, types 0 and 1
    timers            deadlines; soft state
    parked            token -> the group and member of a parked request; soft state

    Invariant: a group id is in at most one of the tables of groups.
    """

    config: GroupConfig
    random: RandomSource
    image: Callable[[], MetadataImage]
    """Returns the cluster's current metadata, which a handler must not keep."""
    tables: defaultdict[type[Any], dict[str, Any]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    offsets: OffsetStore = field(default_factory=OffsetStore)
    timers: Timers[Deadline] = field(default_factory=Timers)
    parked: dict[Token, Parked] = field(default_factory=dict)
    rebalance_counts: Counter[type[Any]] = field(default_factory=Counter)
    """The new epochs of groups by their class, for the metrics; classic groups do not count."""
    topics_version: int = 0
    """A counter of changes of the cluster's topics."""

    def of(self, kind: type[GroupT]) -> dict[str, GroupT]:
        """Return the groups of a class by their ids; the caller may change the table."""
        return self.tables[kind]

    def has_other_group(self, group_id: str, *, than: Mapping[str, object]) -> bool:
        """Return True if a table other than this one has the group."""
        return any(group_id in table for table in self.tables.values() if table is not than)


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

    def group(self, kind: type[GroupT], group_id: str) -> GroupT:
        """Return a group of one kind; raise GROUP_ID_NOT_FOUND, for one of another kind too."""
        groups = self.shard.of(kind)
        group = groups.get(group_id)
        if group is None:
            is_other = self.shard.has_other_group(group_id, than=groups)
            reason = f"is not {kind.KIND}" if is_other else "not found"
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {reason}.")
        return group

    @property
    def are_consumer_groups_enabled(self) -> bool:
        """True if this broker's settings and the cluster's features allow consumer groups."""
        features = self.shard.image().features
        return self.shard.config.consumer.is_enabled and features.get(GROUP_VERSION, 0) > 0

    def validate_share_groups(self) -> None:
        """Raise UNSUPPORTED_VERSION if the cluster's features do not allow share groups."""
        if self.shard.image().features.get(SHARE_VERSION, 0) < 1:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "The version of API is not supported.")

    def share_config(self, group_id: str) -> ShareGroupConfig:
        """Return the settings of a share group."""
        settings = self.shard.image().configs.settings_of(GROUP_RESOURCE, group_id)
        return self.shard.config.share.of_group(settings)

    @property
    def are_streams_groups_enabled(self) -> bool:
        """True if this broker's settings and the cluster's features allow streams groups."""
        features = self.shard.image().features
        return self.shard.config.streams.is_enabled and features.get(STREAMS_VERSION, 0) > 0

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

    def schedule(self, deadline: Deadline, delay_ms: int) -> None:
        """Set or move a deadline."""
        self.shard.timers.schedule(deadline, self.now.now_ms + delay_ms)

    def go_on_later(self, deadline: Deadline) -> None:
        """Set a deadline at which the rest of a long computation continues."""
        self.schedule(deadline, A_MOMENT_MS)

    def cancel(self, deadline: Deadline) -> None:
        """Drop a deadline."""
        self.shard.timers.cancel(deadline)
