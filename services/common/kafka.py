"""The pipeline's topics, and how to read one to its end.

Topics are created by whichever service starts first. Topics whose keys must meet have the same
number of partitions, so a topic that exists with another number is refused at start.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import TopicAlreadyExistsError, for_code
from aiokafka.structs import ConsumerRecord

from millrace.stale_metadata import METADATA_MAX_AGE_MS
from schemas.stopping import stop
from services.common.clock import now_seconds
from transactions.placement import placed

log = logging.getLogger(__name__)

PARTITION_COUNT = 6
_WEEK_MS = 7 * 24 * 3600 * 1000


@dataclass(frozen=True)
class Topic:
    """A topic as it is created when it is missing."""

    name: str
    partition_count: int = PARTITION_COUNT
    config: dict[str, str] = field(default_factory=lambda: {"retention.ms": str(_WEEK_MS)})
    beside: str = ""
    """The topic that is written in the same transactions: it is placed like that one."""


def compacted(name: str, partition_count: int = PARTITION_COUNT, *, beside: str = "") -> Topic:
    return Topic(name, partition_count, {"cleanup.policy": "compact"}, beside)


def changelog_of(
    application: str, store: str, partition_count: int = PARTITION_COUNT, *, beside: Topic
) -> Topic:
    """Return the topic of a store's rows; they go out together with what goes to `beside`."""
    name = f"{application}-{store}-changelog"
    return compacted(name, partition_count, beside=beside.name)


def dead_letter_of(topic: str) -> str:
    return f"{topic}.dead-letter"


ORDERS = Topic("orders")
ORDER_VALIDATIONS = Topic("order-validations")
ORDER_DECISIONS = Topic("order-decisions")
ORDER_COMMANDS = Topic("order-commands")
PAYMENTS = Topic("payments")
ORDER_CONFIRMATIONS = Topic("order-confirmations")
CUSTOMERS = compacted("customers")
PRODUCTS = compacted("products")
WAREHOUSE_INVENTORY = compacted("warehouse-inventory")
SHARED_TOPICS = (
    ORDERS,
    ORDER_VALIDATIONS,
    ORDER_DECISIONS,
    ORDER_COMMANDS,
    PAYMENTS,
    CUSTOMERS,
    PRODUCTS,
    WAREHOUSE_INVENTORY,
)


class WrongPartitionCountError(Exception):
    """A topic exists with a number of partitions that the pipeline cannot work with."""


async def ensure_topics(
    bootstrap_servers: str, topics: Iterable[Topic], *, replication_factor: int
) -> None:
    """Create the topics that are missing, with as many replicas, or one on each broker."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap_servers)
    await admin.start()
    try:
        broker_ids = [broker["node_id"] for broker in (await admin.describe_cluster())["brokers"]]
        wanted = {topic.name: topic for topic in topics}
        existing = set(await admin.list_topics())
        missing = [topic for topic in wanted.values() if topic.name not in existing]
        replicas = [
            placed(topic.beside or topic.name, broker_ids, replication_factor) for topic in missing
        ]
        await _create(admin, list(map(_new_topic, missing, replicas)))
        await _check_partition_counts(admin, wanted, existing & wanted.keys())
    finally:
        await admin.close()


def _new_topic(topic: Topic, replicas: list[int]) -> NewTopic:
    replication = {"min.insync.replicas": "2"} if len(replicas) >= 3 else {}
    return NewTopic(
        topic.name,
        # Both are said by the replicas.
        num_partitions=-1,
        replication_factor=-1,
        replica_assignments=dict.fromkeys(range(topic.partition_count), replicas),
        topic_configs={**topic.config, **replication},
    )


async def _create(admin: AIOKafkaAdminClient, new_topics: list[NewTopic]) -> None:
    if not new_topics:
        return
    response = await admin.create_topics(new_topics)
    for name, code, *message in response.topic_errors:
        # Another service may have been quicker.
        if code not in (0, TopicAlreadyExistsError.errno):
            raise for_code(code)(f"topic {name}: {message}")
        if code == 0:
            log.info("topic created topic=%s", name)


async def _check_partition_counts(
    admin: AIOKafkaAdminClient, wanted: dict[str, Topic], names: set[str]
) -> None:
    if not names:
        return
    for description in await admin.describe_topics(sorted(names)):
        count = len(description["partitions"])
        topic = wanted[description["topic"]]
        if count and count != topic.partition_count:
            raise WrongPartitionCountError(
                f"topic {topic.name} has {count} partitions, needs {topic.partition_count}"
            )


Replay = Callable[[ConsumerRecord], Awaitable[None]]
ReadToEnd = Callable[[Iterable[TopicPartition], Replay], Awaitable[dict[TopicPartition, int]]]
"""`read_to_end` with the broker's address given."""


