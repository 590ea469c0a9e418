"""The loop of every service, with a consumer and a producer that do as the test says."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from aiokafka.errors import CommitFailedError, KafkaTimeoutError
from aiokafka.structs import ConsumerRecord, TopicPartition

from services.common.kafka import Topic
from services.common.outbox import Outbox
from services.common.processor import Inputs, Processor
from services.common.settings import Settings
from services.common.telemetry import Metrics
from tests.lib.pipeline_bus import record

FIRST, SECOND = Topic("first"), Topic("second")
P0, P1 = TopicPartition("first", 0), TopicPartition("first", 1)
S0 = TopicPartition("second", 0)


class EchoWorker:
    """Notes what it handles and passes it on; `bad` cannot be handled."""

    inputs = (FIRST, SECOND)
    outputs = ()

    def __init__(self) -> None:
        self.handled: list[bytes] = []
        self.restored: list[dict[str, set[int]]] = []
        self.flushed_count = 0
        self.starts: dict[TopicPartition, int] = {}
        self.processor: Inputs | None = None

    def connect(self, inputs: Inputs) -> None:
        self.processor = inputs

    async def restore(self, held: Mapping[str, set[int]]) -> Mapping[TopicPartition, int]:
        self.restored.append(dict(held))
        return self.starts

    def forget(self) -> None:
        self.handled.append(b"forget")

    async def handle(self, one: ConsumerRecord, outbox: Outbox) -> None:
        outbox.send("out", "k", one.value, [])
        if one.value == b"bad":
            raise ValueError("bad record")
        if one.value == b"catch up":
            assert self.processor is not None
            await self.processor.catch_up("second")
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
        self.commits: list[dict[TopicPartition, int]] = []
        self.commit_failure: Exception | None = None
        self.during_fetch: Callable[[], Awaitable[None]] | None = None

    def assignment(self) -> set[TopicPartition]:
        return set(self.logs)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self.positions[partition] = offset

    async def position(self, partition: TopicPartition) -> int:
        return self.positions[partition]

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

    async def commit(self, offsets: dict[TopicPartition, int]) -> None:
        if self.commit_failure is not None:
            raise self.commit_failure
        self.commits.append(offsets)


class FakeEndOffsets:
    def __init__(self, consumer: FakeConsumer) -> None:
        self._consumer = consumer

    async def of(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        return {partition: len(self._consumer.logs[partition]) for partition in partitions}


class FakeProducer:
    def __init__(self) -> None:
        self.sent: list[tuple[str, bytes]] = []
        self.failure: Exception | None = None

    async def send(self, topic: str, value: bytes, *_: Any, headers: Any) -> Any:
        future = asyncio.get_running_loop().create_future()
        if self.failure is not None:
            future.set_exception(self.failure)
        else:
            self.sent.append((topic, value))
            future.set_result(None)
        return future


class Rig:
    """A processor with its doubles, assigned and restored."""

    def __init__(self, **values: list[bytes]) -> None:
        self.worker = EchoWorker()
        self.metrics = Metrics()
        settings = Settings(commit_interval_ms=0)
        self.processor = Processor("echo", settings, self.worker, self.metrics)
        self.consumer = FakeConsumer(**values)
        self.producer = FakeProducer()
        self.processor._consumer = self.consumer
        self.processor._producer = self.producer
        self.processor._end_offsets = FakeEndOffsets(self.consumer)

    async def rebalance(self) -> None:
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
        assert rig.producer.sent == [("out", b"a"), ("out", b"b"), ("out", b"c")]
        assert rig.consumer.commits == [{P0: 2, P1: 1}]
        assert rig.worker.flushed_count == 1

    asyncio.run(check())


def test_topic_that_is_named_first_is_handled_first() -> None:
    async def check() -> None:
        rig = Rig(second_0=[b"2"], first_0=[b"1"])
        await rig.processor.on_partitions_assigned([])
        await rig.turn()
        await rig.turn()
        assert rig.worker.handled == [b"1", b"2"]

    asyncio.run(check())


def test_nothing_is_committed_before_the_output_is_acknowledged() -> None:
    async def check() -> None:
        rig = Rig(first_0=[b"a"])
        await rig.processor.on_partitions_assigned([])
        await rig.turn()
        rig.producer.failure = KafkaTimeoutError()
        with pytest.raises(KafkaTimeoutError):
            await rig.turn()
        await rig.processor._commit()
        assert rig.consumer.commits == []
        assert rig.worker.flushed_count == 0

    asyncio.run(check())


def test_bad_record_goes_aside_and_the_next_is_handled() -> None:
    async def check() -> None:
        rig = Rig(first_0=[b"a", b"bad", b"b"])
        await rig.processor.on_partitions_assigned([])
        await rig.turn()
        await rig.turn()
        assert rig.worker.handled == [b"a", b"b"]
        assert rig.producer.sent == [("out", b"a"), ("first.dead-letter", b"bad"), ("out", b"b")]
        assert rig.consumer.commits == [{P0: 3}]
        count = rig.metrics.registry.get_sample_value(
            "millrace_dead_letters_total", {"topic": "first"}
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
        rig = Rig(first_0=[b"a"])
        rig.processor._settings = Settings(commit_interval_ms=3_600_000)
        await rig.processor.on_partitions_assigned([])
        await rig.turn()
        rig.processor._committed_at = float("inf")
        await rig.turn()
        assert rig.consumer.commits == []
        await rig.rebalance()
        assert rig.consumer.commits == [{P0: 1}]

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
        monkeypatch.setattr("services.common.processor.now_seconds", lambda: next(times))
        monkeypatch.setattr(asyncio, "sleep", sleep)
        await rig.turn()

    asyncio.run(check())
    assert rests == ([] if rest_seconds is None else [rest_seconds])


def test_commit_that_fails_is_left_to_redelivery() -> None:
    async def check() -> None:
        rig = Rig(first_0=[b"a"])
        rig.consumer.commit_failure = CommitFailedError()
        await rig.processor.on_partitions_assigned([])
        await rig.turn()
        await rig.turn()
        assert rig.worker.handled == [b"a"]

    asyncio.run(check())


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
        assert rig.consumer.commits == [{P0: 1, S0: 1}]

    asyncio.run(check())
