"""The producer of transactions on a real broker: what is read, and what is not."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.structs import TopicPartition

from common.credentials.access import KafkaAccess
from common.kafka.reading import read_to_end
from common.kafka.topic_creation import ensure_topics
from common.kafka.topics import Topic
from common.kafka.transactions.producer import TransactionalProducer, TransactionError
from common.kafka.transactions.rules import Member, Outcome, Producer
from common.processing.outbox import Outgoing
from millstream.testing import LocalBroker

pytestmark = pytest.mark.slow

INPUT = TopicPartition("in", 0)
TIMEOUT_MS = 20_000
"""Longer than any test: nothing is aborted by the coordinator's clock."""


class DiedError(Exception):
    pass


class DyingProducer(TransactionalProducer):
    """Writes everything and never ends it."""

    async def _end(self, producer: Producer, *, is_committed: bool) -> int:
        raise DiedError


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    with LocalBroker() as running:
        topics = [Topic(name) for name in ("in", "one", "two", "many")]
        asyncio.run(
            ensure_topics(KafkaAccess(running.bootstrap_servers), topics, replication_factor=1)
        )
        yield running.bootstrap_servers


@asynccontextmanager
async def started(
    broker: str,
    application: str,
    kind: type[TransactionalProducer] = TransactionalProducer,
    protocol: int = 2,
) -> AsyncIterator[TransactionalProducer]:
    producer = kind(KafkaAccess(broker), application, timeout_ms=TIMEOUT_MS)
    await producer.start(["one", "two", "many"])
    assert producer._protocol == 2
    producer._protocol = protocol
    try:
        await producer.take([0, 1])
        yield producer
    finally:
        await producer.stop()


@asynccontextmanager
async def membership(broker: str, group: str) -> AsyncIterator[Member]:
    consumer = AIOKafkaConsumer(
        "in", bootstrap_servers=broker, group_id=group, enable_auto_commit=False
    )
    await consumer.start()
    try:
        async with asyncio.timeout(20):
            while not consumer.assignment():
                await consumer.getmany(timeout_ms=50)
        coordinator = consumer._coordinator
        yield Member(group, coordinator.generation, coordinator.member_id)
    finally:
        await consumer.stop()


async def read(broker: str, topic: str) -> list[bytes]:
    """Return the committed records, partition by partition, once no transaction is open."""
    values: list[bytes] = []

    async def replay(record: object) -> None:
        values.append(record.value)  # type: ignore[attr-defined]

    await read_to_end(
        KafkaAccess(broker), [TopicPartition(topic, number) for number in range(6)], replay
    )
    return values


def record(topic: str, value: bytes, partition: int = 0) -> Outgoing:
    return Outgoing(topic, b"k", value, [("h", b"x")], partition)


@pytest.mark.parametrize("protocol", [1, 2])
def test_batches_and_their_offsets_are_there_once_and_in_order(broker: str, protocol: int) -> None:
    async def check() -> None:
        group, topic = f"copier-{protocol}", ("one", "two")[protocol - 1]
        async with (
            membership(broker, group) as member,
            started(broker, group, protocol=protocol) as producer,
        ):
            for number in range(5):
                values = [b"%d-%d" % (number, place) for place in range(3)]
                records = [record(topic, v, p) for p in (0, 5) for v in values]
                await producer.commit(records, {INPUT: number + 1}, member)
            assert await producer.committed(group, [INPUT]) == {INPUT: 5}
        expected = [b"%d-%d" % (number, place) for number in range(5) for place in range(3)]
        assert await read(broker, topic) == [*expected, *expected]

    asyncio.run(check())


def test_large_batches_of_a_partition_arrive_in_order(broker: str) -> None:
    async def check() -> None:
        async with (
            membership(broker, "large") as member,
            started(broker, "large") as producer,
        ):
            values = [b"%d" % number * 400_000 for number in range(5)]
            await producer.commit([record("many", v, 3) for v in values], {}, member)
            assert await read(broker, "many") == values

    asyncio.run(check())


def test_member_of_an_old_generation_is_refused_and_leaves_nothing(broker: str) -> None:
    async def check() -> None:
        async with (
            membership(broker, "fenced") as member,
            started(broker, "fenced") as producer,
        ):
            await producer.commit([record("one", b"good", 1)], {INPUT: 1}, member)
            old = member._replace(generation_id=member.generation_id - 1)
            with pytest.raises(TransactionError) as raised:
                await producer.commit([record("one", b"zombie", 1)], {INPUT: 7}, old)
            assert raised.value.outcome is Outcome.GENERATION_OVER
            await producer.take([0, 1])
            await producer.commit([record("one", b"after", 1)], {INPUT: 2}, member)
            assert await producer.committed("fenced", [INPUT]) == {INPUT: 2}
        values = await read(broker, "one")
        assert b"zombie" not in values
        assert values.index(b"good") < values.index(b"after")

    asyncio.run(check())


@pytest.mark.parametrize("protocol", [1, 2])
def test_successor_ends_at_once_what_a_dead_producer_left_open(broker: str, protocol: int) -> None:
    async def check() -> None:
        group = f"heir-{protocol}"
        async with membership(broker, group) as member:
            async with started(broker, group, DyingProducer, protocol) as dying:
                with pytest.raises(DiedError):
                    await dying.commit([record("two", b"open", 2)], {INPUT: 9}, member)
            async with asyncio.timeout(TIMEOUT_MS / 2000):
                async with started(broker, group, protocol=protocol) as heir:
                    assert await heir.committed(group, [INPUT]) == {}
                    await heir.commit([record("two", b"heir", 2)], {INPUT: 1}, member)
                values = await read(broker, "two")
        assert b"heir" in values
        assert b"open" not in values

    asyncio.run(check())


def test_replaced_producer_is_fenced_by_whoever_took_its_partition(broker: str) -> None:
    async def check() -> None:
        async with (
            membership(broker, "two-of-them") as member,
            started(broker, "two-of-them") as first,
            started(broker, "two-of-them") as second,
        ):
            with pytest.raises(TransactionError) as raised:
                await first.commit([record("one", b"first", 4)], {INPUT: 1}, member)
            assert raised.value.outcome is Outcome.FENCED
            await second.commit([record("one", b"second", 4)], {INPUT: 1}, member)
        assert b"first" not in await read(broker, "one")

    asyncio.run(check())


def test_state_is_read_back_to_the_end_of_what_is_still_open(broker: str) -> None:
    async def check() -> None:
        async with membership(broker, "reader") as member:
            async with started(broker, "reader", DyingProducer) as dying:
                with pytest.raises(DiedError):
                    await dying.commit([record("many", b"open", 4)], {INPUT: 9}, member)
            reading = asyncio.ensure_future(read(broker, "many"))
            done, _ = await asyncio.wait({reading}, timeout=0.3)
            assert not done
            async with started(broker, "reader"), asyncio.timeout(TIMEOUT_MS / 2000):
                assert b"open" not in await reading

    asyncio.run(check())
