"""Micro-batches written to a real broker: together, in order, and never by who was replaced."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from common.credentials.access import KafkaAccess
from common.kafka.transactions.producer import TransactionalProducer
from common.kafka.transactions.rules import Member
from millstream.testing import LocalBroker
from streams.around_faust.log_reader import LogReader
from streams.around_faust.positions import TopicPartition
from streams.around_faust.writer import Changes, SupersededError, WriteFailedError, Writer
from streams.micro_batch import Message

pytestmark = [pytest.mark.interop]

GROUP = "streams-test"
INPUT = TopicPartition("in", 0)
CHANGELOG = "changelog"
LARGE = 200_000


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    with LocalBroker() as running:
        yield running.bootstrap_servers


@pytest.fixture
def topics(broker: str) -> None:
    """Make the topics anew."""

    async def run() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=broker)
        await admin.start()
        try:
            await admin.delete_topics([INPUT.topic, CHANGELOG])
            await admin.create_topics([NewTopic(one, 1, 1) for one in (INPUT.topic, CHANGELOG)])
        finally:
            await admin.close()

    asyncio.run(run())


@asynccontextmanager
async def writer_of(broker: str) -> AsyncIterator[Writer]:
    writer = Writer(KafkaAccess(broker), GROUP, timeout_ms=20_000)
    await writer.start([CHANGELOG])
    try:
        yield writer
    finally:
        await writer.close()


@asynccontextmanager
async def membership(broker: str) -> AsyncIterator[Member]:
    """Join the group; whoever joined before is of an earlier generation from then on."""
    consumer = AIOKafkaConsumer(
        INPUT.topic, bootstrap_servers=broker, group_id=GROUP, enable_auto_commit=False
    )
    await consumer.start()
    try:
        coordinator = consumer._coordinator
        async with asyncio.timeout(20):
            while coordinator.generation < 0:
                await consumer.getmany(timeout_ms=50)
        yield Member(GROUP, coordinator.generation, coordinator.member_id)
    finally:
        await consumer.stop()


def row(key: bytes, value: bytes) -> Message:
    return Message(CHANGELOG, key, value, [], 0)


async def rows(broker: str) -> dict[bytes, bytes]:
    reader = LogReader(KafkaAccess(broker))
    try:
        return (await reader.last_values(CHANGELOG, [0]))[0]
    finally:
        await reader.close()


async def committed(broker: str) -> int | None:
    consumer = AIOKafkaConsumer(bootstrap_servers=broker, group_id=GROUP, enable_auto_commit=False)
    await consumer.start()
    try:
        return await consumer.committed(KafkaPartition(*INPUT))
    finally:
        await consumer.stop()


def counting(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note how many records each transaction has."""
    sizes: list[int] = []
    commit: Callable[..., Awaitable[None]] = TransactionalProducer.commit

    async def counted(self: TransactionalProducer, records: list[Message], *rest: object) -> None:
        sizes.append(len(records))
        await commit(self, records, *rest)

    monkeypatch.setattr(TransactionalProducer, "commit", counted)
    return sizes


@pytest.mark.usefixtures("topics")
def test_what_comes_while_a_transaction_is_under_way_goes_into_the_next_together(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = counting(monkeypatch)

    async def run() -> None:
        async with membership(broker) as member, writer_of(broker) as writer:
            await writer.take(member, [INPUT])
            async with asyncio.TaskGroup() as group:
                for number in range(5):
                    changes = Changes([row(b"%d" % number, b"x")], {INPUT: number + 1}, member)
                    group.create_task(writer.write(changes))
            large = [row(b"large", b"%d" % number + bytes(LARGE)) for number in range(12)]
            await writer.write(Changes(large, {INPUT: 6}, member))
        assert await rows(broker) == {
            **{b"%d" % number: b"x" for number in range(5)},
            b"large": b"11" + bytes(LARGE),
        }
        assert await committed(broker) == 6

    asyncio.run(run())
    assert sizes == [1, 4, 12]


@pytest.mark.usefixtures("topics")
def test_a_worker_that_wakes_up_after_it_was_replaced_writes_no_stale_row(broker: str) -> None:
    """It was frozen between its last look at the assignment and its write."""

    async def run() -> None:
        async with writer_of(broker) as one, writer_of(broker) as two:
            async with membership(broker) as frozen:
                await one.take(frozen, [INPUT])
                await one.write(Changes([row(b"key", b"1")], {INPUT: 1}, frozen))
            async with membership(broker) as successor:
                await two.take(successor, [INPUT])
                await two.write(Changes([row(b"key", b"2")], {INPUT: 2}, successor))
                with pytest.raises((SupersededError, WriteFailedError)):
                    await one.write(Changes([row(b"key", b"stale")], {INPUT: 2}, frozen))
                assert await rows(broker) == {b"key": b"2"}
                # Not even when it takes the partition under its old name.
                await one.take(frozen, [INPUT])
                with pytest.raises(SupersededError):
                    await one.write(Changes([row(b"key", b"stale")], {INPUT: 2}, frozen))
                assert await rows(broker) == {b"key": b"2"}

    asyncio.run(run())


@pytest.mark.usefixtures("topics")
def test_after_a_failure_nothing_is_written_until_it_is_known_what_was_open(broker: str) -> None:
    async def run() -> None:
        async with membership(broker) as member, writer_of(broker) as one, writer_of(broker) as two:
            await one.take(member, [INPUT])
            await two.take(member, [INPUT])
            for error in (WriteFailedError, SupersededError):
                with pytest.raises(error):
                    await one.write(Changes([row(b"key", b"1")], {INPUT: 1}, member))
            await one.take(member, [INPUT])
            await one.write(Changes([row(b"key", b"2")], {INPUT: 1}, member))
            other = member._replace(generation_id=member.generation_id - 1)
            with pytest.raises(SupersededError):
                await one.write(Changes([row(b"key", b"other")], {INPUT: 1}, other))
        assert await rows(broker) == {b"key": b"2"}

    asyncio.run(run())
