"""Prepares the probe's topic, and sends, receives and commits until it is stopped.

A message is this process's id and a number. Each process has a group of its own, which commits what
it has received. While the cluster cannot be reached the probe goes on: what is sent then fails, and
is counted.
"""

import asyncio
import logging
import uuid
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any, Final

import aiokafka
from aiokafka.errors import KafkaError as ClientError

from common.credentials.access import KafkaAccess
from common.kafka.admin.client import AdminClient
from common.kafka.admin.groups import delete_groups, list_consumer_groups
from common.kafka.admin.reassignments import (
    ElectionType,
    alter_reassignments,
    elect_leaders,
)
from common.kafka.admin.topics import create_partitions, create_topic, find_topics
from common.kafka.client.exchange import ConnectionFailed
from common.kafka.consumer import Consumer
from common.kafka.errors import KafkaError
from common.kafka.topics import TopicPartition
from common.process.clock import now_seconds
from lag.probe.figures import Figures
from lag.probe.layout import ProbeSettings, changes
from lag.probe.tally import Tally

log = logging.getLogger("millstream.probe")

GROUP_PREFIX: Final = "millstream-probe-"
RETENTION_MS: Final = 10 * 60 * 1000
LAYOUT_SECONDS: Final = 60.0
"""How often it is checked that every broker leads a partition."""
COMMIT_SECONDS: Final = 5.0
RETRY_SECONDS: Final = 1.0


def prepare(client: AdminClient, settings: ProbeSettings) -> list[int]:
    """Give the topic a partition for each broker; return its partitions. Raises KafkaError."""
    brokers = sorted(client.nodes().nodes)
    found = find_topics(client, [settings.topic])
    replicas = {each.partition: each.replicas for each in found[0].partitions} if found else None
    wanted = changes(brokers, replicas, settings.replica_count)
    if wanted.create:
        create_topic(
            client,
            settings.topic,
            assignment=wanted.create,
            configs={"retention.ms": str(RETENTION_MS), "cleanup.policy": "delete"},
        )
        return list(range(len(wanted.create)))
    assert replicas is not None
    count = len(replicas) + len(wanted.add)
    if wanted.add:
        create_partitions(client, {settings.topic: count}, {settings.topic: wanted.add})
    if wanted.move:
        moved: dict[TopicPartition, list[int] | None] = {
            TopicPartition(settings.topic, number): target for number, target in wanted.move.items()
        }
        for place, error in alter_reassignments(client, moved).items():
            log.warning("not moved: %s-%d error=%s", *place, error)
    led_by_others = [
        TopicPartition(settings.topic, each.partition)
        for each in found[0].partitions
        if each.replicas[:1] != [each.leader_id] and each.replicas[0] in brokers
    ]
    if led_by_others:
        elect_leaders(client, ElectionType.PREFERRED, led_by_others)
    return list(range(count))


