"""Reads and sets the committed offsets of groups, on an event loop.

librdkafka's admin client crashes after an answer that the coordinator of a group has changed: the
process ends in `rd_kafka_cgrp_op` (librdkafka, issue 5040). It also returns metadata that it has
freed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple, TypeVar

from common.kafka.client.cluster import GROUP, KafkaClient
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from common.kafka.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

_FETCH_VERSION: Final = 7
"""Of OffsetFetch: later versions name several groups."""
_COMMIT_VERSION: Final = 9
"""Of OffsetCommit: later versions name topics by their ids."""
_RETRY_SECONDS: Final = 0.1

T = TypeVar("T")
Partition = tuple[str, int]


class Committed(NamedTuple):
    """A committed offset and what was stored with it."""

    offset: int
    metadata: str


async def until_answered(ask: Callable[[], Awaitable[T]], seconds: float) -> T:
    """Repeat a request while its refusal may pass: the coordinator may change at any time.

    Raise the last failure after `seconds`, KafkaError or OSError.
    """
    last: Exception | None = None
    try:
        async with asyncio.timeout(seconds):
            while True:
                try:
                    return await ask()
                except KafkaError as error:
                    if not error.is_retriable:
                        raise
                    last = error
                except ConnectionError as error:
                    last = error
                await asyncio.sleep(_RETRY_SECONDS)
    except TimeoutError as error:
        raise last or error from None


async def committed_offsets(client: KafkaClient, group_id: str) -> dict[Partition, Committed]:
    """Return the committed offsets of a group; none for an unknown group."""
    coordinator = await client.coordinator(GROUP, group_id)
    request = OffsetFetchRequest(group_id=group_id, topics=None)
    answer = await client.ask(request, OffsetFetchResponse, coordinator, max_version=_FETCH_VERSION)
    _check(answer.error_code)
    found: dict[Partition, Committed] = {}
    for topic in answer.topics:
        for each in topic.partitions:
            _check(each.error_code)
            if each.committed_offset >= 0:
                committed = Committed(each.committed_offset, each.metadata or "")
                found[topic.name, each.partition_index] = committed
    return found


async def commit_offsets(
    client: KafkaClient, group_id: str, offsets: Mapping[Partition, int]
) -> None:
    """Set a group's offsets; raises UNKNOWN_MEMBER_ID while the group has members."""
    by_topic: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, number), offset in offsets.items():
        committed = OffsetCommitRequestPartition(
            partition_index=number, committed_offset=offset, committed_metadata=""
        )
        by_topic.setdefault(topic, []).append(committed)
    topics = [
        OffsetCommitRequestTopic(name=topic, partitions=found) for topic, found in by_topic.items()
    ]
    coordinator = await client.coordinator(GROUP, group_id)
    request = OffsetCommitRequest(group_id=group_id, topics=topics)
    answer = await client.ask(
        request, OffsetCommitResponse, coordinator, max_version=_COMMIT_VERSION
    )
    codes = [each.error_code for topic in answer.topics for each in topic.partitions]
    for code in sorted(codes, key=lambda code: code != ErrorCode.UNKNOWN_MEMBER_ID):
        _check(code)


def _check(code: int) -> None:
    if code:
        raise KafkaError(ErrorCode(code))
