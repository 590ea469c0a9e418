"""Reads the committed offsets of groups, over aiokafka's connections.

librdkafka's admin client crashes the process, in `rd_kafka_cgrp_op`, when a broker answers that it
is not the coordinator of a group (librdkafka, issue 5040).
"""

import asyncio
from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from aiokafka.client import AIOKafkaClient, ConnectionGroup, CoordinationType
from aiokafka.errors import KafkaError, for_code
from aiokafka.protocol.commit import OffsetFetchRequest

from common.kafka.brokers import find_coordinator
from connect.worker.aiokafka_settings import aiokafka_settings
from millstream.connect.connectors import TopicPartition
from millstream.connect.errors import ConnectException

_RETRY_SECONDS: Final = 0.1


class Committed(NamedTuple):
    offset: int
    metadata: str


Offsets = dict[TopicPartition, Committed]


def committed_offsets(
    client: Mapping[str, Any], groups: Collection[str], timeout_seconds: float
) -> dict[str, Offsets | ConnectException]:
    """Return the committed offsets of each group, or the error of a group that cannot be read.

    `client` has librdkafka's settings. The calling thread must not run an event loop. Raises
    ConnectException when the cluster does not answer.
    """
    if not groups:
        return {}
    return asyncio.run(_ask(client, sorted(groups), timeout_seconds))


async def _ask(
    told: Mapping[str, Any], groups: list[str], timeout_seconds: float
) -> dict[str, Offsets | ConnectException]:
    timeout_ms = int(1000 * timeout_seconds)
    client = AIOKafkaClient(**aiokafka_settings(told), request_timeout_ms=timeout_ms)
    try:
        async with asyncio.timeout(timeout_seconds):
            await client.bootstrap()
        found = (_of_group(client, group, timeout_seconds) for group in groups)
        return dict(zip(groups, await asyncio.gather(*found), strict=True))
    except (KafkaError, OSError) as error:
        raise ConnectException(f"the brokers cannot be asked: {error!r}") from error
    finally:
        await client.close()


async def _of_group(
    client: AIOKafkaClient, group: str, timeout_seconds: float
) -> Offsets | ConnectException:
    """Retry until there is an answer: the coordinator may change at any time."""
    last: Exception | None = None
    try:
        async with asyncio.timeout(timeout_seconds):
            while True:
                try:
                    return await _fetched(client, group)
                except KafkaError as error:
                    last = error
                    if not error.retriable:
                        break
                await asyncio.sleep(_RETRY_SECONDS)
    except OSError as error:
        last = last or error
    failed = ConnectException(f"Failed to retrieve consumer group offsets for group {group}")
    failed.__cause__ = last
    return failed


async def _fetched(client: AIOKafkaClient, group: str) -> Offsets:
    """Raises KafkaError."""
    node = await find_coordinator(client, CoordinationType.GROUP, group)
    request = OffsetFetchRequest(group, None)
    answer = await client.send(node, request, group=ConnectionGroup.COORDINATION)
    if answer.error_code:
        raise for_code(answer.error_code)
    found = {}
    for topic, partitions in answer.topics:
        for partition, offset, metadata, error_code in partitions:
            if error_code:
                raise for_code(error_code)
            if offset >= 0:
                found[TopicPartition(topic, partition)] = Committed(offset, metadata or "")
    return found