class Probe:
    """Owns the clients of one process, and the messages under way."""

    def __init__(
        self,
        access: KafkaAccess,
        admin: Callable[[], AdminClient],
        figures: Figures,
        settings: ProbeSettings,
    ) -> None:
        self._access = access
        self._admin = admin
        self._figures = figures
        self._settings = settings
        self._tally = Tally(settings.lost_seconds)
        self._id = uuid.uuid4().hex
        self._partitions: list[int] = []

    async def run(self) -> None:
        """Probe until cancelled; begin anew after a failure."""
        while True:
            try:
                await self._run()
            except* (KafkaError, ConnectionFailed, ClientError, OSError) as errors:
                log.warning("the probe begins anew: %r", errors.exceptions)
            await asyncio.sleep(RETRY_SECONDS)

    async def _run(self) -> None:
        await self._lay_out()
        options = self._access.aiokafka()
        async with AsyncExitStack() as stack:
            producer = aiokafka.AIOKafkaProducer(
                **options,
                acks="all",
                enable_idempotence=False,
                request_timeout_ms=round(self._settings.lost_seconds * 1000),
                metadata_max_age_ms=10_000,
            )
            stack.push_async_callback(producer.stop)
            await producer.start()
            consumer = Consumer(
                **options,
                group_id=f"{GROUP_PREFIX}{self._id}",
                enable_auto_commit=False,
                auto_offset_reset="latest",
                fetch_max_wait_ms=500,
                metadata_max_age_ms=10_000,
            )
            stack.push_async_callback(consumer.stop)
            await consumer.start()
            await self._assign(consumer)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._send(producer, tasks))
                tasks.create_task(self._receive(consumer))
                tasks.create_task(self._commit(consumer))
                tasks.create_task(self._keep_laid_out(consumer))

    async def _lay_out(self) -> None:
        def prepare_topic() -> list[int]:
            with self._admin() as client:
                forget_old_groups(client)
                return prepare(client, self._settings)

        self._partitions = await asyncio.to_thread(prepare_topic)

    async def _assign(self, consumer: Consumer) -> None:
        topic = self._settings.topic
        places = [aiokafka.TopicPartition(topic, number) for number in self._partitions]
        consumer.assign(places)
        await consumer.seek_to_end(*places)

    async def _keep_laid_out(self, consumer: Consumer) -> None:
        while True:
            await asyncio.sleep(LAYOUT_SECONDS)
            before = self._partitions
            try:
                await self._lay_out()
            except (KafkaError, ConnectionFailed) as error:
                log.warning("the topic cannot be looked at: %s", error)
            if self._partitions != before:
                await self._assign(consumer)

    async def _send(self, producer: aiokafka.AIOKafkaProducer, tasks: asyncio.TaskGroup) -> None:
        while True:
            for partition in self._partitions:
                tasks.create_task(self._send_one(producer, partition))
            for partition in self._tally.take_lost(now_seconds()):
                self._figures.lost.labels(partition).inc()
            self._figures.under_way.set(len(self._tally))
            await asyncio.sleep(self._settings.interval_seconds)

    async def _send_one(self, producer: aiokafka.AIOKafkaProducer, partition: int) -> None:
        began = now_seconds()
        number = self._tally.send(partition, began)
        self._figures.produced.labels(partition).inc()
        content = f"{self._id} {number}".encode()
        try:
            await producer.send_and_wait(self._settings.topic, content, partition=partition)
        except ClientError as error:
            self._tally.fail(number)
            self._figures.failed.labels(partition).inc()
            log.warning("not acknowledged: partition=%d error=%r", partition, error)
            return
        self._figures.produce_seconds.labels(partition).observe(now_seconds() - began)

    async def _receive(self, consumer: Consumer) -> None:
        async for record in consumer:
            back = self._tally.receive(self._number(record), now_seconds())
            if back is not None:
                partition, seconds = back
                self._figures.received.labels(partition).inc()
                self._figures.roundtrip_seconds.labels(partition).observe(seconds)

    def _number(self, record: Any) -> int:
        """Return the number of a message of this process; -1 for any other."""
        sender, _, number = (record.value or b"").partition(b" ")
        is_own = sender == self._id.encode() and number.isdigit() and len(number) < 19
        return int(number) if is_own else -1

    async def _commit(self, consumer: Consumer) -> None:
        while True:
            await asyncio.sleep(COMMIT_SECONDS)
            began = now_seconds()
            try:
                await consumer.commit()
            except ClientError as error:
                self._figures.failed_commits.inc()
                log.warning("not committed: %r", error)
                continue
            self._figures.commits.inc()
            self._figures.commit_seconds.observe(now_seconds() - began)


def forget_old_groups(client: AdminClient) -> None:
    """Delete the groups of probes that have ended. That of a running one comes back as it commits.

    A group without members is all that a probe leaves; the cluster would keep it for a week.
    """
    groups = [each.group_id for each in list_consumer_groups(client)]
    delete_groups(client, [each for each in groups if each.startswith(GROUP_PREFIX)])
