"""The loop of every service, with a consumer and a producer that do as the test says."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from aiokafka.errors import KafkaTimeoutError
from aiokafka.structs import ConsumerRecord, TopicPartition

from common.kafka.topics import Topic
from common.kafka.transactions.producer import TransactionError
from common.kafka.transactions.rules import Member, Outcome
from common.process.telemetry import Metrics
from common.processing.outbox import Outbox, Outgoing
from common.processing.processor import Processor
from common.processing.settings import Settings
from common.processing.worker import Inputs
from tests.lib.pipeline_bus import record

FIRST, SECOND = Topic("first"), Topic("second")
P0, P1 = TopicPartition("first", 0), TopicPartition("first", 1)
S0 = TopicPartition("second", 0)


class EchoWorker:
    """Notes what it handles and passes it on, but for `silent`; `bad` cannot be handled."""

    inputs = (FIRST, SECOND)
    outputs = ()

    def __init__(self) -> None:
        self.handled: list[bytes] = []
        self.restored: list[dict[str, set[int]]] = []
        self.flushed_count = 0
        self.starts: dict[TopicPartition, int] = {}
        self.processor: Inputs | None = None
        self.fails_after_catching_up = False

    def connect(self, inputs: Inputs) -> None:
        self.processor = inputs

    async def restore(self, held: Mapping[str, set[int]]) -> Mapping[TopicPartition, int]:
        self.restored.append(dict(held))
        return self.starts

    def forget(self) -> None:
        self.handled.append(b"forget")

    async def handle(self, one: ConsumerRecord, outbox: Outbox) -> None:
        if one.value.startswith(b"row "):
            outbox.change("rows", int(one.value[4:]), b"k", one.value)
        elif one.value != b"silent":
            outbox.send("out", "k", one.value, [])
        if one.value == b"bad":
            raise ValueError("bad record")
        if one.value == b"catch up":
            assert self.processor is not None
            await self.processor.catch_up("second")
            if self.fails_after_catching_up:
                raise ValueError("bad after all")
        self.handled.append(one.value)

    async def tick(self, timestamp_ms: int, outbox: Outbox) -> None:
        pass

    def flushed(self) -> None:
        self.flushed_count += 1


class FakeConsumer:
    """Holds records by partition; `during_fetch` runs while a fetch is on its way."""

    def __init__(self, **values: list[bytes]) -> None:
        self.logs: dict[TopicPartition, list[ConsumerRecord]] = {}
        for name, contents in values.items():
            topic, number = name.split("_")
            partition = TopicPartition(topic, int(number))
            self.logs[partition] = [
                record(topic, int(number), offset, b"k", value)
                for offset, value in enumerate(contents)
            ]
        self.positions = dict.fromkeys(self.logs, 0)
        self.generation, self.member_id = 1, "member"
        self.during_fetch: Callable[[], Awaitable[None]] | None = None

    def assignment(self) -> set[TopicPartition]:
        return set(self.logs)

    def membership(self) -> tuple[int, str]:
        return self.generation, self.member_id

    def forget(self) -> None: ...

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self.positions[partition] = offset

    async def position(self, partition: TopicPartition) -> int:
        return self.positions[partition]

    def highwater(self, partition: TopicPartition) -> int | None:
        return len(self.logs[partition]) or None

    async def getmany(self, *partitions: TopicPartition, **_: Any) -> dict[Any, Any]:
        found = {}
        for partition in partitions or tuple(self.logs):
            rest = self.logs[partition][self.positions[partition] :]
            self.positions[partition] = len(self.logs[partition])
            if rest:
                found[partition] = rest
        if self.during_fetch is not None:
            act, self.during_fetch = self.during_fetch, None
            await act()
        return found


class FakeEndOffsets:
    def __init__(self, consumer: FakeConsumer) -> None:
        self._consumer = consumer

    async def of(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        return {partition: len(self._consumer.logs[partition]) for partition in partitions}


class FakeTransactions:
    """Notes what is committed, and by whom."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, bytes]] = []
        self.commits: list[dict[TopicPartition, int]] = []
        self.members: list[Member] = []
        self.taken: list[set[int]] = []
        self.offsets: dict[TopicPartition, int] = {}
        self.counts: dict[str, int] = {}
        self.failure: Exception | None = None
        self.during_commit: Callable[[], Awaitable[None]] | None = None

    async def partition_count(self, topic: str) -> int:
        return self.counts[topic]

    async def take(self, numbers: set[int]) -> None:
        self.taken.append(numbers)

    async def committed(self, group_id: str, partitions: Any) -> dict[TopicPartition, int]:
        return {p: offset for p, offset in self.offsets.items() if p in partitions}

    async def commit(
        self, records: list[Outgoing], offsets: dict[TopicPartition, int], member: Member
    ) -> None:
        if self.during_commit is not None:
            act, self.during_commit = self.during_commit, None
            await act()
        if self.failure is not None:
            raise self.failure
        self.sent += [(one.topic, one.value) for one in records]
        self.commits.append(dict(offsets))
        self.members.append(member)


