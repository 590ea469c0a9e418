"""The inbox: records are taken from the consumer at once, and given out as they are asked for."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiokafka.errors import KafkaError
from aiokafka.structs import ConsumerRecord, TopicPartition

from common.kafka import inbox
from common.kafka.inbox import Inbox
from tests.lib.pipeline_bus import record

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


class FakeConsumer:
    """Gives what is put, or fails."""

    def __init__(self) -> None:
        self.fetched: asyncio.Queue[dict[TopicPartition, list[ConsumerRecord]] | Exception]
        self.fetched = asyncio.Queue()
        self.positions = {A: 0, B: 0}
        self.is_stopped = False

    async def start(self) -> None: ...

    async def stop(self) -> None:
        self.is_stopped = True

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self.positions[partition] = offset

    async def position(self, partition: TopicPartition) -> int:
        return self.positions[partition]

    async def getmany(self, *, timeout_ms: int) -> dict[TopicPartition, list[ConsumerRecord]]:
        found = await self.fetched.get()
        if isinstance(found, Exception):
            raise found
        for partition, records in found.items():
            self.positions[partition] = records[-1].offset + 1
        return found

    def put(self, partition: TopicPartition, *offsets: int) -> None:
        records = [record("t", partition.partition, n, b"k", b"%d" % n) for n in offsets]
        self.fetched.put_nowait({partition: records})


def with_inbox(
    check: Callable[[Inbox, FakeConsumer], Awaitable[None]], interval_ms: int = 0
) -> None:
    async def run() -> None:
        consumer = FakeConsumer()
        taken = Inbox(consumer, interval_ms)
        await taken.start()
        await check(taken, consumer)
        await taken.stop()
        assert consumer.is_stopped

    asyncio.run(run())


def offsets_of(found: dict[TopicPartition, list[Any]]) -> dict[TopicPartition, list[int]]:
    return {partition: [one.offset for one in records] for partition, records in found.items()}


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_records_are_taken_before_anybody_asks_and_positions_are_of_what_was_given() -> None:
    async def check(inbox: Inbox, consumer: FakeConsumer) -> None:
        consumer.put(A, 0, 1, 2)
        consumer.put(B, 0)
        await settle()
        assert consumer.fetched.empty()
        assert (await inbox.position(A), await inbox.position(B)) == (0, 0)
        assert offsets_of(await inbox.getmany(timeout_ms=0, max_records=2)) == {A: [0, 1]}
        assert await inbox.position(A) == 2
        # A partition that was served comes after the others.
        assert offsets_of(await inbox.getmany(timeout_ms=0, max_records=1)) == {B: [0]}
        assert offsets_of(await inbox.getmany(timeout_ms=0)) == {A: [2]}
        assert await inbox.position(A) == 3
        assert await inbox.getmany(timeout_ms=1) == {}

    with_inbox(check)


def test_what_comes_within_the_interval_is_left_to_the_consumer() -> None:
    async def check(inbox: Inbox, consumer: FakeConsumer) -> None:
        consumer.put(A, 0)
        await settle()
        consumer.put(A, 1)
        await settle()
        assert consumer.fetched.qsize() == 1
        assert offsets_of(await inbox.getmany(timeout_ms=0)) == {A: [0]}

    with_inbox(check, interval_ms=3_600_000)


def test_who_waits_for_a_partition_gets_it_as_soon_as_it_comes_and_leaves_the_others() -> None:
    async def check(inbox: Inbox, consumer: FakeConsumer) -> None:
        consumer.put(A, 0)
        waiting = asyncio.ensure_future(inbox.getmany(B, timeout_ms=10_000))
        await settle()
        assert not waiting.done()
        consumer.put(B, 0)
        assert offsets_of(await waiting) == {B: [0]}
        assert offsets_of(await inbox.getmany(timeout_ms=0)) == {A: [0]}

    with_inbox(check)


def test_a_full_inbox_takes_no_more_but_for_who_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "_RECORDS_MAX", 2)

    async def check(inbox: Inbox, consumer: FakeConsumer) -> None:
        consumer.put(A, 0, 1)
        consumer.put(A, 2)
        consumer.put(B, 0)
        await settle()
        assert consumer.fetched.qsize() == 2
        assert offsets_of(await inbox.getmany(B, timeout_ms=10_000)) == {B: [0]}
        assert offsets_of(await inbox.getmany(timeout_ms=0)) == {A: [0, 1]}
        assert offsets_of(await inbox.getmany(timeout_ms=0)) == {A: [2]}

    with_inbox(check)


def test_seek_and_forget_drop_what_waits() -> None:
    async def check(inbox: Inbox, consumer: FakeConsumer) -> None:
        consumer.put(A, 0, 1)
        consumer.put(B, 0)
        await settle()
        inbox.seek(A, 7)
        assert await inbox.position(A) == 7
        inbox.forget()
        assert await inbox.getmany(timeout_ms=1) == {}
        assert await inbox.position(B) == 1

    with_inbox(check)


def test_a_failure_is_told_to_who_asks_after_what_came_before_it() -> None:
    async def check(inbox: Inbox, consumer: FakeConsumer) -> None:
        consumer.put(A, 0)
        consumer.fetched.put_nowait(KafkaError())
        await settle()
        assert offsets_of(await inbox.getmany(timeout_ms=0)) == {A: [0]}
        with pytest.raises(KafkaError):
            await inbox.getmany(timeout_ms=10_000)

    with_inbox(check)
