"""The agents in Faust's test_context: retry, dead letters, gaps, the end of an assignment."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import faust
import pytest
from aiokafka.structs import ConsumerRecord

from common.credentials.access import KafkaAccess
from common.kafka.transactions.rules import Member
from common.process.settings import read_settings
from common.registry.wire import MalformedEventError
from streams.around_faust.delivery import ATTEMPTS, Delivery
from streams.around_faust.log_reader import Range
from streams.around_faust.positions import TopicPartition
from streams.around_faust.writer import Changes, SupersededError, WriteFailedError, Writer
from streams.codec import Codec
from streams.micro_batch import Message, MicroBatch, RowKey
from streams.records import Origin, Outgoing, Row, Step
from streams.settings import Settings
from streams.telemetry import Metrics
from streams.topology import Record

ORDERS = TopicPartition("orders", 0)


class NamedTable:
    """A table that only remembers what is put."""

    name = "rows"

    def __init__(self) -> None:
        self.batch = MicroBatch()
        self.put_rows: list[Any] = []

    def changes(self, rows: dict[RowKey, Row]) -> list[Message]:
        return [Message("changelog", key.encode(), b"row", [], at) for at, key in rows]

    def keep(self, rows: dict[RowKey, Row]) -> None:
        self.put_rows += rows.items()


class Written:
    """A writer that remembers what is committed, or fails as it is told to."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.offsets: dict[TopicPartition, int] = {}
        self.failure: Exception | None = None
        self.attempts = 0

    def between_transactions(self) -> asyncio.Lock:
        return asyncio.Lock()

    async def write(self, changes: Changes) -> None:
        self.attempts += 1
        if self.failure is not None:
            raise self.failure
        self.messages += changes.messages
        self.offsets |= changes.offsets


class Log:
    """What the partition holds, for gaps."""

    def __init__(self) -> None:
        self.records: list[ConsumerRecord] = []
        self.reads = 0

    async def read(self, ranges: dict[TopicPartition, Range]) -> AsyncIterator[ConsumerRecord]:
        self.reads += 1
        ((_, wanted),) = ranges.items()
        for record in self.records:
            if wanted.start <= record.offset < wanted.end:
                yield record


def log_record(offset: int, value: bytes) -> ConsumerRecord:
    return ConsumerRecord("orders", 0, offset, 0, 0, b"key", value, 0, 0, 0, ())


class Bench:
    """One agent on `orders`; its positions begin at 0 and its gate is open."""

    def __init__(self, handle: Callable[[Record], Awaitable[None]], folder: Path) -> None:
        self.app = faust.App("test", store="memory://", datadir=str(folder), web_enabled=False)
        self.written = Written()
        self.table = NamedTable()
        self.log = Log()
        self.delivery = Delivery(
            self.app, Codec("http://127.0.0.1:1"), Metrics(), self.log, self.written
        )
        self.delivery.add_agent("reader", "orders", self.table, handle, writes=["out"])
        self.delivery.positions.begin({ORDERS: 0}, {ORDERS: 100})
        self.delivery._member = Member("test", 1, "member")
        self.delivery._gate.set()

    async def put(self, *values: bytes, is_done: Callable[[], bool] | None = None) -> None:
        """Put records in and return when all are handled, or when it is done otherwise."""
        (agent,) = self.app.agents.values()
        is_done = is_done or (lambda: self.delivery.positions.handled(ORDERS) == len(values))
        async with agent.test_context() as context, asyncio.timeout(60):
            for value in values:
                await context.put(key=b"key", value=value)
            while not is_done():
                await asyncio.sleep(0)
        # Faust makes the consumer's thread its event loop, and leaves closing it to the thread.
        self.app.consumer._thread.thread_loop.close()


def run(handle: Callable[[Record], Awaitable[None]], folder: Path, *values: bytes) -> Bench:
    async def inner() -> Bench:
        bench = Bench(handle, folder)
        await bench.put(*values)
        return bench

    return asyncio.run(inner())


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.around_faust.delivery._PAUSE_SECONDS", (0.0,))


