"""The config topic and the status topic of a cluster, as logs on the event loop."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from connect.worker.topic_log import Entry, LogTopic, Positions, TopicLog, not_written
from connect.worker.worker import Record

log = logging.getLogger(__name__)


class LoopLog:
    """A log that is replayed on the event loop. All methods but `_read` are called there."""

    def __init__(
        self,
        client: Mapping[str, Any],
        topic: LogTopic,
        replay: Callable[[str, bytes | None], None],
        moved: Callable[[int], None],
    ) -> None:
        """Call `moved` with `position` after every batch."""
        self._loop = asyncio.get_running_loop()
        self._replay = replay
        self._told = moved
        self._positions: Positions = {}
        self.position = 0
        """The offset after the last record of partition 0; workers compare it. Transaction markers
        after that record do not count, as in Apache Kafka's worker."""
        self._waiting: list[tuple[Positions, asyncio.Future[None]]] = []
        self._log = TopicLog(client, topic, self._read)

    async def start(self) -> None:
        """Read to the end. Raises ConnectException."""
        await asyncio.to_thread(self._log.start)
        await self.catch_up()

    async def catch_up(self) -> None:
        """Replay up to the log's present end. Raises ConnectException."""
        await self._reach(await asyncio.to_thread(self._log.catch_up))

    async def _reach(self, ends: Positions) -> None:
        if not self._is_reached(ends):
            reached: asyncio.Future[None] = self._loop.create_future()
            self._waiting.append((ends, reached))
            await reached

    def _is_reached(self, ends: Positions) -> bool:
        return all(self._positions.get(each, 0) >= end for each, end in ends.items())

    def _read(self, entries: list[Entry], positions: Positions) -> None:
        position = self._log.record_ends.get(0, 0)
        self._loop.call_soon_threadsafe(self._apply, entries, positions, position)

    def _apply(self, entries: list[Entry], positions: Positions, position: int) -> None:
        for key, value in entries:
            self._replay((key or b"").decode("utf-8", "replace"), value)
        self._positions.update(positions)
        self.position = position
        self._told(self.position)
        waiting, self._waiting = self._waiting, []
        for ends, reached in waiting:
            if not self._is_reached(ends):
                self._waiting.append((ends, reached))
            elif not reached.done():
                reached.set_result(None)

    async def append(self, records: Sequence[Record]) -> None:
        """Write records and wait until they are replayed. Raises ConnectException."""
        stored: asyncio.Future[Positions] = self._loop.create_future()

        def settle(error: Exception | None, ends: Positions) -> None:
            if stored.done():
                return
            if error is None:
                stored.set_result(ends)
            else:
                stored.set_exception(not_written(self._log.topic.name, error))

        def done(error: Exception | None, ends: Positions) -> None:
            self._loop.call_soon_threadsafe(settle, error, ends)

        self._log.produce(entries_of(records), done)
        await self._reach(await stored)

    def submit(self, records: Sequence[Record]) -> None:
        def done(error: Exception | None, _: Positions) -> None:
            if error is not None:
                log.error("records are lost topic=%s error=%s", self._log.topic.name, error)

        self._log.produce(entries_of(records), done)

    async def stop(self) -> None:
        await asyncio.to_thread(self._log.stop)


def entries_of(records: Sequence[Record]) -> list[Entry]:
    return [(record.key.encode(), record.value) for record in records]
