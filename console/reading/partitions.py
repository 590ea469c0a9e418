"""Asks the leaders of one topic's partitions for offsets and for records, over one connection each.

The leaders are asked for again after an error that says that they have changed. Every wait ends
with the client's timeout.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from common.kafka.client.cluster import KafkaClient
from common.kafka.client.exchange import ConnectionFailed
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from common.kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from common.kafka.protocol.wire import Blob
from console.records.batches import AbortedTransaction

EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3
_CONSUMER: Final = -1
_READ_UNCOMMITTED, _READ_COMMITTED = 0, 1
_LAST_VERSION_WITH_NAMES: Final = 12
"""Of Fetch: later versions name topics by their ids."""
_LEADER_MOVED: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.BROKER_NOT_AVAILABLE,
    }
)
_ATTEMPTS: Final = 3
_PAUSE_SECONDS: Final = 0.2

T = TypeVar("T")


class ReadLimits(NamedTuple):
    """How much one Fetch returns, and how long it waits for records."""

    max_bytes: int = 8 << 20
    partition_bytes: int = 1 << 20
    wait_ms: int = 50


PAGE_LIMITS: Final = ReadLimits()


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a leader answered of one partition; without records if it has an error."""

    partition: int
    records: bytes
    log_start_offset: int
    last_stable_offset: int
    high_watermark: int
    aborted: tuple[AbortedTransaction, ...]
    error: KafkaError | None = None