def test_agent_hands_every_record_to_its_function_in_order(tmp_path: Path) -> None:
    seen: list[tuple[int, bytes, Origin]] = []

    async def handle(record: Record) -> None:
        seen.append((record.offset, record.value, record.origin))

    run(handle, tmp_path, b"a", b"b")
    assert seen == [(0, b"a", Origin("orders-0", 0)), (1, b"b", Origin("orders-0", 1))]


def test_malformed_record_is_set_aside_at_once_with_the_reason(tmp_path: Path) -> None:
    attempts: list[bytes] = []

    async def handle(record: Record) -> None:
        attempts.append(record.value)
        if record.value == b"bad":
            raise MalformedEventError("no event")

    bench = run(handle, tmp_path, b"bad", b"good")
    assert attempts == [b"bad", b"good"]
    (message,) = bench.written.messages
    headers = dict(message.headers)
    assert (message.topic, message.value) == ("orders.dead-letter", b"bad")
    assert headers["dead-letter-reason"] == b"MalformedEventError: no event"
    where = [headers[f"dead-letter-{name}"] for name in ("topic", "partition", "offset")]
    assert where == [b"orders", b"0", b"0"]


def test_failing_record_is_tried_again_and_then_set_aside(tmp_path: Path) -> None:
    attempts: list[bytes] = []

    async def handle(record: Record) -> None:
        attempts.append(record.value)
        if record.value == b"bad" or attempts.count(record.value) < 2:
            raise ZeroDivisionError

    bench = run(handle, tmp_path, b"bad", b"good")
    assert attempts == [b"bad"] * ATTEMPTS + [b"good"] * 2
    assert [message.value for message in bench.written.messages] == [b"bad"]


def write_one(folder: Path, failure: Exception | None, is_done: Callable[[Bench], bool]) -> Bench:
    """Handle a record that makes a row and a message, with a writer that may fail."""

    async def inner() -> Bench:
        async def handle(record: Record) -> None:
            step = Step({"version": 1}, [Outgoing("out", "key", b"value", origin=record.origin)])
            await bench.delivery.apply(bench.table, "key", step, record)

        bench = Bench(handle, folder)
        bench.written.failure = failure
        await bench.put(b"a", is_done=lambda: is_done(bench))
        return bench

    return asyncio.run(inner())


def test_what_a_record_comes_to_is_committed_together_with_its_position(tmp_path: Path) -> None:
    bench = write_one(tmp_path, None, lambda bench: bench.delivery.positions.handled(ORDERS) == 1)
    origin = [("millstream-origin", b"orders-0:0")]
    assert bench.written.messages == [
        Message("out", b"key", b"value", origin),
        Message("changelog", b"key", b"row", [], 0),
    ]
    assert bench.written.offsets == {ORDERS: 1}
    assert bench.table.put_rows == [((0, "key"), {"version": 1})]
    assert bench.delivery.positions.to_commit() == {}


def test_a_position_that_is_committed_alone_comes_before_those_of_later_transactions(
    tmp_path: Path,
) -> None:
    """Otherwise the group would go back, and whoever holds the partition next handle it twice."""
    committed: list[int] = []
    may_arrive = asyncio.Event()

    class Transactions:
        async def commit(self, messages: Any, offsets: dict[Any, int], member: Member) -> None:
            committed.append(offsets[ORDERS])

    async def arrive_late(offsets: dict[Any, int]) -> bool:
        await may_arrive.wait()
        committed.append(offsets[ORDERS])
        return True

    async def inner() -> None:
        async def handle(record: Record) -> None:
            if record.value == b"with effect":
                step = Step({"version": 1}, [Outgoing("out", "key", b"value")])
                await bench.delivery.apply(bench.table, "key", step, record)

        bench = Bench(handle, tmp_path)
        writer = bench.delivery.writer = Writer(KafkaAccess(""), "test", timeout_ms=1)
        writer._producer, writer._member = Transactions(), bench.delivery._member
        bench.app.consumer._commit = arrive_late
        handled = bench.delivery.positions.handled
        (agent,) = bench.app.agents.values()
        async with agent.test_context() as context, asyncio.timeout(60):
            await context.put(key=b"key", value=b"without")
            while handled(ORDERS) < 1:
                await asyncio.sleep(0)
            committing = asyncio.ensure_future(bench.delivery.commit())
            await context.put(key=b"key", value=b"with effect")
            for _ in range(200):
                await asyncio.sleep(0)
            may_arrive.set()
            await committing
            while handled(ORDERS) < 2:
                await asyncio.sleep(0)
        bench.app.consumer._thread.thread_loop.close()

    asyncio.run(inner())
    assert committed == [1, 2]


