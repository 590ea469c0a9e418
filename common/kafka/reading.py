"""How to read partitions to their end."""

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from aiokafka import TopicPartition
from aiokafka.structs import ConsumerRecord

from common.credentials.access import KafkaAccess
from common.kafka.consumer import METADATA_MAX_AGE_MS, Consumer
from common.kafka.stopping import stop
from common.process.clock import now_seconds

log = logging.getLogger(__name__)

Replay = Callable[[ConsumerRecord], Awaitable[None]]
ReadToEnd = Callable[[Iterable[TopicPartition], Replay], Awaitable[dict[TopicPartition, int]]]
"""`read_to_end` of a cluster."""


class EndOffsets:
    """Tells where partitions end, over a connection of its own.

    A broker answers the requests of one connection in order, so on a consumer's connection the
    answer would wait behind a fetch that waits for records.
    """

    def __init__(self, kafka: KafkaAccess) -> None:
        self._consumer = Consumer(**kafka.aiokafka())

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
"""How often the reader's position is checked. A consumer passes markers of transactions without
returning them, and a changelog ends with one."""

UNREADABLE: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""Raised for a record that a stranger wrote: no key, no UTF-8, no JSON, no such field. It must not
stop the program, which would read it again at each start."""
_SHOWN_CHARACTERS: Final = 200
Progress = Callable[[str, int, int], None]
"""Called now and then with a topic, how many of its offsets were read, and of how many."""


def _no_progress(topic: str, read: int, total: int) -> None:
    """Do nothing."""


async def read_to_end(
    kafka: KafkaAccess,
    partitions: Iterable[TopicPartition],
    replay: Replay,
    *,
    show: Progress = _no_progress,
) -> dict[TopicPartition, int]:
    """Replay the partitions from the beginning to where they end now; return where that is.

    The end includes records of open transactions, so this waits until those are decided. Offsets
    may be committed a moment before the rows of the same transaction can be read.
    """
    consumer = Consumer(
        **kafka.aiokafka(),
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        fetch_max_wait_ms=100,
        metadata_max_age_ms=METADATA_MAX_AGE_MS,
    )
    asker = EndOffsets(kafka)
    await asker.start()
    try:
        await consumer.start()
        end_offsets = await asker.of(partitions)
        consumer.assign(list(end_offsets))
        shown_at = now_seconds()
        while behind := await _behind(consumer, end_offsets):
            for records in (await consumer.getmany(*behind, timeout_ms=_POLL_MS)).values():
                for record in records:
                    await replay_or_pass(replay, record)
            if now_seconds() - shown_at >= _PROGRESS_SECONDS:
                shown_at = now_seconds()
                await _show(consumer, end_offsets, show)
        await _show(consumer, end_offsets, show)
        return {partition: await consumer.position(partition) for partition in end_offsets}
    finally:
        await stop(consumer, asker)


async def replay_or_pass(replay: Replay, record: ConsumerRecord) -> None:
    """Replay a record; log one that cannot be read, and pass over it."""
    try:
        await replay(record)
    except UNREADABLE as error:
        passed_over(record, error)


def passed_over(record: ConsumerRecord, error: Exception) -> None:
    """Log that a record is passed over."""
    place = f"{record.topic}-{record.partition}:{record.offset}"
    log.warning("record passed over place=%s error=%s", place, repr(error)[:_SHOWN_CHARACTERS])


async def _show(consumer: Consumer, end_offsets: dict[TopicPartition, int], show: Progress) -> None:
    for topic in sorted({partition.topic for partition in end_offsets}):
        ends = {p: end for p, end in end_offsets.items() if p.topic == topic}
        read = sum([min(await consumer.position(p), end) for p, end in ends.items()])
        total = sum(ends.values())
        log.info("state is read back topic=%s offsets=%d of=%d", topic, read, total)
        show(topic, read, total)


async def _behind(
    consumer: Consumer, end_offsets: dict[TopicPartition, int]
) -> list[TopicPartition]:
    return [
        partition
        for partition, end_offset in end_offsets.items()
        if end_offset and await consumer.position(partition) < end_offset
    ]
