"""Topics, for the demo: the catalogue goes in, and a cluster used before is made clean.

What an earlier run left in a cluster would change the outcome of the next: the same customers
replayed would have spent already, and stock would be reserved. So with a cluster that is not
the demo's own, the pipeline's topics are deleted first and its groups set back to the start.
Topics that are not the pipeline's are left alone, and so are the registered schemas.
"""

import asyncio
import secrets
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from millrace.demo.registry import RegistryReader, encoder

GROUPS = (
    "orders",
    "fraud",
    "inventory",
    "order-details",
    "aggregator",
    "payments",
    "millrace-streams",
)
TOPICS = (
    "orders",
    "order-validations",
    "order-decisions",
    "order-commands",
    "payments",
    "customers",
    "products",
    "warehouse-inventory",
    "fraud-orders-by-customer-repartition",
    "fraud-customers-changelog",
    "inventory-ledger-changelog",
    "aggregator-cases-changelog",
    "payments-orders-changelog",
    "order-analytics",
    "order-alerts",
    "orders-bronze",
    "orders-silver",
    "orders-gold",
    "orders-platinum",
    "streams-orders-by-customer",
    "streams-sales-by-product",
    "millrace-streams-order-versions-changelog",
    "millrace-streams-customers-changelog",
    "millrace-streams-order-bursts-changelog",
    "millrace-streams-product-sales-changelog",
    "millrace-streams-validation-latency-changelog",
)
_DELETE_SECONDS = 30.0
_POLL_SECONDS = 0.1
_SEND_BATCH = 1000


class TopicsInUseError(Exception):
    """Another pipeline is working on this cluster."""


async def delete_pipeline_topics(bootstrap_servers: str) -> list[str]:
    """Delete the pipeline's topics with all they hold; return the names of those there were."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap_servers)
    await admin.start()
    try:
        dead_letters = [f"{topic}.dead-letter" for topic in TOPICS]
        existing = set(await admin.list_topics()).intersection([*TOPICS, *dead_letters])
        partitions = await _partitions(admin, existing)
        for group in GROUPS:
            await _set_back(bootstrap_servers, group, partitions)
        if existing:
            await admin.delete_topics(sorted(existing))
            async with asyncio.timeout(_DELETE_SECONDS):
                # Deletion goes on after the answer; only the list of topics tells when it is done.
                while existing.intersection(await admin.list_topics()):  # noqa: ASYNC110
                    await asyncio.sleep(_POLL_SECONDS)
        return sorted(existing)
    finally:
        await admin.close()


async def partitions_of(bootstrap_servers: str, topics: Iterable[str]) -> list[TopicPartition]:
    """Return every partition of these topics."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap_servers)
    await admin.start()
    try:
        return await _partitions(admin, topics)
    finally:
        await admin.close()


async def _partitions(admin: AIOKafkaAdminClient, topics: Iterable[str]) -> list[TopicPartition]:
    names = sorted(topics)
    if not names:
        return []
    return [
        TopicPartition(description["topic"], partition["partition"])
        for description in await admin.describe_topics(names)
        for partition in description["partitions"]
    ]


async def _set_back(bootstrap_servers: str, group: str, partitions: list[TopicPartition]) -> None:
    """Commit offset 0 everywhere: deleting a topic need not delete what was committed for it.

    Kafka takes such a commit only for a group without members, so a pipeline at work is noticed.
    """
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap_servers, group_id=group, enable_auto_commit=False
    )
    await consumer.start()
    try:
        if partitions:
            consumer.assign(partitions)
            await consumer.commit(dict.fromkeys(partitions, 0))
    except KafkaError as error:
        raise TopicsInUseError(
            f"group {group} cannot be set back, maybe a pipeline runs on this cluster: {error!r}"
        ) from error
    finally:
        await consumer.stop()


async def publish_catalogue(
    bootstrap_servers: str,
    registry: RegistryReader,
    catalogue: Mapping[str, tuple[str, int]],
) -> None:
    """Publish every product and its stock, and return when all of it is acknowledged."""
    product = encoder(*await registry.latest("products-value"))
    stock_level = encoder(*await registry.latest("warehouse-inventory-value"))
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap_servers, acks="all", enable_idempotence=True
    )
    await producer.start()
    try:
        now = datetime.now(UTC)
        pending = []
        for product_id, (description, stock) in catalogue.items():
            about = {"product_id": product_id, "updated_at": now}
            for topic, encode, event in (
                ("products", product, {**about, "description": description}),
                ("warehouse-inventory", stock_level, {**about, "quantity": stock}),
            ):
                pending.append(await _send(producer, topic, product_id, encode, event))
            if len(pending) >= _SEND_BATCH:
                await asyncio.gather(*pending)
                pending.clear()
        await asyncio.gather(*pending)
    finally:
        await producer.stop()


async def _send(
    producer: AIOKafkaProducer,
    topic: str,
    product_id: str,
    encode: Callable[[dict[str, Any]], bytes],
    event: dict[str, Any],
) -> Any:
    traceparent = f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-01"
    return await producer.send(
        topic,
        encode(event),
        product_id.encode(),
        headers=[("traceparent", traceparent.encode())],
    )
