"""Records that requests cause: written in transactions of their own, or never."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping

import pytest
from aiokafka.errors import KafkaError
from aiokafka.structs import TopicPartition

from common.kafka.transactions.producer import TransactionError
from common.kafka.transactions.rules import Member, Outcome
from common.processing.outbox import Outgoing
from common.processing.requests import NotAcceptedError, RequestWriter, UnsettledError

MEMBER = Member("orders", 3, "member-1")


class FakeTransactions:
    """Commits when it is let go on; notes what is committed with which offsets."""

    def __init__(self) -> None:
        self.committed: list[tuple[list[str], dict[TopicPartition, int], Member]] = []
        self.may_go_on = asyncio.Event()
        self.failure: Exception | None = None

    async def start(self, topics: Iterable[str]) -> None: ...

    async def stop(self) -> None: ...

    async def take(self, partitions: Iterable[int]) -> None: ...

    async def commit(
        self, records: Iterable[Outgoing], offsets: Mapping[TopicPartition, int], member: Member
    ) -> None:
        await self.may_go_on.wait()
        if self.failure is not None:
            raise self.failure
        keys = [(record.key or b"").decode() for record in records]
        self.committed.append((keys, dict(offsets), member))


async def position_of(partition: TopicPartition) -> int:
    return 100 + partition.partition


def record(key: str, partition: int = 0) -> Outgoing:
    return Outgoing("orders", key.encode(), b"v", [], partition)


def with_writer(check: Callable[[RequestWriter, FakeTransactions], Awaitable[None]]) -> None:
    async def run() -> None:
        transactions = FakeTransactions()
        writer = RequestWriter(transactions, "orders", position_of)  # type: ignore[arg-type]
        await writer.take([0, 1], MEMBER)
        writer.accept()
        await check(writer, transactions)
        await writer.stop()

    asyncio.run(run())


def write(writer: RequestWriter, *keys: str) -> list[asyncio.Future[None]]:
    return [asyncio.ensure_future(writer.write(record(key, n))) for n, key in enumerate(keys)]


def test_those_that_come_meanwhile_go_into_the_next_transaction_with_their_fences() -> None:
    async def check(writer: RequestWriter, transactions: FakeTransactions) -> None:
        first = write(writer, "a")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        others = write(writer, "b", "c")
        await asyncio.sleep(0)
        transactions.may_go_on.set()
        await asyncio.gather(*first, *others)
        assert transactions.committed == [
            (["a"], {TopicPartition("orders", 0): 100}, MEMBER),
            (["b", "c"], {TopicPartition("orders", n): 100 + n for n in (0, 1)}, MEMBER),
        ]

    with_writer(check)


def test_who_stops_waiting_does_not_stop_the_record() -> None:
    async def check(writer: RequestWriter, transactions: FakeTransactions) -> None:
        (impatient,) = write(writer, "a")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        impatient.cancel()
        transactions.may_go_on.set()
        await writer.settle()
        assert [keys for keys, *_ in transactions.committed] == [["a"]]

    with_writer(check)


def test_after_a_failure_nothing_is_written_any_more() -> None:
    async def check(writer: RequestWriter, transactions: FakeTransactions) -> None:
        written = write(writer, "a")
        await asyncio.sleep(0)
        written += write(writer, "b")
        transactions.failure = TransactionError(Outcome.FENCED, "test")
        transactions.may_go_on.set()
        results = await asyncio.gather(*written, return_exceptions=True)
        assert all(isinstance(result, KafkaError) for result in results)
        assert writer.failure is transactions.failure
        with pytest.raises(NotAcceptedError):
            await writer.write(record("c"))
        assert transactions.committed == []

    with_writer(check)


def test_what_is_in_the_middle_of_it_is_settled_and_what_waits_is_refused() -> None:
    async def check(writer: RequestWriter, transactions: FakeTransactions) -> None:
        (going,) = write(writer, "a")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        (waiting,) = write(writer, "b")
        await asyncio.sleep(0)
        settling = asyncio.ensure_future(writer.settle())
        await asyncio.sleep(0)
        assert not settling.done()
        transactions.may_go_on.set()
        await settling
        await going
        with pytest.raises(NotAcceptedError):
            await waiting
        with pytest.raises(NotAcceptedError):
            await writer.write(record("c"))
        assert [keys for keys, *_ in transactions.committed] == [["a"]]
        assert writer.failure is None

    with_writer(check)


def test_what_had_not_begun_is_refused_and_is_no_failure() -> None:
    async def check(writer: RequestWriter, transactions: FakeTransactions) -> None:
        (waiting,) = write(writer, "a")
        await asyncio.sleep(0)
        await writer.settle()
        with pytest.raises(NotAcceptedError):
            await waiting
        assert (writer.failure, transactions.committed) == (None, [])

    with_writer(check)


def test_nobody_waits_for_a_writer_that_is_stopped() -> None:
    async def check(writer: RequestWriter, transactions: FakeTransactions) -> None:
        (written,) = write(writer, "a")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await writer.stop()
        with pytest.raises(UnsettledError):
            await written

    with_writer(check)


def in_interval(
    monkeypatch: pytest.MonkeyPatch,
    check: Callable[[RequestWriter, FakeTransactions, asyncio.Event], Awaitable[None]],
) -> None:
    """Check a writer that has written once, and may begin again when the event is set."""

    async def run() -> None:
        transactions = FakeTransactions()
        writer = RequestWriter(transactions, "orders", position_of, 3600.0)  # type: ignore[arg-type]
        await writer.take([0, 1], MEMBER)
        writer.accept()
        is_over = asyncio.Event()

        async def wait_until_over(refused: Coroutine[None, None, bool], seconds: float) -> None:
            assert 3590 < seconds <= 3600
            waits = [asyncio.ensure_future(one) for one in (is_over.wait(), refused)]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for one in waits:
                one.cancel()
            if is_over.is_set():
                raise TimeoutError

        transactions.may_go_on.set()
        await writer.write(record("a"))
        monkeypatch.setattr(asyncio, "wait_for", wait_until_over)
        async with asyncio.timeout(60):
            await check(writer, transactions, is_over)
        await writer.stop()

    asyncio.run(run())


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_what_comes_within_the_interval_goes_out_together(monkeypatch: pytest.MonkeyPatch) -> None:
    async def check(
        writer: RequestWriter, transactions: FakeTransactions, is_over: asyncio.Event
    ) -> None:
        first = write(writer, "b")
        await turns()
        others = write(writer, "c", "d")
        await turns()
        assert [keys for keys, *_ in transactions.committed] == [["a"]]
        is_over.set()
        await asyncio.gather(*first, *others)
        assert [keys for keys, *_ in transactions.committed] == [["a"], ["b", "c", "d"]]

    in_interval(monkeypatch, check)


def test_what_is_refused_waits_for_no_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    async def check(
        writer: RequestWriter, transactions: FakeTransactions, is_over: asyncio.Event
    ) -> None:
        (waiting,) = write(writer, "b")
        await turns()
        assert not waiting.done()
        await writer.settle()
        with pytest.raises(NotAcceptedError):
            await waiting
        assert [keys for keys, *_ in transactions.committed] == [["a"]]
        assert writer.failure is None

    in_interval(monkeypatch, check)


def test_a_full_batch_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    async def check(
        writer: RequestWriter, transactions: FakeTransactions, is_over: asyncio.Event
    ) -> None:
        await asyncio.gather(*write(writer, *map(str, range(500))))
        assert [len(keys) for keys, *_ in transactions.committed] == [1, 500]

    in_interval(monkeypatch, check)
