"""Reads and sets the committed offsets of groups, on aiokafka's connections.

librdkafka's admin client crashes after an answer that the coordinator of a group has changed: the
process ends in `rd_kafka_cgrp_op` (librdkafka, issue 5040). It also returns metadata that it has
freed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final, NamedTuple, TypeVar

from aiokafka.client import AIOKafkaClient, ConnectionGroup, CoordinationType
from aiokafka.errors import KafkaError, for_code
from aiokafka.protocol.commit import OffsetCommitRequest, OffsetFetchRequest

from common.kafka.brokers import find_coordinator
from rest_proxy.kafka.errors import refusal_of
from rest_proxy.kafka.waiting import KAFKA_SECONDS
from rest_proxy.refusals import illegal_state

_RETRY_SECONDS: Final = 0.1
_UNKNOWN_MEMBER: Final = 25
_NOBODY: Final = ""
_KEPT_AS_SET: Final = -1

Partition = tuple[str, int]
T = TypeVar("T")


class Committed(NamedTuple):
    offset: int
    metadata: str


class GroupOffsets:
    """Sends requests to groups' coordinators; every call raises RestError."""

    def __init__(self, client: AIOKafkaClient) -> None:
        self._client = client

    async def committed(self, group_id: str) -> dict[Partition, Committed]:
        """Return the committed offsets of a group; none for an unknown group."""
        return await self._until_answered(lambda: self._fetch(group_id))

    async def commit(self, group_id: str, offsets: Mapping[Partition, int]) -> None:
        """Set a group's offsets; Kafka refuses it while the group has members."""
        await self._until_answered(lambda: self._commit(group_id, offsets))

    async def _until_answered(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Repeat a request until it is answered, because the coordinator may change."""
        last: Exception | None = None
        try:
            async with asyncio.timeout(KAFKA_SECONDS):
                while True:
                    try:
                        return await ask()
                    except KafkaError as error:
                        if not error.retriable:
                            raise refusal_of(error) from None
                        last = error
                    await asyncio.sleep(_RETRY_SECONDS)
        except (TimeoutError, OSError) as error:
            raise refusal_of(last or error) from None

    async def _fetch(self, group_id: str) -> dict[Partition, Committed]:
        node = await find_coordinator(self._client, CoordinationType.GROUP, group_id)
        request = OffsetFetchRequest(group_id, None)
        answer = await self._client.send(node, request, group=ConnectionGroup.COORDINATION)
        _check(answer.error_code)
        found = {}
        for topic, partitions in answer.topics:
            for partition, offset, metadata, code in partitions:
                _check(code)
                if offset >= 0:
                    found[topic, partition] = Committed(offset, metadata or "")
        return found

    async def _commit(self, group_id: str, offsets: Mapping[Partition, int]) -> None:
        by_topic: dict[str, list[tuple[int, int, str]]] = {}
        for (topic, partition), offset in offsets.items():
            by_topic.setdefault(topic, []).append((partition, offset, ""))
        request = OffsetCommitRequest(
            group_id,
            OffsetCommitRequest.DEFAULT_GENERATION_ID,
            _NOBODY,
            _KEPT_AS_SET,
            list(by_topic.items()),
        )
        node = await find_coordinator(self._client, CoordinationType.GROUP, group_id)
        answer = await self._client.send(node, request, group=ConnectionGroup.COORDINATION)
        codes = [code for _, partitions in answer.topics for _, code in partitions]
        if _UNKNOWN_MEMBER in codes:
            raise illegal_state(
                f"Group {group_id} has members: offsets can be reset when all have left."
            )
        _check_all(codes)


def _check(code: int) -> None:
    if code:
        raise for_code(code)


def _check_all(codes: Iterable[int]) -> None:
    for code in codes:
        _check(code)
