"""What is known of a cluster, as plain values. None, and an absent key, mean: not known.

Offsets are those of records, times are in milliseconds since 1970, UTC.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from common.kafka.topics import TopicPartition

NO_LEADER = -1


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A question to the cluster without an answer: its error's name and text."""

    question: str
    error: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """A registered broker. A fenced one is down, or has not caught up with the metadata."""

    node_id: int
    address: str
    is_fenced: bool = False
    silence: str | None = None
    """Why it did not answer a question of its own, in the client's words."""
    failed_directories: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Follower:
    """A node that follows the metadata log: a voter of the quorum, or a broker that observes it."""

    node_id: int
    end_offset: int
    last_fetch_ms: int | None
    last_caught_up_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quorum:
    """The metadata quorum as its leader sees it."""

    leader_id: int
    high_watermark: int
    voters: Mapping[int, Follower]
    observers: Mapping[int, Follower] = field(default_factory=dict)

    @property
    def unseen(self) -> list[int]:
        """The voters that have never fetched from the active controller."""
        return [
            each.node_id
            for each in self.voters.values()
            if each.node_id != self.leader_id and each.last_fetch_ms is None
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The nodes, at a moment."""

    now_ms: int
    brokers: Mapping[int, Broker]
    quorum: Quorum | None = None
    quorum_error: str | None = None
    """Why there is no answer about the quorum, if that is known to come from the quorum itself."""

    def is_up(self, node_id: int) -> bool:
        """Tell whether a broker is registered and not fenced."""
        return node_id in self.brokers and not self.brokers[node_id].is_fenced

    def is_silent(self, node_id: int) -> bool:
        """Tell whether a broker did not answer a question of its own."""
        return node_id in self.brokers and self.brokers[node_id].silence is not None

    def silent_since_ms(self, node_id: int) -> int | None:
        """Return when a node last fetched the metadata log."""
        if self.quorum is None:
            return None
        nodes = {**self.quorum.observers, **self.quorum.voters}
        return nodes[node_id].last_fetch_ms if node_id in nodes else None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransaction:
    """A transaction that a partition's leader has open, with what its coordinator says of it.

    `is_known` tells whether a coordinator has the transaction open in this partition, too.
    """

    producer_id: int
    producer_epoch: int
    start_offset: int
    last_write_ms: int | None
    is_known: bool | None = None
    transactional_id: str | None = None
    coordinator_id: int | None = None
    state: str | None = None
    started_ms: int | None = None
    timeout_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One partition: who has it, and where it begins and ends."""

    name: TopicPartition
    leader_id: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...] | None = None
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    min_isr: int | None = None
    earliest: int | None = None
    last_stable: int | None = None
    high_watermark: int | None = None
    behind: Mapping[int, int] = field(default_factory=dict)
    """By broker, how many records its replica lacks."""
    open_transactions: tuple[OpenTransaction, ...] | None = None

    @property
    def has_leader(self) -> bool:
        """Tell whether clients can write and read."""
        return self.leader_id != NO_LEADER


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """One topic with its settings; `similar` are names of others when there is no such topic."""

    name: str
    exists: bool = True
    similar: tuple[str, ...] = ()
    settings: Mapping[str, str] | None = None
    partitions: tuple[Partition, ...] = ()

    def number(self, setting: str) -> int | None:
        """Return a setting that is a number."""
        value = None if self.settings is None else self.settings.get(setting)
        return None if value is None else int(value)

    def is_compacted(self) -> bool | None:
        """Tell whether older records of a key are removed."""
        policy = None if self.settings is None else self.settings.get("cleanup.policy")
        return None if policy is None else "compact" in policy

    def is_deleted_by_age(self) -> bool | None:
        """Tell whether records are removed by age or size."""
        policy = None if self.settings is None else self.settings.get("cleanup.policy")
        return None if policy is None else "delete" in policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The record batch that an offset is in, or the next one after it."""

    first_offset: int
    last_offset: int
    producer_id: int
    is_transactional: bool
    marker: str | None
    """COMMIT or ABORT for a control batch, which ends a transaction."""
    timestamps: Mapping[int, int]
    """Of the batch's records, by offset."""
    unreadable: str = ""
    """Why the records cannot be decoded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """An offset of a partition."""

    offset: int
    end: int | None = None
    """Where the leader's log ends, at or above the high watermark."""
    batch: Batch | None = None
    is_aborted: bool | None = None
    holders: Mapping[int, bool] = field(default_factory=dict)
    """By broker, whether its replica goes beyond the offset."""
    directories: Mapping[int, str] = field(default_factory=dict)
    commits: Mapping[str, int] | None = None
    """The committed offsets of groups in the partition."""

    @property
    def is_there(self) -> bool | None:
        """Tell whether a record or a marker has this offset."""
        if self.batch is None or self.batch.unreadable:
            return None
        return self.offset in self.batch.timestamps

    @property
    def timestamp_ms(self) -> int | None:
        """The record's timestamp."""
        return None if self.batch is None else self.batch.timestamps.get(self.offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A member of a group; `subscribed` is None when it is not told, as by a regular expression."""

    member_id: str
    client_id: str
    host: str
    assigned: tuple[TopicPartition, ...]
    subscribed: tuple[str, ...] | None = None
    epoch: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A group at a moment: the state, its members, and how far it is."""

    at_ms: int
    state: str
    members: tuple[Member, ...]
    epoch: int | None = None
    committed: Mapping[TopicPartition, int] = field(default_factory=dict)
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Where the partitions end for the group, at the last stable offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """A limit for clients: its name, its value, and whom it is for."""

    name: str
    value: float
    entity: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """An operation on a resource that a principal needs, and whether it may; None: not known."""

    principal: str
    operation: str
    resource: str
    is_allowed: bool
    denied_by: str | None = None
    """The rule that forbids it."""


class SharedRun(NamedTuple):
    """Offsets in a row that a share group has not finished, or never will: both are inclusive."""

    first: int
    last: int
    is_archived: bool
    deliveries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A group, looked at once or twice. Without looks there is none, or it cannot be asked."""

    group_id: str
    kind: str | None = None
    """Classic, Consumer, Share or Streams."""
    protocol_type: str = ""
    assignor: str = ""
    coordinator_id: int | None = None
    coordinator_error: str | None = None
    looks: tuple[Look, ...] = ()
    similar: tuple[str, ...] = ()
    topics: Mapping[str, Topic] = field(default_factory=dict)
    """Those that it has read, and those that its members subscribe to."""
    only_markers: frozenset[TopicPartition] = frozenset()
    """Partitions in which nothing but markers lies between the group and the end."""
    waiting_since_ms: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The times of the first records that wait in partitions without a commit between two looks."""
    quotas: tuple[Quota, ...] = ()
    unstarted: tuple[TopicPartition, ...] = ()
    """Partitions in which a share group has not begun."""
    shared: Mapping[TopicPartition, tuple[SharedRun, ...]] = field(default_factory=dict)
    """Of a share group, what its coordinator keeps of records beyond the start offsets."""
    wanted_assignor: str | None = None
    """What a member that is to join would offer."""

    @property
    def latest(self) -> Look | None:
        """The last look."""
        return self.looks[-1] if self.looks else None

    def partition(self, name: TopicPartition) -> Partition | None:
        """Return one of the partitions of its topics."""
        topic = self.topics.get(name.topic)
        if topic is None:
            return None
        return next((one for one in topic.partitions if one.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerEntry:
    """What the leader of one partition knows of a producer."""

    partition: TopicPartition
    epoch: int
    last_sequence: int
    last_write_ms: int | None
    open_since: int | None
    """The first offset of its open transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Producer:
    """A producer by its id, as the partitions and the coordinators of transactions know it."""

    producer_id: int
    epoch: int | None
    """The epoch that is asked about."""
    entries: tuple[ProducerEntry, ...]
    transaction: "Transaction | None" = None
    is_complete: bool = True
    """False when some leaders or coordinators have not answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """A transactional id, as its coordinator knows it."""

    transactional_id: str
    is_found: bool = True
    similar: tuple[str, ...] = ()
    coordinator_id: int | None = None
    coordinator_error: str | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    state: str = ""
    timeout_ms: int | None = None
    started_ms: int | None = None
    partitions: tuple[Partition, ...] = ()


class PartitionCase(NamedTuple):
    """A partition with what its causes need to know beside it."""

    cluster: Cluster
    topic: Topic
    partition: Partition


class RecordCase(NamedTuple):
    """An offset with what its causes need to know beside it."""

    cluster: Cluster
    topic: Topic
    partition: Partition
    record: Record


class GroupCase(NamedTuple):
    """A group in its cluster."""

    cluster: Cluster
    group: Group


class ProducerCase(NamedTuple):
    """A producer in its cluster."""

    cluster: Cluster
    producer: Producer


class TransactionCase(NamedTuple):
    """A transactional id in its cluster."""

    cluster: Cluster
    transaction: Transaction
