"""What one look at a cluster has found, as plain values. Times are milliseconds since 1970."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from common.kafka.topics import TopicPartition


class Batch(NamedTuple):
    """The header of one batch in a log."""

    first_offset: int
    last_offset: int
    record_count: int
    first_timestamp_ms: int
    is_control: bool
    """True for markers of transactions, which no consumer is given."""


class Partition(NamedTuple):
    """One partition; an offset is None if its leader did not answer."""

    leader_id: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    earliest: int | None
    end: int | None
    """The high watermark: the offset after the last record that consumers may be given."""


class Group(NamedTuple):
    """One group. One without members has commits only, and is shown all the same."""

    state: str
    member_count: int
    coordinator_id: int
    commits: Mapping[TopicPartition, int]
    is_checkpoint: bool = False
    """True for a query of Spark, which has no group and keeps its offsets in files."""


@dataclass(frozen=True, slots=True)
class Look:
    """The state of a cluster at a time. The commits were asked for before the ends."""

    at_ms: int
    brokers: Mapping[int, str]
    partitions: Mapping[TopicPartition, Partition]
    groups: Mapping[str, Group]
    backlogs: Mapping[tuple[TopicPartition, int], tuple[Batch, ...]] = field(default_factory=dict)
    """By partition and committed offset: the headers of the batches from there on, as far as they
    were read."""
