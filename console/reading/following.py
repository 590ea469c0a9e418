"""Follows one text, such as an order's id, through many topics: what was there, and what arrives.

Each topic is read from a time on, and then as long as somebody looks on. Rows of one look come in
the order of time, across topics and partitions.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import Final, NamedTuple

from common.kafka.errors import ErrorCode, KafkaError
from console.reading.partitions import ReadLimits
from console.reading.rows import RowReader
from console.records.merging import Window
from console.records.rows import Row

MAX_TOPICS: Final = 50
MAX_ROWS: Final = 1_000
_LIMITS: Final = ReadLimits(max_bytes=4 << 20, partition_bytes=1 << 20, wait_ms=0)
_PAUSE_SECONDS: Final = 0.4
_END_OF_TIME: Final = 1 << 62
_GONE: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


class FollowedRow(NamedTuple):
    """A row, and its topic."""

    topic: str
    row: Row


async def follow(
    topics: Iterable[str], make_reader: Callable[[str], RowReader], since_ms: int
) -> AsyncGenerator[list[FollowedRow], None]:
    """Yield the rows that readers let through, from a time on; an empty list when all are read.

    A topic that may not be read is left out. Raise KafkaError or ConnectionFailed.
    """
    readers = {topic: make_reader(topic) for topic in topics}
    left: dict[str, dict[int, Window]] = {}
    for topic, reader in readers.items():
        try:
            left[topic] = await _places(reader, since_ms)
        except KafkaError as error:
            if error.code not in _GONE:
                raise
    count = 0
    while count < MAX_ROWS:
        found: list[FollowedRow] = []
        has_advanced = False
        for topic, windows in left.items():
            for partition, chunk in (await readers[topic].read_once(windows, _LIMITS)).items():
                has_advanced |= chunk.next_offset > windows[partition].start
                windows[partition] = Window(min(chunk.next_offset, _END_OF_TIME - 1), _END_OF_TIME)
                found += [FollowedRow(topic, row) for row in chunk.rows]
        count += len(found)
        found.sort(key=_time)
        yield found
        if not has_advanced:
            await asyncio.sleep(_PAUSE_SECONDS)


async def _places(reader: RowReader, since_ms: int) -> dict[int, Window]:
    ranges = await reader.open()
    at = await reader.partitions.offsets_at(since_ms, ranges)
    return {
        each: Window(at[each] if at.get(each, -1) >= 0 else window.end, _END_OF_TIME)
        for each, window in ranges.items()
    }


def _time(each: FollowedRow) -> tuple[int, str, int, int]:
    return each.row.timestamp_ms, each.topic, each.row.partition, each.row.offset
