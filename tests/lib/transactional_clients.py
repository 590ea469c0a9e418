"""Transactions with unmodified clients: each implements the same plan with its own API."""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from typing import NamedTuple

import aiokafka
import aiokafka.errors
import confluent_kafka
import kafka
import kafka.errors
from kafka.structs import OffsetAndMetadata, TopicPartition

GIVE_UP_SECONDS = 60
SESSION_MS, HEARTBEAT_MS = 3_000, 500
"""The session timeout of copiers: the replacement of a killed one waits for it."""
SHORT_SESSIONS = {"group_min_session_timeout_ms": SESSION_MS}
"""Settings of brokers that allow such a short session."""


class Planned(NamedTuple):
    """One transaction: the records for each partition, and its end."""

    values: tuple[tuple[int, bytes], ...]
    is_commit: bool


Transact = Callable[[str, str, str, Sequence[Planned]], None]
IsDone = Callable[[int], bool]
"""Gets the number of copied records; returns whether all are copied."""
Copy = Callable[[str, str, str, IsDone], None]


def with_confluent_kafka(
    bootstrap: str, transactional_id: str, topic: str, plan: Sequence[Planned]
) -> None:
    """Run a plan with librdkafka."""
    producer = confluent_producer(bootstrap, transactional_id)
    for planned in plan:
        producer.begin_transaction()
        for partition, value in planned.values:
            producer.produce(topic, value, partition=partition)
        # Without a flush librdkafka drops records that it has not sent yet.
        producer.flush(GIVE_UP_SECONDS)
        if planned.is_commit:
            producer.commit_transaction(GIVE_UP_SECONDS)
        else:
            producer.abort_transaction(GIVE_UP_SECONDS)


def confluent_producer(
    bootstrap: str, transactional_id: str, **settings: object
) -> confluent_kafka.Producer:
    """Return an initialized producer."""
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "linger.ms": 0,
            "log_level": 2,
            **settings,
        }
    )
    producer.init_transactions(GIVE_UP_SECONDS)
    return producer


def with_kafka_python(
    bootstrap: str, transactional_id: str, topic: str, plan: Sequence[Planned]
) -> None:
    """Run a plan with kafka-python."""
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, transactional_id=transactional_id)
    producer.init_transactions()
    for planned in plan:
        producer.begin_transaction()
        for partition, value in planned.values:
            producer.send(topic, value, partition=partition).get(GIVE_UP_SECONDS)
        if planned.is_commit:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    producer.close()


def with_aiokafka(
    bootstrap: str, transactional_id: str, topic: str, plan: Sequence[Planned]
) -> None:
    """Run a plan with aiokafka."""

    async def run() -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap, transactional_id=transactional_id
        )
        await producer.start()
        for planned in plan:
            await producer.begin_transaction()
            for partition, value in planned.values:
                await producer.send_and_wait(topic, value, partition=partition)
            if planned.is_commit:
                await producer.commit_transaction()
            else:
                await producer.abort_transaction()
        await producer.stop()

    asyncio.run(run())


TRANSACT: dict[str, Transact] = {
    "confluent-kafka": with_confluent_kafka,
    "kafka-python": with_kafka_python,
    "aiokafka": with_aiokafka,
}