class TopicPartitions:
    """The partitions of one topic. Methods raise KafkaError or ConnectionFailed."""

    def __init__(self, client: KafkaClient, topic: str) -> None:
        self.topic = topic
        self._client = client
        self._leaders: dict[int, int] = {}

    @property
    def numbers(self) -> list[int]:
        """The partitions; empty before `open`."""
        return sorted(self._leaders)

    async def open(self) -> None:
        """Ask for the leaders; raise UNKNOWN_TOPIC_OR_PARTITION if there is no such topic."""
        found = await self._client.metadata([self.topic])
        for topic in found.topics:
            if topic.error_code and topic.error_code not in _LEADER_MOVED:
                raise KafkaError(ErrorCode(topic.error_code), f"There is no topic {self.topic}.")
            self._leaders = {each.partition_index: each.leader_id for each in topic.partitions}

    async def offsets_at(
        self, timestamp: int, partitions: Iterable[int] | None = None, *, is_stable: bool = False
    ) -> dict[int, int]:
        """Return the offset at a time, or at EARLIEST or LATEST, of each partition with a leader.

        With `is_stable` the latest is the last stable offset. At a time after the last record it
        is -1.
        """
        wanted = self.numbers if partitions is None else sorted(partitions)

        async def ask(leader: int, led: Collection[int]) -> dict[int, int | ErrorCode]:
            request = ListOffsetsRequest(
                replica_id=_CONSUMER,
                isolation_level=_READ_COMMITTED if is_stable else _READ_UNCOMMITTED,
                topics=[
                    ListOffsetsTopic(
                        name=self.topic,
                        partitions=[
                            ListOffsetsPartition(partition_index=each, timestamp=timestamp)
                            for each in led
                        ],
                    )
                ],
            )
            answer = await self._client.ask(request, ListOffsetsResponse, leader)
            return {
                one.partition_index: ErrorCode(one.error_code) if one.error_code else one.offset
                for topic in answer.topics
                for one in topic.partitions
            }

        return await self._of_leaders(wanted, ask)

    async def _of_leaders(
        self,
        wanted: Collection[int],
        ask: Callable[[int, Collection[int]], Awaitable[dict[int, int | ErrorCode]]],
    ) -> dict[int, int]:
        """Ask each leader once, and again after it has moved; leave out what has no leader."""
        found: dict[int, int] = {}
        for attempt in range(_ATTEMPTS):
            left = [each for each in wanted if each not in found]
            answers = await asyncio.gather(
                *(ask(leader, led) for leader, led in self._by_leader(left).items()),
                return_exceptions=True,
            )
            has_moved = False
            for answer in answers:
                if isinstance(answer, ConnectionFailed):
                    has_moved = True
                elif isinstance(answer, BaseException):
                    raise answer
                else:
                    has_moved |= _take(answer, found)
            if not has_moved:
                break
            if attempt + 1 < _ATTEMPTS:
                await asyncio.sleep(_PAUSE_SECONDS)
                await self.open()
        return found

    def _by_leader(self, partitions: Iterable[int]) -> dict[int, list[int]]:
        found: dict[int, list[int]] = defaultdict(list)
        for each in partitions:
            leader = self._leaders.get(each, -1)
            if leader >= 0:
                found[leader].append(each)
        return found

    async def fetch(
        self, positions: Mapping[int, int], limits: ReadLimits = PAGE_LIMITS, *, all_states: bool
    ) -> list[Fetched]:
        """Fetch once from each leader, beginning at these offsets.

        `all_states` returns records of open transactions too, and does not say which transactions
        were aborted. A leader that has moved is found by the next call.
        """
        by_leader = self._by_leader(positions)
        answers = await asyncio.gather(
            *(
                self._fetch_from(
                    leader, {each: positions[each] for each in led}, limits, all_states
                )
                for leader, led in by_leader.items()
            ),
            return_exceptions=True,
        )
        found: list[Fetched] = []
        has_moved = len(answers) == 0
        for answer in answers:
            if isinstance(answer, ConnectionFailed):
                has_moved = True
            elif isinstance(answer, BaseException):
                raise answer
            else:
                found += [each for each in answer if not _has_moved(each)]
                has_moved |= any(map(_has_moved, answer))
        if has_moved:
            await asyncio.sleep(_PAUSE_SECONDS)
            await self.open()
        return found

    async def _fetch_from(
        self, leader: int, positions: Mapping[int, int], limits: ReadLimits, all_states: bool
    ) -> list[Fetched]:
        request = FetchRequest(
            replica_id=_CONSUMER,
            max_wait_ms=limits.wait_ms,
            min_bytes=1,
            max_bytes=limits.max_bytes,
            isolation_level=_READ_UNCOMMITTED if all_states else _READ_COMMITTED,
            topics=[
                FetchTopic(
                    topic=self.topic,
                    partitions=[
                        FetchPartition(
                            partition=each,
                            fetch_offset=offset,
                            partition_max_bytes=limits.partition_bytes,
                        )
                        for each, offset in positions.items()
                    ],
                )
            ],
        )
        answer = await self._client.ask(
            request, FetchResponse, leader, max_version=_LAST_VERSION_WITH_NAMES
        )
        if answer.error_code:
            raise KafkaError(ErrorCode(answer.error_code))
        return [_fetched(one) for topic in answer.responses for one in topic.partitions]


def _take(answer: Mapping[int, int | ErrorCode], found: dict[int, int]) -> bool:
    """Take the offsets of one answer; return whether a leader has moved. Raise KafkaError."""
    has_moved = False
    for partition, outcome in answer.items():
        if not isinstance(outcome, ErrorCode):
            found[partition] = outcome
        elif outcome in _LEADER_MOVED:
            has_moved = True
        else:
            raise KafkaError(outcome)
    return has_moved


def _has_moved(fetched: Fetched) -> bool:
    return fetched.error is not None and fetched.error.code in _LEADER_MOVED


def _fetched(one: PartitionData) -> Fetched:
    return Fetched(
        one.partition_index,
        _bytes_of(one.records),
        one.log_start_offset,
        one.last_stable_offset,
        one.high_watermark,
        tuple(
            AbortedTransaction(each.producer_id, each.first_offset)
            for each in one.aborted_transactions or ()
        ),
        KafkaError(ErrorCode(one.error_code)) if one.error_code else None,
    )


def _bytes_of(blob: Blob | None) -> bytes:
    # What was received is one buffer; only a sender has several parts.
    assert blob is None or isinstance(blob, bytes | bytearray | memoryview), type(blob)
    return b"" if blob is None else bytes(blob)