class Rig:
    """A processor with its doubles, assigned and restored."""

    def __init__(self, **values: list[bytes]) -> None:
        self.worker = EchoWorker()
        self.metrics = Metrics()
        settings = Settings(commit_interval_ms=0)
        self.processor = Processor("echo", settings, self.worker, self.metrics)
        self.consumer = FakeConsumer(**values)
        self.transactions = FakeTransactions()
        self.processor._consumer = self.consumer
        self.processor._transactions = self.transactions
        self.processor._end_offsets = FakeEndOffsets(self.consumer)

    async def rebalance(self) -> None:
        self.consumer.generation += 1
        await self.processor.on_partitions_revoked(self.consumer.assignment())
        await self.processor.on_partitions_assigned(self.consumer.assignment())

    async def turn(self) -> None:
        await self.processor._cycle()


def test_records_are_handled_passed_on_and_committed() -> None:
    async def check() -> None:
        rig = Rig(first_0=[b"a", b"b"], first_1=[b"c"])
        await rig.processor.on_partitions_assigned([])
        await rig.turn()
        assert rig.worker.restored == [{"first": {0, 1}, "second": set()}]
        assert rig.processor.is_restored
        await rig.turn()
        assert rig.worker.handled == [b"a", b"b", b"c"]
        assert rig.transactions.sent == [("out", b"a"), ("out", b"b"), ("out", b"c")]
        assert rig.transactions.commits == [{P0: 2, P1: 1}]
        assert rig.worker.flushed_count == 1

    asyncio.run(check())


def test_lag_is_what_is_not_handled_yet() -> None:
    async def check() -> None:
        rig = Rig(first_0=[b"a"], second_0=[])
        await rig.processor.on_partitions_assigned([])
        await rig.turn()
        fetch = rig.consumer.getmany

        async def fetch_then_more_comes(*partitions: TopicPartition, **_: Any) -> dict[Any, Any]:
            found = await fetch(*partitions)
            rig.consumer.logs[P0] += [record("first", 0, n, b"k", b"b") for n in (1, 2)]
            return found

        rig.consumer.getmany = fetch_then_more_comes
        await rig.turn()
        lags = {t: rig.metrics.lag.labels(t)._value.get() for t in ("first", "second")}
        assert lags == {"first": 2, "second": 0}

    asyncio.run(check())


def test_topic_that_is_named_first_is_handled_first() -> None:
    async def check() -> None:
        rig = Rig(second_0=[b"2"], first_0=[b"1"])
        await rig.processor.on_partitions_assigned([])
        await rig.turn()
        await rig.turn()
        assert rig.worker.handled == [b"1", b"2"]

    asyncio.run(check())


def test_batch_that_is_not_committed_is_not_shown() -> None:
    async def check() -> None:
        rig = Rig(first_0=[b"a"])
        await rig.processor.on_partitions_assigned([])
        await rig.turn()
        rig.transactions.failure = KafkaTimeoutError()
        with pytest.raises(KafkaTimeoutError):
            await rig.turn()
        assert rig.worker.flushed_count == 0

    asyncio.run(check())


def test_offsets_behind_records_that_put_nothing_out_go_with_the_next_that_do() -> None:
    async def check() -> None:
        rig = Rig(first_0=[b"silent"])
        rig.processor._settings = Settings(commit_interval_ms=3_600_000)
        await rig.processor.on_partitions_assigned([])
        await rig.turn()
        await rig.turn()
        assert rig.transactions.commits == []
        rig.consumer.logs[P0].append(record("first", 0, 1, b"k", b"loud"))
        await rig.turn()
        assert rig.transactions.commits == [{P0: 2}]

    asyncio.run(check())


def test_rows_that_nobody_waits_for_go_with_the_next_batch_that_puts_something_out() -> None:
    async def check() -> None:
        rig = Rig(first_0=[b"row 0", b"row 0"])
        rig.processor._settings = Settings(commit_interval_ms=3_600_000)
        await rig.processor.on_partitions_assigned([])
        await rig.turn()
        await rig.turn()
        assert rig.transactions.commits == []
        assert rig.worker.flushed_count == 0
        rig.consumer.logs[P0].append(record("first", 0, 2, b"k", b"loud"))
        await rig.turn()
        assert rig.transactions.commits == [{P0: 3}]
        assert rig.transactions.sent == [("rows", b"row 0"), ("out", b"loud")]

    asyncio.run(check())


