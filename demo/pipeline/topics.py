"""The topics of the demo: publishes catalogue and customers, and cleans a cluster of the user.

Data of an earlier run would change the results of the next one: the same customers would already
have spent money, and stock would be reserved. So in a cluster of the user, the pipeline's topics
are deleted first and the offsets of its groups are reset. Other topics and the registered schemas
are not changed.
"""

import asyncio
import json
import secrets
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import NamedTuple

from aiokafka import AIOKafkaProducer, TopicPartition

from common.credentials.access import KafkaAccess
from common.kafka.admin.topic_requests import topic_deletion
from common.kafka.admin.topics import check_deleted
from common.kafka.client.cluster import KafkaClient
from common.kafka.consumer import METADATA_MAX_AGE_MS, Consumer
from common.kafka.errors import KafkaError
from common.kafka.group_offsets import commit_offsets, until_answered
from common.kafka.protocol.messages.delete_topics import DeleteTopicsResponse
from common.kafka.protocol.messages.metadata import MetadataResponse
from demo.pipeline.registry import RegistryReader, encoder
from millstream.launch import program_command, program_environment

_DECLARING = ("services", "streams", "spark_analytics")
"""The programs that declare their groups and topics."""
SINK_GROUPS = ("connect-orders-to-parquet", "connect-orders-to-elasticsearch")
"""The groups of the demo's own connectors (`demo/pipeline/connectors/`)."""
_DELETE_TIMEOUT_MS = 30_000
_KEYS_SECONDS = 60.0
_POLL_SECONDS = 0.1
_SEND_BATCH = 1000

_Record = tuple[str, str, bytes]
"""Topic, key, value."""


class Pipeline(NamedTuple):
    """The groups and topics of the pipeline, without dead letters."""

    groups: tuple[str, ...]
    topics: tuple[str, ...]


@cache
def pipeline() -> Pipeline:
    """Return the groups and topics that the programs declare; the first call takes about 1 s."""
    command = program_command("common.processing.declared", *_DECLARING)
    environment = program_environment()
    told = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    declared = json.loads(told.stdout)
    groups = [one["group"] for one in declared if one["group"]]
    topics = dict.fromkeys(topic for one in declared for topic in one["topics"])
    return Pipeline(tuple(groups), tuple(topics))


class TopicsInUseError(Exception):
    """Another pipeline is running on this cluster."""


async def delete_pipeline_topics(kafka: KafkaAccess) -> list[str]:
    """Delete the pipeline's topics with their records; return the names of the deleted ones."""
    client = KafkaClient(kafka.bootstrap_servers, kafka.security)
    try:
        groups, topics = await asyncio.to_thread(pipeline)
        dead_letters = [f"{topic}.dead-letter" for topic in topics]
        cluster, partitions = await _partitions(client, {*topics, *dead_letters})
        for group in (*groups, *SINK_GROUPS):
            await _set_back(client, group, partitions)
        existing = sorted({topic for topic, _ in partitions})
        if existing:
            request = topic_deletion(existing, _DELETE_TIMEOUT_MS)
            check_deleted(await client.ask(request, DeleteTopicsResponse, cluster.controller_id))
            async with asyncio.timeout(_DELETE_TIMEOUT_MS / 1000):
                # The deletion continues after the answer; only the list of topics shows its end.
                while (await _partitions(client, existing))[1]:  # noqa: ASYNC110
                    await asyncio.sleep(_POLL_SECONDS)
        return existing
    finally:
        await client.close()


async def pipeline_partitions(kafka: KafkaAccess) -> list[TopicPartition]:
    """Return the partitions of the pipeline's existing topics."""
    client = KafkaClient(kafka.bootstrap_servers, kafka.security)
    try:
        topics = (await asyncio.to_thread(pipeline)).topics
        return (await _partitions(client, topics))[1]
    finally:
        await client.close()


async def _partitions(
    client: KafkaClient, topics: Iterable[str]
) -> tuple[MetadataResponse, list[TopicPartition]]:
    """Return the cluster, and the partitions of those topics that exist."""
    names = set(topics)
    found = await client.metadata(None)
    return found, [
        TopicPartition(topic.name, partition.partition_index)
        for topic in found.topics
        if topic.name in names
        for partition in topic.partitions
    ]


async def _set_back(client: KafkaClient, group: str, partitions: list[TopicPartition]) -> None:
    """Commit offset 0 for all partitions, since offsets may survive the deletion of a topic.

    Kafka accepts this commit only for a group without members, so a running pipeline is noticed.
    """
    if not partitions:
        return
    offsets = dict.fromkeys(partitions, 0)
    try:
        await until_answered(
            lambda: commit_offsets(client, group, offsets), _DELETE_TIMEOUT_MS / 1000
        )
    except KafkaError as error:
        raise TopicsInUseError(
            f"group {group} cannot be reset, maybe a pipeline runs on this cluster: {error!r}"
        ) from error


async def publish_catalogue(
    kafka: KafkaAccess,
    registry: RegistryReader,
    catalogue: Mapping[str, tuple[str, int]],
) -> None:
    """Publish every product and its stock; return when all records are acknowledged."""
    product = encoder(*await registry.latest("products-value"))
    stock_level = encoder(*await registry.latest("warehouse-inventory-value"))
    now = datetime.now(UTC)

    def records() -> Iterator[_Record]:
        for product_id, (description, stock) in catalogue.items():
            about = {"product_id": product_id, "updated_at": now}
            yield "products", product_id, product({**about, "description": description})
            yield "warehouse-inventory", product_id, stock_level({**about, "quantity": stock})

    await _publish(kafka, records())


async def publish_customers(
    kafka: KafkaAccess, registry: RegistryReader, customer_ids: Iterable[str]
) -> None:
    """Publish customers with their names and addresses; return when all are acknowledged."""
    customer = encoder(*await registry.latest("customers-value"))
    now = datetime.now(UTC)

    def records() -> Iterator[_Record]:
        for customer_id in sorted(set(customer_ids)):
            about = {
                "customer_id": customer_id,
                "name": f"Customer {customer_id}",
                "email": f"{customer_id}@customers.example",
                "country": None,
                "level": None,
                "updated_at": now,
            }
            yield "customers", customer_id, customer(about)

    await _publish(kafka, records())


async def wait_for_keys(kafka: KafkaAccess, wanted: Mapping[str, Iterable[str]]) -> None:
    """Wait until every topic has a record of each of its keys. Raise TimeoutError."""
    missing = {topic: {key.encode() for key in keys} for topic, keys in wanted.items()}
    consumer = Consumer(
        *missing,
        **kafka.aiokafka(),
        auto_offset_reset="earliest",
        metadata_max_age_ms=METADATA_MAX_AGE_MS,
    )
    await consumer.start()
    try:
        async with asyncio.timeout(_KEYS_SECONDS):
            while any(missing.values()):
                for partition, records in (await consumer.getmany(timeout_ms=200)).items():
                    missing[partition.topic].difference_update(record.key for record in records)
    finally:
        await consumer.stop()


async def _publish(kafka: KafkaAccess, records: Iterable[_Record]) -> None:
    producer = AIOKafkaProducer(**kafka.aiokafka(), acks="all", enable_idempotence=True)
    await producer.start()
    try:
        pending = []
        for topic, key, value in records:
            traceparent = f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-01"
            headers = [("traceparent", traceparent.encode())]
            pending.append(await producer.send(topic, value, key.encode(), headers=headers))
            if len(pending) >= _SEND_BATCH:
                await asyncio.gather(*pending)
                pending.clear()
        await asyncio.gather(*pending)
    finally:
        await producer.stop()
