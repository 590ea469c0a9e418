"""What a service is to the processor that drives it, and what it may ask of it."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from aiokafka.structs import ConsumerRecord, TopicPartition

from common.kafka.topics import Topic
from common.processing.outbox import Outbox


class Inputs(Protocol):
    """What a worker may ask of the processor that drives it."""

    async def catch_up(self, *topics: str) -> None:
        """Handle everything that is in the held partitions of `topics` at this moment."""


class Worker(Protocol):
    """What one service does with its records."""

    @property
    def inputs(self) -> Sequence[Topic]:
        """The topics it consumes; of one batch, records of an earlier topic are handled first."""

    @property
    def outputs(self) -> Sequence[Topic]:
        """The topics it writes besides."""

    def connect(self, inputs: Inputs) -> None:
        """Take the processor that drives this worker."""

    async def restore(self, held: Mapping[str, set[int]]) -> Mapping[TopicPartition, int]:
        """Read state back for the partitions held of each topic.

        Return the offsets at which to start; without one the committed offset counts.
        """

    def forget(self) -> None:
        """Drop all state."""

    async def handle(self, record: ConsumerRecord, outbox: Outbox) -> None:
        """Handle one record; an exception sets the record aside."""

    async def tick(self, timestamp_ms: int, outbox: Outbox) -> None:
        """Do what is due by the clock."""

    def flushed(self) -> None:
        """Everything put out so far is committed."""