def read(bootstrap: str, topic: str, count: int, isolation_level: str) -> list[bytes]:
    """Read from the beginning until so many records, and the end of every partition."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"reader-of-{topic}",
            "isolation.level": isolation_level,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "log_level": 2,
        }
    )
    partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
    consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in partitions])
    found: list[bytes] = []
    ended: set[int] = set()
    deadline = time.monotonic() + GIVE_UP_SECONDS
    while time.monotonic() < deadline:
        message = consumer.poll(0.1)
        if message is None:
            continue
        if message.error() is None:
            found.append(message.value())
        elif message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:
            ended.add(message.partition())
        if len(found) >= count and len(ended) == len(partitions):
            break
    consumer.close()
    return found


def copy_with_confluent_kafka(bootstrap: str, source: str, sink: str, is_done: IsDone) -> None:
    """Copy exactly once: records and offsets in one transaction, every other one aborted first."""
    producer = confluent_producer(bootstrap, f"copier-to-{sink}")
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"copy-to-{sink}",
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "log_level": 2,
        }
    )
    consumer.subscribe([source])
    try:
        copy_and_abort_in_turn(producer, consumer, sink, is_done)
    finally:
        consumer.close()


def copy_and_abort_in_turn(
    producer: confluent_kafka.Producer,
    consumer: confluent_kafka.Consumer,
    sink: str,
    is_done: IsDone,
) -> None:
    """Copy with librdkafka."""
    copied, is_abort = 0, True
    while not is_done(copied):
        messages = [one for one in consumer.consume(20, 0.2) if one.error() is None]
        if not messages:
            continue
        producer.begin_transaction()
        for message in messages:
            producer.produce(sink, message.value(), partition=message.partition())
        positions = consumer.position(consumer.assignment())
        group = consumer.consumer_group_metadata()
        producer.send_offsets_to_transaction(positions, group, GIVE_UP_SECONDS)
        producer.flush(GIVE_UP_SECONDS)
        if is_abort:
            producer.abort_transaction(GIVE_UP_SECONDS)
            for position in consumer.committed(consumer.assignment(), timeout=GIVE_UP_SECONDS):
                position.offset = max(position.offset, 0)
                consumer.seek(position)
        else:
            producer.commit_transaction(GIVE_UP_SECONDS)
            copied += len(messages)
        is_abort = not is_abort


def copy_with_kafka_python(bootstrap: str, source: str, sink: str, is_done: IsDone) -> None:
    """Copy exactly once with kafka-python."""
    producer = kafka.KafkaProducer(
        bootstrap_servers=bootstrap, transactional_id=f"copier-to-{sink}"
    )
    producer.init_transactions()
    consumer = kafka.KafkaConsumer(
        source,
        bootstrap_servers=bootstrap,
        group_id=f"copy-to-{sink}",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
    )
    try:
        copied = 0
        while not is_done(copied):
            polled = consumer.poll(timeout_ms=1_000, max_records=20)
            if not polled:
                continue
            producer.begin_transaction()
            offsets = {}
            for partition, records in polled.items():
                for record in records:
                    producer.send(sink, record.value, partition=partition.partition)
                offsets[TopicPartition(source, partition.partition)] = OffsetAndMetadata(
                    records[-1].offset + 1, "", -1
                )
                copied += len(records)
            producer.send_offsets_to_transaction(offsets, f"copy-to-{sink}")
            producer.commit_transaction()
    finally:
        consumer.close()
        producer.close()


def copy_with_aiokafka(bootstrap: str, source: str, sink: str, is_done: IsDone) -> None:
    """Copy exactly once with aiokafka."""

    async def run() -> None:
        group = f"copy-to-{sink}"
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap, transactional_id=f"copier-to-{sink}"
        )
        consumer = aiokafka.AIOKafkaConsumer(
            source,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
        )
        try:
            await producer.start()
            await consumer.start()
            copied = 0
            while not is_done(copied):
                polled = await consumer.getmany(timeout_ms=1_000, max_records=20)
                if not polled:
                    continue
                async with producer.transaction():
                    for partition, records in polled.items():
                        for record in records:
                            await producer.send(sink, record.value, partition=partition.partition)
                        copied += len(records)
                    await producer.send_offsets_to_transaction(
                        {
                            partition: records[-1].offset + 1
                            for partition, records in polled.items()
                        },
                        group,
                    )
        finally:
            await consumer.stop()
            await producer.stop()

    asyncio.run(run())


COPY: dict[str, Copy] = {
    "confluent-kafka": copy_with_confluent_kafka,
    "kafka-python": copy_with_kafka_python,
    "aiokafka": copy_with_aiokafka,
}


REFUSED = (
    confluent_kafka.KafkaException,
    kafka.errors.KafkaError,
    aiokafka.errors.KafkaError,
)
"""The errors that a client may get while brokers die."""


def keep_copying(
    name: str, bootstrap: str, source: str, sink: str, copied: "Synchronized[int]", end: Event
) -> None:
    """Copy until stopped, in a separate process; a refused copier starts again.

    The new copier has the same transactional id, and fences the old one. The copied records are
    counted in `copied`, for the other processes.
    """
    while not end.is_set():

        def note(count: int, before: int = copied.value) -> bool:
            copied.value = before + count
            return end.is_set()

        with suppress(*REFUSED):
            COPY[name](bootstrap, source, sink, note)