def test_a_transaction_that_fails_ends_the_app_and_keeps_nothing(tmp_path: Path) -> None:
    bench = write_one(tmp_path, WriteFailedError("fenced"), lambda bench: bench.app.should_stop)
    assert bench.table.put_rows == []
    assert isinstance(bench.app.crash_reason, WriteFailedError)


def test_who_is_superseded_keeps_nothing_and_waits_for_its_next_assignment(tmp_path: Path) -> None:
    bench = write_one(tmp_path, SupersededError(), lambda bench: bench.written.attempts > 0)
    assert bench.table.put_rows == []
    assert bench.delivery.positions.wanted_by("reader", ORDERS) == 0
    assert not bench.app.should_stop


def test_work_of_an_earlier_assignment_ends_before_its_next_effect(tmp_path: Path) -> None:
    async def inner() -> Bench:
        async def handle(record: Record) -> None:
            bench.delivery.close()
            await bench.delivery.apply(
                bench.table,
                "key",
                Step({"version": 1}, [Outgoing("out", "key", b"value")]),
                record,
            )

        bench = Bench(handle, tmp_path)
        await bench.put(b"a", is_done=lambda: not bench.delivery.is_open)
        return bench

    bench = asyncio.run(inner())
    assert (bench.written.messages, bench.table.put_rows) == ([], [])
    assert not bench.delivery.is_open


def test_what_was_restored_for_an_earlier_assignment_opens_no_gate(tmp_path: Path) -> None:
    async def inner() -> Bench:
        async def handle(record: Record) -> None:
            raise AssertionError(record)

        bench = Bench(handle, tmp_path)
        bench.app.tables.data["rows"] = bench.table
        generation = bench.delivery.generation
        bench.delivery.close()
        await bench.delivery.table_restored("rows", generation)
        bench.app.consumer._thread.thread_loop.close()
        return bench

    assert not asyncio.run(inner()).delivery.is_open


def test_records_that_faust_lost_are_read_from_the_log_with_all_that_lay_there(
    tmp_path: Path,
) -> None:
    async def inner() -> list[bytes]:
        seen: list[bytes] = []

        async def handle(record: Record) -> None:
            seen.append(record.value)

        bench = Bench(handle, tmp_path)
        bench.delivery.positions.begin({ORDERS: -3}, {ORDERS: 2})
        bench.log.records = [
            *(log_record(-3, b"x"), log_record(-1, b"y")),
            *(log_record(0, b"a"), log_record(1, b"b")),
        ]
        await bench.put(b"a", b"b", b"c")
        assert bench.log.reads == 1
        return seen

    assert asyncio.run(inner()) == [b"x", b"y", b"a", b"b", b"c"]


def test_settings_come_from_options_before_variables() -> None:
    environment = {"MILLSTREAM_HTTP_PORT": "7001", "MILLSTREAM_REGISTRY_URL": "http://r"}
    settings = read_settings(
        Settings, "millstream streams", "Views.", ["--http-port", "7002"], environment
    )
    assert settings == Settings(http_port=7002, registry_url="http://r")
