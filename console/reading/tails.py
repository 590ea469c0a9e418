"""The records that arrive in a topic, read once for all who watch it.

One loop reads a topic as long as somebody watches. Each viewer has a queue of a limited length. A
slow viewer loses the oldest rows and gets their number, so no viewer waits for another.
"""

import asyncio
import json
import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable
from typing import Final, NamedTuple

from common.kafka.client.cluster import KafkaClient
from common.kafka.client.exchange import ConnectionFailed
from common.kafka.errors import KafkaError
from common.process.tasks import spawn
from console.reading.partitions import LATEST, ReadLimits, TopicPartitions
from console.reading.rows import RowReader, Wish
from console.reading.schemas import SchemaShelf
from console.records.filters import Filter
from console.records.masking import TopicMask
from console.records.merging import Window
from console.records.rows import Row

log = logging.getLogger(__name__)

QUEUE_ROWS: Final = 500
MAX_TOPICS: Final = 50
_LIMITS: Final = ReadLimits(max_bytes=4 << 20, partition_bytes=256 << 10, wait_ms=500)
_RETRY_SECONDS: Final = 1.0
_END_OF_TIME: Final = 1 << 62
_METADATA_ROUNDS: Final = 120
"""After so many rounds of half a second new partitions are looked for."""


class TailedRow(NamedTuple):
    """A row, and its JSON, which is made once for all viewers."""

    row: Row
    text: str


class TooManyTailsError(Exception):
    """As many topics are watched as may be."""


class Viewer:
    """What one viewer has not taken yet."""

    def __init__(self, wanted: Filter | None) -> None:
        self._wanted = wanted
        self._rows: deque[str] = deque()
        self._dropped = 0
        self._failure = ""
        self._has_news = asyncio.Event()

    def offer(self, rows: list[TailedRow]) -> None:
        """Take rows; drop the oldest beyond the limit."""
        for each in rows:
            if self._wanted is None or self._wanted.matches(each.row):
                self._rows.append(each.text)
        while len(self._rows) > QUEUE_ROWS:
            self._rows.popleft()
            self._dropped += 1
        if self._rows:
            self._has_news.set()

    def fail(self, why: str) -> None:
        """Note that the topic cannot be read at the moment."""
        self._failure = why
        self._has_news.set()

    async def next(self) -> tuple[list[str], int, str]:
        """Wait for rows; return their JSON, how many were dropped before, and what is wrong."""
        await self._has_news.wait()
        self._has_news.clear()
        rows, dropped, failure = list(self._rows), self._dropped, self._failure
        self._rows.clear()
        self._dropped = 0
        self._failure = ""
        return rows, dropped, failure


class Tail:
    """One topic that is watched, with connections of its own: a Fetch that waits holds up what is
    behind it on its connection."""

    def __init__(self, client: KafkaClient, topic: str, shelf: SchemaShelf, wish: Wish) -> None:
        self._client = client
        self._reader = RowReader(TopicPartitions(client, topic), shelf, wish)
        self.viewers: set[Viewer] = set()
        self.fetch_count = 0
        """How often its leaders were asked for records."""

    async def run(self) -> None:
        """Read until cancelled. A topic that is away is tried again."""
        try:
            while True:
                try:
                    await self._follow()
                except (KafkaError, ConnectionFailed) as error:
                    for viewer in self.viewers:
                        viewer.fail(str(error))
                    await asyncio.sleep(_RETRY_SECONDS)
        finally:
            await self._client.close()

    async def _follow(self) -> None:
        await self._reader.open()
        ends = await self._reader.partitions.offsets_at(LATEST)
        left = {each: Window(offset, _END_OF_TIME) for each, offset in ends.items()}
        rounds = 0
        while True:
            chunks = await self._reader.read_once(left, _LIMITS)
            self.fetch_count += 1
            rows: list[Row] = []
            for partition, chunk in chunks.items():
                if chunk.next_offset >= _END_OF_TIME:
                    return  # The log was cut behind this place: begin again at its end.
                left[partition] = Window(chunk.next_offset, _END_OF_TIME)
                rows += chunk.rows
            if rows:
                self._offer(rows)
            rounds += 1
            if rounds % _METADATA_ROUNDS == 0:
                await self._add_new(left)

    async def _add_new(self, left: dict[int, Window]) -> None:
        await self._reader.partitions.open()
        for number in self._reader.partitions.numbers:
            left.setdefault(number, Window(0, _END_OF_TIME))

    def _offer(self, rows: list[Row]) -> None:
        rows.sort(key=_time)
        made = [TailedRow(row, json.dumps(row.as_json(), ensure_ascii=False)) for row in rows]
        for viewer in self.viewers:
            viewer.offer(made)


def _time(row: Row) -> tuple[int, int, int]:
    return row.timestamp_ms, row.partition, row.offset


class Tails:
    """Owns the loops."""

    def __init__(self, make_client: Callable[[], KafkaClient], shelf: SchemaShelf) -> None:
        self._make_client = make_client
        self._shelf = shelf
        self._tails: dict[tuple[str, bool], tuple[Tail, asyncio.Task[None]]] = {}

    @property
    def viewer_count(self) -> int:
        """How many watch."""
        return sum(len(tail.viewers) for tail, _ in self._tails.values())

    @property
    def read_count(self) -> int:
        """How often the topics that are watched have been read."""
        return sum(tail.fetch_count for tail, _ in self._tails.values())

    async def watch(
        self, topic: str, wanted: Filter | None, mask: TopicMask | None, *, all_states: bool
    ) -> AsyncGenerator[tuple[list[str], int, str], None]:
        """Yield rows as JSON, how many were dropped before them, and what is wrong.

        Raise TooManyTailsError.
        """
        key = (topic, all_states)
        tail = self._tail(key, mask)
        viewer = Viewer(wanted)
        tail.viewers.add(viewer)
        try:
            while True:
                yield await viewer.next()
        finally:
            tail.viewers.discard(viewer)
            if not tail.viewers:
                await self._end(key)

    def _tail(self, key: tuple[str, bool], mask: TopicMask | None) -> Tail:
        found = self._tails.get(key)
        if found is not None:
            return found[0]
        if len(self._tails) >= MAX_TOPICS:
            raise TooManyTailsError(f"{MAX_TOPICS} topics are watched at the moment")
        topic, all_states = key
        wish = Wish(all_states=all_states, mask=mask)
        tail = Tail(self._make_client(), topic, self._shelf, wish)
        self._tails[key] = tail, spawn(tail.run())
        return tail

    async def _end(self, key: tuple[str, bool]) -> None:
        _, task = self._tails.pop(key)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def close(self) -> None:
        """End all loops."""
        for key in list(self._tails):
            await self._end(key)
