"""One consumer instance: a consumer of aiokafka that callers use through HTTP.

An instance serves one call at a time, and no call waits without an end: for its turn as long as one
read may take, for Kafka ten seconds. Between reads its partitions are paused, so that an instance
without reads holds no records. Records that a read has taken and not returned (`_waiting`) are
returned by the next read. Offsets are committed here and not by the Kafka client, which would also
commit records that were not returned to a caller.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import re2
from aiokafka import ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import ConsumerStoppedError, IllegalStateError, KafkaError
from aiokafka.structs import ConsumerRecord

from common.kafka.consumer import METADATA_MAX_AGE_MS, Consumer
from common.kafka.stopping import stop
from rest_proxy.consumers.reading import Reading
from rest_proxy.consumers.state import InstanceState, Mode, Partition
from rest_proxy.formats import Format
from rest_proxy.kafka.errors import KAFKA_SECONDS, bounded, refusal_of
from rest_proxy.refusals import RestError, illegal_state

log = logging.getLogger(__name__)

_FETCH_MAX_BYTES: Final = 8 << 20
_PARTITION_FETCH_BYTES: Final = 1 << 20
_DEFAULTS: Final[Mapping[str, Any]] = {
    "fetch_max_bytes": _FETCH_MAX_BYTES,
    "max_partition_fetch_bytes": _PARTITION_FETCH_BYTES,
}
_AUTO_COMMIT_SECONDS: Final = 5.0
_GRACE_MS: Final = 60_000
_SIDE_COMMIT_SECONDS: Final = 5.0
"""How long a call waits for the commit that it makes besides, as a read and a deletion do."""

Give = Callable[[ConsumerRecord], Awaitable[Any]]
"""Returns a record as the caller reads it; raises RestError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceSettings:
    """The settings of a new instance."""

    group_id: str
    name: str
    kind: Format
    offset_reset: str
    is_auto_committed: bool
    request_timeout_seconds: float
    fetch_min_bytes: int
    max_bytes: int
    join_seconds: float
    poll_records: int