def test_rows_alone_are_committed_when_their_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("common.processing.processor.now_seconds", lambda: now)

    async def check() -> None:
        nonlocal now
        rig = Rig(first_0=[b"row 0"])
        rig.processor._settings = Settings(commit_interval_ms=250)
        await rig.processor.on_partitions_assigned([])
        await rig.turn()
        await rig.turn()
        now += 0.249
        await rig.turn()
        assert rig.transactions.commits == []
        now += 0.001
        await rig.turn()
        assert rig.transactions.commits == [{P0: 1}]
        await rig.turn()
        assert rig.transactions.commits == [{P0: 1}]

    asyncio.run(check())


def test_a_row_goes_with_an_offset_of_its_partition() -> None:
    """Else whoever takes that partition would not wait for the end of this transaction."""

    async def check() -> None:
        rig = Rig(first_0=[], first_1=[b"seen"], second_0=[b"row 1", b"row 0"])
        rig.transactions.offsets = {P1: 1}
        await rig.processor.on_partitions_assigned([])
        await rig.turn()
        await rig.turn()
        assert rig.transactions.commits == [{S0: 2, P1: 1}]
        rig.consumer.logs[P0].append(record("first", 0, 0, b"k", b"row 0"))
        await rig.turn()
        rig.consumer.logs[S0].append(record("second", 0, 2, b"k", b"row 2"))
        await rig.turn()
        # Of this one nothing is committed and nothing handled: it begins where it begins.
        assert rig.transactions.commits[2] == {S0: 3, TopicPartition("first", 2): 0}

    asyncio.run(check())


def test_what_is_handled_to_catch_up_stays_though_the_record_that_asked_for_it_is_bad() -> None:
    async def check() -> None:
        rig = Rig(first_0=[b"catch up"], second_0=[b"needed"])
        await rig.processor.on_partitions_assigned([])
        await rig.turn()
        fetch = rig.consumer.getmany

        async def fetch_first_alone(*partitions: TopicPartition, **_: Any) -> dict[Any, Any]:
            return await fetch(*(partitions or (P0,)))

        rig.consumer.getmany = fetch_first_alone
        rig.worker.fails_after_catching_up = True
        await rig.turn()
        assert rig.transactions.sent == [
            ("out", b"needed"),
            ("first.dead-letter", b"catch up"),
        ]
        assert rig.transactions.commits == [{P0: 1, S0: 1}]

    asyncio.run(check())


def test_state_is_restored_after_the_producer_was_replaced_and_from_settled_offsets() -> None:
    async def check() -> None:
        rig = Rig(first_0=[b"a", b"b"], first_1=[b"c"])
        rig.transactions.offsets = {P0: 1}
        await rig.processor.on_partitions_assigned([])
        await rig.turn()
        assert rig.transactions.taken == [{0, 1}]
        await rig.turn()
        assert rig.worker.handled == [b"b", b"c"]

    asyncio.run(check())


def test_commits_name_the_generation_in_which_the_partitions_were_assigned() -> None:
    async def check() -> None:
        rig = Rig(first_0=[b"a"])
        await rig.processor.on_partitions_assigned([])
        await rig.turn()
        # The member has been forgotten, and nobody has told the processor yet.
        rig.consumer.generation, rig.consumer.member_id = -1, ""
        await rig.turn()
        assert rig.transactions.members == [Member("echo", 1, "member")]

    asyncio.run(check())


def test_rebalance_waits_until_the_batch_is_committed() -> None:
    async def check() -> None:
        rig = Rig(first_0=[b"a"])
        await rig.processor.on_partitions_assigned([])
        await rig.turn()
        rebalances: list[asyncio.Future[None]] = []

        async def begin_rebalance() -> None:
            rebalances.append(asyncio.ensure_future(rig.rebalance()))
            await asyncio.sleep(0)
            assert rig.processor.is_restored

        rig.transactions.during_commit = begin_rebalance
        await rig.turn()
        await rebalances[0]
        assert rig.transactions.commits == [{P0: 1}]
        assert rig.transactions.members[0].generation_id == 1
        assert not rig.processor.is_restored

    asyncio.run(check())


def test_batch_that_needs_more_records_is_dropped_when_the_partitions_are_given_up() -> None:
    async def check() -> None:
        rig = Rig(first_0=[b"a", b"catch up"], second_0=[b"needed"])
        await rig.processor.on_partitions_assigned([])
        await rig.turn()
        rebalances: list[asyncio.Future[None]] = []
        fetch = rig.consumer.getmany

        async def fetch_in_rebalance(*partitions: TopicPartition, **_: Any) -> dict[Any, Any]:
            if not partitions:
                # Not all at once: what is behind is asked for by name.
                return await fetch(P0)
            rebalances.append(asyncio.ensure_future(rig.rebalance()))
            # As with aiokafka: in a rebalance nothing is returned before its end.
            await asyncio.shield(rebalances[0])
            return await fetch(*partitions)

        rig.consumer.getmany = fetch_in_rebalance
        async with asyncio.timeout(60):
            await rig.turn()
            await asyncio.wait(rebalances)
        assert rig.transactions.commits == []
        assert rig.worker.handled == [b"a", b"forget", b"forget"]

    asyncio.run(check())


