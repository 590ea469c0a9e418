"""The worker of a service, and what it may ask of the processor that drives it.

A worker says what it reads and writes, and handles one record at a time. A service whose worker
keeps state overrides `restore` and `forget`; one that does something by the clock overrides `tick`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Protocol

from aiokafka.structs import ConsumerRecord, TopicPartition

from common.kafka.topics import Topic
from common.processing.outbox import Outbox


class Inputs(Protocol):
    """What a worker may ask of the processor that drives it."""

    async def catch_up(self, *topics: str) -> None:
        """Handle everything that is in the held partitions of `topics` at this moment."""


class Worker(ABC):
    """What one service does with its records."""

    inputs: Sequence[Topic]
    """The topics it consumes; of one batch, records of an earlier topic are handled first."""
    outputs: Sequence[Topic] = ()
    """The topics it writes, its changelogs among them."""
    tables: Sequence[Topic] = ()
    """The topics of which it follows every partition; a `FollowedTable` creates its own."""
    _processor: Inputs | None = None

    def connect(self, processor: Inputs) -> None:
        """Take the processor that drives this worker."""
        self._processor = processor

    async def catch_up(self, *topics: str) -> None:
        """Have the processor handle all that is in the held partitions of `topics` by now."""
        assert self._processor is not None, "used before `connect`"
        await self._processor.catch_up(*topics)

    @abstractmethod
    async def handle(self, record: ConsumerRecord, outbox: Outbox) -> None:
        """Handle one record; an exception makes it a dead letter."""

    async def restore(self, partitions: Mapping[str, set[int]]) -> Mapping[TopicPartition, int]:
        """Read state back for the partitions that are held, by topic.

        Return the offsets at which to start; where there is none the committed offset counts.
        """
        return {}

    def forget(self) -> None:  # noqa: B027 - a worker without state has nothing to drop
        """Drop all state: the partitions may be another instance's from now on."""

    async def tick(self, timestamp_ms: int, outbox: Outbox) -> None:  # noqa: B027
        """Do what is due by the clock; called after each batch, and when there is none."""

    def flushed(self) -> None:  # noqa: B027
        """Note that everything put out so far is committed."""