class Instance(ConsumerRebalanceListener):  # type: ignore[misc, unused-ignore]
    """Owns the consumer, which is started by the first call that needs partitions."""

    def __init__(
        self,
        settings: InstanceSettings,
        client_settings: Mapping[str, Any],
        state: InstanceState,
        now_seconds: Callable[[], float],
    ) -> None:
        self.settings = settings
        self.state = state
        self.topics: list[str] = []
        self._now_seconds = now_seconds
        self._lock = asyncio.Lock()
        self._has_partitions = asyncio.Event()
        self._is_reading = False
        self._waiting: deque[ConsumerRecord] = deque()
        self._committed_at = now_seconds()
        self._is_closed = False
        self._is_started = False
        options = {**_DEFAULTS, **client_settings}
        self._consumer = Consumer(
            group_id=settings.group_id,
            enable_auto_commit=False,
            auto_offset_reset=settings.offset_reset,
            # It stays a member of the group until this instance is closed.
            max_poll_interval_ms=int(state.timeout_seconds * 1000) + _GRACE_MS,
            metadata_max_age_ms=options.pop("metadata_max_age_ms", METADATA_MAX_AGE_MS),
            **options,
        )

    @asynccontextmanager
    async def _call(self) -> AsyncIterator[Consumer]:
        """Lend the consumer to one call; an error of Kafka is raised as RestError."""
        async with self._turn():
            if self._is_closed:
                raise _deleted()
            try:
                if not self._is_started:
                    async with bounded():
                        await self._consumer.start()
                    self._is_started = True
                yield self._consumer
            except ConsumerStoppedError:
                raise _deleted() from None
            except IllegalStateError as error:
                raise illegal_state(str(error.args[0] if error.args else error)) from None
            except (KafkaError, OSError) as error:
                raise refusal_of(error) from None

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Wait until no other call uses the instance. Raises RestError, 40903, after a time."""
        try:
            async with asyncio.timeout(self._longest_call_seconds):
                await self._lock.acquire()
        except TimeoutError:
            raise illegal_state("Another call is using the instance: try again later.") from None
        try:
            yield
        finally:
            self._lock.release()

    @property
    def _longest_call_seconds(self) -> float:
        own = self.settings
        return own.join_seconds + own.request_timeout_seconds + KAFKA_SECONDS

    # --- partitions ---

    async def subscribe(self, topics: list[str]) -> None:
        """Join the group for topics, in the background."""
        async with self._call() as consumer:
            self.state.subscribe()
            self._has_partitions.clear()
            self._waiting.clear()
            consumer.subscribe(topics, listener=self)
            self.topics = topics

    async def subscribe_pattern(self, pattern: "re2._Regexp[str]") -> None:
        """Join the group for every topic whose name matches."""
        async with self._call() as consumer:
            self.state.subscribe()
            self._has_partitions.clear()
            self._waiting.clear()
            consumer.subscribe_matching(pattern, self)
            self.topics = []

    async def assign(self, partitions: list[Partition]) -> None:
        async with self._call() as consumer:
            self.state.assign()
            self._waiting.clear()
            consumer.assign([TopicPartition(*each) for each in partitions])
            self.state.lose(self.state.delivered.keys() - set(partitions))
            self._pause()
            self._has_partitions.set()

    async def unsubscribe(self) -> None:
        async with self._call() as consumer:
            await self._maybe_commit(always=True)
            consumer.unsubscribe()
            self._waiting.clear()
            self._has_partitions.clear()
            self.state.unsubscribe()
            self.topics = []

    def subscription(self) -> list[str]:
        """Return the topics it is subscribed to."""
        if self.state.mode is not Mode.SUBSCRIBED:
            return []
        return sorted(self._consumer.subscription() or self.topics)

    def assignment(self) -> list[Partition]:
        """Return the partitions that it has at this time."""
        return sorted((each.topic, each.partition) for each in self._consumer.assignment())

    # --- reading ---

    async def read(self, give: Give, seconds: float, max_bytes: int) -> list[Any]:
        """Return records, as `give` makes them. Raises RestError if not even one can be given."""
        async with self._call() as consumer:
            await self._await_partitions()
            await self._maybe_commit()
            reading = Reading(max_bytes, self.settings.fetch_min_bytes)
            given: list[Any] = []
            deadline = self._now_seconds() + seconds
            has_polled = False
            self._resume()
            try:
                while await self._give(given, reading, give) and not self._is_closed:
                    left = deadline - self._now_seconds()
                    if left <= 0 and has_polled:
                        break
                    await self._poll(consumer, max(left, 0.0))
                    has_polled = True
            finally:
                self._pause()
            return given

    async def _poll(self, consumer: Consumer, seconds: float) -> None:
        found = await consumer.getmany(
            timeout_ms=int(seconds * 1000), max_records=self.settings.poll_records
        )
        for records in found.values():
            self._waiting.extend(records)

    async def _give(self, given: list[Any], reading: Reading, give: Give) -> bool:
        """Move waiting records to the result; return whether the read may go on."""
        while self._waiting:
            record = self._waiting[0]
            size = _size(record)
            if not reading.has_room(size):
                return False
            try:
                shown = await give(record)
            except RestError:
                if given:
                    return False  # The next read raises the error of this record.
                raise
            if not self._waiting or self._waiting[0] is not record:
                continue  # Its partition was assigned to another member meanwhile.
            self._waiting.popleft()
            given.append(shown)
            reading.take(size)
            self.state.deliver((record.topic, record.partition), record.offset)
        return not reading.is_enough()

    async def _await_partitions(self) -> None:
        """Wait until it has partitions and positions, so that the first read is not empty."""
        self.state.require_partitions()
        try:
            async with asyncio.timeout(self.settings.join_seconds):
                await self._has_partitions.wait()
                for partition in self._consumer.assignment():
                    await self._consumer.position(partition)
        except TimeoutError:
            log.info(
                "no partitions yet group=%s instance=%s", self.settings.group_id, self.settings.name
            )

    def _pause(self) -> None:
        self._is_reading = False
        self._consumer.pause(*self._consumer.assignment())

    def _resume(self) -> None:
        self._is_reading = True
        self._consumer.resume(*self._consumer.assignment())

    # --- positions and offsets ---

    async def seek(self, offsets: Mapping[Partition, int]) -> None:
        async with self._call() as consumer:
            await self._await_partitions()
            self._require_assigned(offsets)
            for partition, offset in offsets.items():
                consumer.seek(TopicPartition(*partition), offset)
                self._move(partition)

    async def seek_to_times(self, times_ms: Mapping[Partition, int]) -> None:
        """Seek to the first record at or after a time, or to the end if there is none."""
        async with self._call() as consumer:
            await self._await_partitions()
            self._require_assigned(times_ms)
            asked = {TopicPartition(*each): time_ms for each, time_ms in times_ms.items()}
            async with bounded():
                found = await consumer.offsets_for_times(asked)
            for partition, place in found.items():
                if place is None:
                    async with bounded():
                        await consumer.seek_to_end(partition)
                else:
                    consumer.seek(partition, place.offset)
                self._move((partition.topic, partition.partition))

    async def seek_to_beginning(self, partitions: Iterable[Partition]) -> None:
        async with self._call() as consumer:
            wanted = await self._wanted(partitions)
            async with bounded():
                await consumer.seek_to_beginning(*wanted)

    async def seek_to_end(self, partitions: Iterable[Partition]) -> None:
        async with self._call() as consumer:
            wanted = await self._wanted(partitions)
            async with bounded():
                await consumer.seek_to_end(*wanted)

    async def _wanted(self, partitions: Iterable[Partition]) -> list[TopicPartition]:
        await self._await_partitions()
        self._require_assigned(partitions)
        for partition in partitions:
            self._move(partition)
        return [TopicPartition(*each) for each in partitions]

    def _require_assigned(self, partitions: Iterable[Partition]) -> None:
        missing = sorted(set(partitions) - set(self.assignment()))
        if missing:
            topic, partition = missing[0]
            raise illegal_state(
                f"Partition {partition} of {topic} is not assigned to the instance."
            )

    def _move(self, partition: Partition) -> None:
        self._forget([partition])
        self.state.move(partition)

    async def commit(self, offsets: Mapping[Partition, tuple[int, str]] | None) -> None:
        """Commit offsets with their metadata; without offsets, those of all returned records."""
        async with self._call() as consumer:
            if offsets is None:
                await self._commit(self.state.uncommitted(), KAFKA_SECONDS)
                return
            await self._await_partitions()
            self._require_assigned(offsets)
            told = {TopicPartition(*each): place for each, place in offsets.items()}
            async with bounded():
                await consumer.commit(told)
            self.state.commit({each: offset for each, (offset, _) in offsets.items()})

    async def _maybe_commit(self, *, always: bool = False) -> None:
        now = self._now_seconds()
        if not self.settings.is_auto_committed:
            return
        if always or now - self._committed_at >= _AUTO_COMMIT_SECONDS:
            self._committed_at = now
            await self._commit(self.state.uncommitted(), _SIDE_COMMIT_SECONDS)

    async def _commit(self, offsets: Mapping[Partition, int], seconds: float) -> None:
        if offsets:
            told = {TopicPartition(*each): (offset, "") for each, offset in offsets.items()}
            async with bounded(seconds):
                await self._consumer.commit(told)
            self.state.commit(offsets)

    # --- rebalances ---

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        partitions = [(each.topic, each.partition) for each in revoked]
        try:
            await self._maybe_commit(always=True)
        except (KafkaError, IllegalStateError, RestError) as error:
            # These records will be returned again: at least once, as with any consumer.
            log.warning("offsets not committed group=%s error=%s", self.settings.group_id, error)
        self._has_partitions.clear()
        self._forget(partitions)
        self.state.lose(partitions)

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        if not self._is_reading:
            self._consumer.pause(*assigned)
        self._has_partitions.set()

    def _forget(self, partitions: Iterable[Partition]) -> None:
        gone = set(partitions)
        kept = [each for each in self._waiting if (each.topic, each.partition) not in gone]
        self._waiting = deque(kept)

    async def close(self) -> None:
        """Commit if auto-commit is on, and leave the group. A read under way ends early."""
        self._is_closed = True
        try:
            async with self._turn():
                if self._is_started:
                    await self._maybe_commit(always=True)
        except (KafkaError, OSError, IllegalStateError, RestError) as error:
            log.warning("offsets not committed group=%s error=%s", self.settings.group_id, error)
        await stop(self._consumer)
        self._waiting.clear()


def _deleted() -> RestError:
    return illegal_state("The instance is being deleted.")


def _size(record: ConsumerRecord) -> int:
    return len(record.key or b"") + len(record.value or b"")
