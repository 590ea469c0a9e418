"""The log behind the registry: topic `_schemas`, one partition, compacted.

Every instance reads the whole topic and answers reads from memory. Only the leader writes (see
`leader`). A write has four steps: read to the end, decide, append the records as one batch with
acks=all, wait until this instance has read the batch.

A former leader that does not know of its successor may write too. The log shows it: the batch does
not start at the end offset that the decision was based on. Then the leader takes the batch back, by
writing the former value of each of its keys, and decides the request again. So no id is given twice
and no version is lost, except when a deposed leader dies between the two writes.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError, MessageSizeTooLargeError
from aiokafka.structs import ConsumerRecord

from common.credentials.access import KafkaAccess
from common.kafka import errors
from common.kafka.admin.topic_requests import creatable_topic
from common.kafka.client.cluster import KafkaClient
from common.kafka.consumer import METADATA_MAX_AGE_MS, Consumer
from common.kafka.stopping import stop
from common.kafka.topic_creation import create_missing
from schemas.registry.changes import Change
from schemas.registry.domain import Registry
from schemas.registry.records import Record
from schemas.registry.refusals import operation_timeout, schema_too_large

TOPIC = "_schemas"
_PARTITION = TopicPartition(TOPIC, 0)
_RETRY_SECONDS = 0.5
_BATCH_LIMIT_BYTES = 8 << 20
_WRITE_TIMEOUT_SECONDS = 30.0

Decide = Callable[[Registry], Change]

log = logging.getLogger(__name__)


class SchemaTopic:
    """Owns the connection to Kafka and the registry folded from the topic."""

    def __init__(
        self,
        kafka: KafkaAccess,
        replication_factor: int = 3,
        compatibility_level: str = "BACKWARD",
    ) -> None:
        self.registry = Registry(compatibility_level)
        self._kafka = kafka
        self._replication_factor = replication_factor
        self.cluster_id = ""
        self._end_offset = 0
        self._moved = asyncio.Condition()
        self._writing = asyncio.Lock()
        self._loaded = asyncio.Event()
        self._is_lost = False
        self._values: dict[bytes | None, bytes | None] = {}
        """The last value of each key, as compaction would leave it."""
        self._recent: list[tuple[int, Record]] = []
        """Records read while this instance writes."""
        self._consumer: Consumer | None = None
        self._asker: Consumer | None = None
        """Asks where the log ends, on a connection where no fetch waits for records before it."""
        self._producer: AIOKafkaProducer | None = None

    @property
    def is_loaded(self) -> bool:
        return self._loaded.is_set()

    async def wait_until_loaded(self) -> None:
        await self._loaded.wait()

    # --- reading ---

    async def run(self) -> None:
        """Follow the topic until cancelled; wait for a broker that cannot be reached."""
        while True:
            try:
                await self._follow()
            except (KafkaError, errors.KafkaError, OSError) as error:
                if not self._is_lost:
                    log.warning("registry lost its topic error=%r", error)
                self._is_lost = True
                await asyncio.sleep(_RETRY_SECONDS)
            finally:
                await self._disconnect()

    async def _follow(self) -> None:
        self.cluster_id = await _create_topic(self._kafka, self._replication_factor)
        self._producer = AIOKafkaProducer(
            **self._kafka.aiokafka(),
            acks="all",
            enable_idempotence=True,
            max_batch_size=_BATCH_LIMIT_BYTES,
            max_request_size=_BATCH_LIMIT_BYTES,
        )
        self._consumer = Consumer(
            **self._kafka.aiokafka(),
            auto_offset_reset="earliest",
            metadata_max_age_ms=METADATA_MAX_AGE_MS,
        )
        self._asker = Consumer(**self._kafka.aiokafka())
        await self._producer.start()
        await self._consumer.start()
        await self._asker.start()
        self._consumer.assign([_PARTITION])
        self._consumer.seek(_PARTITION, self._end_offset)
        end_offset = await self._log_end_offset()
        if self._is_lost:
            log.info("registry reads its topic again")
        self._is_lost = False
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
        if self._writing.locked():
            self._recent.append((record.offset, Record(record.key, record.value)))
        self._values[record.key] = record.value
        if record.value is None:
            del self._values[record.key]
        self.registry.replay(record.key, record.value)

    # --- writing ---

    async def write(self, decide: Decide) -> Any:
        """Decide and append, again if another instance wrote. Raise RegistryError, KafkaError."""
        async with self._writing:
            try:
                async with asyncio.timeout(_WRITE_TIMEOUT_SECONDS):
                    return await self._write(decide)
            except TimeoutError as error:
                raise operation_timeout("Write") from error

    async def _write(self, decide: Decide) -> Any:
        while True:
            await self.catch_up()
            change = decide(self.registry)
            if not change.records:
                return change.answer
            before = {record.key: self._values.get(record.key) for record in change.records}
            end_offset = self._end_offset
            self._recent.clear()
            offset = await self._append(change.records)
            if offset == end_offset:
                return change.answer
            log.warning(
                "registry is not alone in writing offset=%d expected=%d", offset, end_offset
            )
            before |= {each.key: each.value for at, each in self._recent if at < offset}
            await self._append([Record(each.key, before[each.key]) for each in change.records])

    async def _append(self, records: list[Record]) -> int:
        """Append records as one batch, wait until the own reader has them; return the offset."""
        if self._producer is None:
            raise KafkaError("the registry is not connected")
        batch = self._producer.create_batch()
        for record in records:
            if batch.append(key=record.key, value=record.value, timestamp=None) is None:
                raise schema_too_large()
        try:
            metadata = await (await self._producer.send_batch(batch, TOPIC, partition=0))
        except MessageSizeTooLargeError as error:
            raise schema_too_large() from error
        await self._reach(metadata.offset + len(records))
        return int(metadata.offset)

    async def catch_up(self) -> None:
        """Wait until this instance has read all records that are in the log. Raise KafkaError."""
        await self._reach(await self._log_end_offset())

    async def _reach(self, offset: int) -> None:
        async with self._moved:
            await self._moved.wait_for(lambda: self._end_offset >= offset)

    async def _log_end_offset(self) -> int:
        if self._asker is None:
            raise KafkaError("the registry is not connected")
        offsets = await self._asker.end_offsets([_PARTITION])
        return int(offsets[_PARTITION])

    async def _disconnect(self) -> None:
        clients = (self._consumer, self._asker, self._producer)
        self._consumer = self._asker = self._producer = None
        await stop(*clients)


async def _create_topic(kafka: KafkaAccess, replication_factor: int) -> str:
    """Create the topic unless it exists; return the id of the cluster."""
    client = KafkaClient(kafka.bootstrap_servers, kafka.security)
    try:
        cluster = await client.metadata(())
        topic = creatable_topic(
            TOPIC,
            partition_count=1,
            replication_factor=min(replication_factor, len(cluster.brokers)),
            configs={"cleanup.policy": "compact"},
        )
        await create_missing(client, cluster, [topic])
        return cluster.cluster_id or ""
    finally:
        await client.close()
