"""Sends records in lists: of each partition all of a list arrive, or none, and in their order.

A reader of what is sent knows repeats by rising origins (`streams.records`), so a record must never
arrive before one that was to go ahead of it. A producer that takes records one by one puts them
into batches as it pleases, and may lose the first batch and deliver the second. Here what goes to a
partition is one batch; if it is too large for that, the rest waits for the first to be
acknowledged.
"""

import asyncio
from collections.abc import Iterable, Mapping

from aiokafka import AIOKafkaProducer
from aiokafka.partitioner import DefaultPartitioner
from aiokafka.producer.message_accumulator import BatchBuilder

from streams.micro_batch import Message
from streams.positions import TopicPartition

MAX_BATCH_BYTES = 512 * 1024
"""The most that goes to a partition at once; Kafka takes a megabyte unless told otherwise."""

_REQUEST_TIMEOUT_MS = 10_000


class Sender:
    """Owns a producer; `start` it inside the event loop that sends."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._partitioner = DefaultPartitioner()
        self._producer: AIOKafkaProducer | None = None

    async def start(self) -> None:
        """Connect; raise KafkaError when Kafka is away."""
        self._producer = AIOKafkaProducer(
            bootstrap_servers=self._bootstrap_servers,
            acks="all",
            max_batch_size=MAX_BATCH_BYTES,
            request_timeout_ms=_REQUEST_TIMEOUT_MS,
        )
        await self._producer.start()

    async def close(self) -> None:
        if self._producer is not None:
            await self._producer.stop()

    async def send(self, messages: Iterable[Message]) -> None:
        """Return when all replicas have everything; raise KafkaError when that is not certain."""
        assert self._producer is not None
        batches: dict[TopicPartition, BatchBuilder] = {}
        for message in messages:
            partition = await self._partition_of(message)
            if partition not in batches:
                batches[partition] = self._producer.create_batch()
            if not _append(batches[partition], message):
                await self._deliver(batches)
                batches = {partition: self._producer.create_batch()}
                # The first record of a batch is taken whatever its size; the broker may refuse it.
                _append(batches[partition], message)
        await self._deliver(batches)

    async def _partition_of(self, message: Message) -> TopicPartition:
        if message.partition is not None:
            return TopicPartition(message.topic, message.partition)
        assert self._producer is not None
        numbers = sorted(await self._producer.partitions_for(message.topic))
        return TopicPartition(message.topic, self._partitioner(message.key, numbers, numbers))

    async def _deliver(self, batches: Mapping[TopicPartition, BatchBuilder]) -> None:
        """Every batch has its outcome before this returns or raises, so before a second try."""
        sending = [self._deliver_one(to, batch) for to, batch in batches.items()]
        for outcome in await asyncio.gather(*sending, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    async def _deliver_one(self, to: TopicPartition, batch: BatchBuilder) -> None:
        assert self._producer is not None
        await (await self._producer.send_batch(batch, to.topic, partition=to.partition))


def _append(batch: BatchBuilder, message: Message) -> bool:
    added = batch.append(
        timestamp=None, key=message.key, value=message.value, headers=message.headers
    )
    return added is not None
