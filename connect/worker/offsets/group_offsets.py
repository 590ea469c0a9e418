"""Reads the committed offsets of groups, from a thread (`common.kafka.group_offsets`)."""

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

from common.kafka import group_offsets
from common.kafka.client.cluster import KafkaClient
from common.kafka.errors import KafkaError
from common.kafka.group_offsets import Committed
from connect.worker.client_settings import kafka_client
from millstream.connect.connectors import TopicPartition
from millstream.connect.errors import ConnectException

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
    client = kafka_client(told, int(1000 * timeout_seconds))
    try:
        async with asyncio.timeout(timeout_seconds):
            await client.connect()
        found = (_of_group(client, group, timeout_seconds) for group in groups)
        return dict(zip(groups, await asyncio.gather(*found), strict=True))
    except (KafkaError, OSError) as error:
        raise ConnectException(f"the brokers cannot be asked: {error!r}") from error
    finally:
        await client.close()


async def _of_group(
    client: KafkaClient, group: str, timeout_seconds: float
) -> Offsets | ConnectException:
    try:
        found = await group_offsets.until_answered(
            lambda: group_offsets.committed_offsets(client, group), timeout_seconds
        )
    except (KafkaError, OSError) as error:
        failed = ConnectException(f"Failed to retrieve consumer group offsets for group {group}")
        failed.__cause__ = error
        return failed
    return {TopicPartition(*partition): committed for partition, committed in found.items()}