@pytest.mark.parametrize("outcome", [Outcome.GENERATION_OVER, Outcome.FENCED, Outcome.ABORTED])
def test_refused_transaction_at_a_rebalance_is_left_to_the_next_owner(outcome: Outcome) -> None:
    async def check() -> None:
        rig = Rig(first_0=[b"silent"])
        rig.processor._settings = Settings(commit_interval_ms=3_600_000)
        await rig.processor.on_partitions_assigned([])
        await rig.turn()
        await rig.turn()
        rig.transactions.failure = TransactionError(outcome, "test")
        await rig.rebalance()
        assert rig.worker.handled == [b"silent", b"forget"]

    asyncio.run(check())


def test_bad_record_goes_aside_and_the_next_is_handled() -> None:
    async def check() -> None:
        rig = Rig(first_0=[b"a", b"bad", b"b"])
        await rig.processor.on_partitions_assigned([])
        await rig.turn()
        await rig.turn()
        assert rig.worker.handled == [b"a", b"b"]
        assert rig.transactions.sent == [
            ("out", b"a"),
            ("first.dead-letter", b"bad"),
            ("out", b"b"),
        ]
        assert rig.transactions.commits == [{P0: 3}]
        count = rig.metrics.registry.get_sample_value(
            "millstream_dead_letters_total", {"topic": "first"}
        )
        assert count == 1

    asyncio.run(check())


def test_batch_fetched_across_a_rebalance_is_put_back() -> None:
    async def check() -> None:
        rig = Rig(first_0=[b"a", b"b"])
        await rig.processor.on_partitions_assigned([])
        await rig.turn()
        rig.consumer.during_fetch = rig.rebalance
        await rig.turn()
        assert rig.worker.handled == [b"forget"]
        assert rig.consumer.positions[P0] == 0
        assert not rig.processor.is_restored
        await rig.turn()
        assert rig.processor.is_restored
        await rig.turn()
        assert rig.worker.handled == [b"forget", b"a", b"b"]

    asyncio.run(check())


def test_partitions_are_committed_before_they_are_given_up() -> None:
    async def check() -> None:
        rig = Rig(first_0=[b"silent"])
        rig.processor._settings = Settings(commit_interval_ms=3_600_000)
        await rig.processor.on_partitions_assigned([])
        await rig.turn()
        await rig.turn()
        assert rig.transactions.commits == []
        await rig.rebalance()
        assert rig.transactions.commits == [{P0: 1}]

    asyncio.run(check())


@pytest.mark.parametrize(
    ("contents", "rest_seconds"),
    [([b"a", b"b"], 0.04), ([], None), ([b"a"] * 500, None)],
    ids=["some", "none", "full"],
)
def test_next_batch_begins_at_its_time_unless_one_was_full(
    contents: list[bytes], rest_seconds: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rests: list[float] = []
    times = iter([100.0, *[100.01] * 10])

    async def sleep(seconds: float) -> None:
        rests.append(round(seconds, 6))

    async def check() -> None:
        rig = Rig(first_0=contents)
        rig.processor._settings = Settings(batch_interval_ms=50)
        await rig.processor.on_partitions_assigned([])
        await rig.turn()
        monkeypatch.setattr("common.processing.processor.now_seconds", lambda: next(times))
        monkeypatch.setattr(asyncio, "sleep", sleep)
        await rig.turn()

    asyncio.run(check())
    assert rests == ([] if rest_seconds is None else [rest_seconds])


def test_worker_says_where_to_start() -> None:
    async def check() -> None:
        rig = Rig(first_0=[b"a", b"b"])
        rig.worker.starts = {P0: 1}
        await rig.processor.on_partitions_assigned([])
        await rig.turn()
        await rig.turn()
        assert rig.worker.handled == [b"b"]

    asyncio.run(check())


def test_catching_up_handles_what_is_there_before_the_record_goes_on() -> None:
    async def check() -> None:
        rig = Rig(first_0=[b"catch up"], second_0=[])
        await rig.processor.on_partitions_assigned([])
        await rig.turn()

        async def append() -> None:
            rig.consumer.logs[S0].append(record("second", 0, 0, b"k", b"needed"))

        rig.consumer.during_fetch = append
        rig.consumer.positions[S0] = 0
        await rig.turn()
        assert rig.worker.handled == [b"needed", b"catch up"]
        assert rig.transactions.commits == [{P0: 1, S0: 1}]

    asyncio.run(check())
