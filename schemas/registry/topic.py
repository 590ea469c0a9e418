"""The log behind the registry: topic `_schemas`, one partition, compacted.

Every instance reads the whole topic and answers reads from memory. A write is: read to the end,
decide, append with acks=all, wait until the own reader has come past the record, look at what
the log now says. Within one process writes are one after the other. Two instances that write
different schemas at the same moment may take the same id or the same version; the log orders
them, and the later one finds the earlier one there: it puts the earlier record back under its
key (compaction keeps the last) and takes the next number. So a write needs no leader; the cost
is that a crash of the later writer between its two records leaves the earlier one overwritten.
"""

import asyncio
import logging
from dataclasses import replace

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, for_code
from aiokafka.structs import ConsumerRecord

from schemas.registry.domain import Registry, SchemaVersion

TOPIC = "_schemas"
_PARTITION = TopicPartition(TOPIC, 0)
_RETRY_SECONDS = 0.5

log = logging.getLogger(__name__)


class SchemaTopic:
    """Owns the connection to Kafka and the registry folded from the topic."""

    def __init__(self, bootstrap_servers: str, replication_factor: int = 3) -> None:
        self.registry = Registry()
        self._bootstrap_servers = bootstrap_servers
        self._replication_factor = replication_factor
        self._end_offset = 0
        self._moved = asyncio.Condition()
        self._writing = asyncio.Lock()
        self._loaded = asyncio.Event()
        self._history: dict[bytes | None, list[tuple[int, bytes | None]]] = {}
        self._consumer: AIOKafkaConsumer | None = None
        self._producer: AIOKafkaProducer | None = None

    @property
    def is_loaded(self) -> bool:
        return self._loaded.is_set()

    async def wait_until_loaded(self) -> None:
        await self._loaded.wait()

    async def run(self) -> None:
        """Follow the topic until cancelled; a broker that is away is waited for."""
        while True:
            try:
                await self._follow()
            except (KafkaError, OSError) as error:
                log.warning("registry lost its topic error=%r", error)
                await asyncio.sleep(_RETRY_SECONDS)
            finally:
                await self._disconnect()

    async def _follow(self) -> None:
        await _create_topic(self._bootstrap_servers, self._replication_factor)
        self._producer = AIOKafkaProducer(
            bootstrap_servers=self._bootstrap_servers, acks="all", enable_idempotence=True
        )
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=self._bootstrap_servers, auto_offset_reset="earliest"
        )
        await self._producer.start()
        await self._consumer.start()
        self._consumer.assign([_PARTITION])
        self._consumer.seek(_PARTITION, self._end_offset)
        end_offset = await self._log_end_offset()
        while True:
            if self._end_offset >= end_offset:
                self._loaded.set()
            batches = await self._consumer.getmany(_PARTITION, timeout_ms=500)
            for record in batches.get(_PARTITION, ()):
                self._replay(record)
            async with self._moved:
                self._end_offset = await self._consumer.position(_PARTITION)
                self._moved.notify_all()

    def _replay(self, record: ConsumerRecord) -> None:
        self._history.setdefault(record.key, []).append((record.offset, record.value))
        self.registry.replay(record.key, record.value)

    async def register(self, subject: str, schema: str) -> SchemaVersion:
        """Return the subject's entry for this schema, adding it if it is new."""
        async with self._writing:
            await self._catch_up()
            while True:
                known = self.registry.find(subject, schema)
                if known is not None and not self.registry.rivals(known):
                    return known
                await self._append(known, subject, schema)

    async def _append(self, known: SchemaVersion | None, subject: str, schema: str) -> None:
        entry = self.registry.propose(subject, schema)
        if known is not None:
            # Another instance took our id first: keep the version, take the next id.
            entry = replace(known, schema_id=self.registry.next_id())
        offset = await self._write(entry.key(), entry.value())
        earlier = [value for at, value in self._history[entry.key()] if at < offset]
        if known is None and earlier and earlier[-1] != entry.value():
            await self._write(entry.key(), earlier[-1])

    async def _write(self, key: bytes, value: bytes | None) -> int:
        """Append one record, wait until the own reader has it, and return its offset."""
        if self._producer is None:
            raise KafkaError("the registry is not connected")
        metadata = await self._producer.send_and_wait(TOPIC, value, key, partition=0)
        await self._reach(metadata.offset + 1)
        return int(metadata.offset)

    async def _catch_up(self) -> None:
        await self._reach(await self._log_end_offset())

    async def _reach(self, offset: int) -> None:
        async with self._moved:
            await self._moved.wait_for(lambda: self._end_offset >= offset)

    async def _log_end_offset(self) -> int:
        if self._consumer is None:
            raise KafkaError("the registry is not connected")
        offsets = await self._consumer.end_offsets([_PARTITION])
        return int(offsets[_PARTITION])

    async def _disconnect(self) -> None:
        consumer, self._consumer = self._consumer, None
        producer, self._producer = self._producer, None
        if consumer is not None:
            await consumer.stop()
        if producer is not None:
            await producer.stop()


async def _create_topic(bootstrap_servers: str, replication_factor: int) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap_servers)
    await admin.start()
    try:
        brokers = len((await admin.describe_cluster())["brokers"])
        replicas = min(replication_factor, brokers)
        topic = NewTopic(TOPIC, 1, replicas, topic_configs={"cleanup.policy": "compact"})
        response = await admin.create_topics([topic])
        for _, code, *_ in response.topic_errors:
            if code not in (0, TopicAlreadyExistsError.errno):
                raise for_code(code)
    finally:
        await admin.close()