class EndOffsets:
    """Tells where partitions end, over a connection of its own.

    A broker answers the requests of one connection in order, so on a consumer's connection the
    answer would wait behind a fetch that waits for records.
    """

    def __init__(self, bootstrap_servers: str) -> None:
        self._consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap_servers)

    async def start(self) -> None:
        await self._consumer.start()

    async def stop(self) -> None:
        await stop(self._consumer)

    async def of(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        offsets: dict[TopicPartition, int] = await self._consumer.end_offsets(list(partitions))
        return offsets

    async def ping(self) -> None:
        """Return if a broker answers."""
        await self._consumer.topics()


_PROGRESS_SECONDS = 2.0
_POLL_MS = 50
"""After so long it is looked again where a reader is: what is no record is passed in silence, and a
changelog ends with the end of a transaction."""

Progress = Callable[[str, int, int], None]
"""Is told, now and then, of a topic how many offsets were read of how many."""


def _no_progress(topic: str, read: int, total: int) -> None:
    """Tell nobody."""


async def read_to_end(
    bootstrap_servers: str,
    partitions: Iterable[TopicPartition],
    replay: Replay,
    *,
    show: Progress = _no_progress,
) -> dict[TopicPartition, int]:
    """Replay the partitions from the beginning to where they end now; return where that is.

    The end is that of everything written: what is still in a transaction is waited for. Offsets
    may be committed a moment before the rows that are in the same transaction can be read.
    """
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap_servers,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        fetch_max_wait_ms=100,
        metadata_max_age_ms=METADATA_MAX_AGE_MS,
    )
    asker = EndOffsets(bootstrap_servers)
    await asker.start()
    try:
        await consumer.start()
        end_offsets = await asker.of(partitions)
        consumer.assign(list(end_offsets))
        shown_at = now_seconds()
        while behind := await _behind(consumer, end_offsets):
            for records in (await consumer.getmany(*behind, timeout_ms=_POLL_MS)).values():
                for record in records:
                    await replay(record)
            if now_seconds() - shown_at >= _PROGRESS_SECONDS:
                shown_at = now_seconds()
                await _show(consumer, end_offsets, show)
        await _show(consumer, end_offsets, show)
        return {partition: await consumer.position(partition) for partition in end_offsets}
    finally:
        await stop(consumer, asker)


async def _show(
    consumer: AIOKafkaConsumer, end_offsets: dict[TopicPartition, int], show: Progress
) -> None:
    for topic in sorted({partition.topic for partition in end_offsets}):
        ends = {p: end for p, end in end_offsets.items() if p.topic == topic}
        read = sum([min(await consumer.position(p), end) for p, end in ends.items()])
        total = sum(ends.values())
        log.info("state is read back topic=%s offsets=%d of=%d", topic, read, total)
        show(topic, read, total)


async def _behind(
    consumer: AIOKafkaConsumer, end_offsets: dict[TopicPartition, int]
) -> list[TopicPartition]:
    return [
        partition
        for partition, end_offset in end_offsets.items()
        if end_offset and await consumer.position(partition) < end_offset
    ]
