"""Ranges of a task against a consumer that is a list."""

from typing import Any

import pytest
from confluent_kafka import KafkaError

pytest.importorskip("pyspark")

from spark_analytics.source import range_reader
from spark_analytics.source.offsets import OffsetRange
from spark_analytics.source.planner import DataLossError
from spark_analytics.source.range_reader import END_OF_PARTITION, RangeReader


class FakeMessage:
    def __init__(self, partition: int, offset: int, error: int | None = None) -> None:
        self._place = ("t", partition, offset)
        self._error = error

    def topic(self) -> str:
        return self._place[0]

    def partition(self) -> int:
        return self._place[1]

    def offset(self) -> int:
        return self._place[2]

    def error(self) -> KafkaError | None:
        return None if self._error is None else KafkaError(self._error)

    def key(self) -> None:
        return None

    def value(self) -> bytes:
        return b"%d/%d" % self._place[1:]

    def timestamp(self) -> tuple[int, int]:
        return (1, 1000)


class FakeConsumer:
    """Partitions are lists of offsets; what is there goes out turn by turn, then the ends."""

    def __init__(self, logs: dict[int, list[int]]) -> None:
        self.logs = logs
        self.assigned: list[dict[int, int]] = []
        self._positions: dict[int, int] = {}
        self._ended: set[int] = set()

    def assign(self, places: list[Any]) -> None:
        self._positions = {place.partition: place.offset for place in places}
        self._ended = set()
        self.assigned.append(dict(self._positions))

    def unassign(self) -> None:
        self._positions = {}

    @property
    def is_fetching(self) -> bool:
        return bool(self._positions)

    def get_watermark_offsets(self, place: Any, timeout: float) -> tuple[int, int]:
        log = self.logs[place.partition]
        return log[0], log[-1] + 1

    def consume(self, count: int, timeout: float) -> list[FakeMessage]:
        found = []
        for partition, position in sorted(self._positions.items()):
            log = self.logs[partition]
            if position < log[0]:
                error = KafkaError.OFFSET_OUT_OF_RANGE
                found.append(FakeMessage(partition, position, error))
                continue
            left = [offset for offset in log if offset >= position]
            found += [FakeMessage(partition, offset) for offset in left]
            if partition not in self._ended:
                found.append(FakeMessage(partition, log[-1] + 1, END_OF_PARTITION))
                self._ended.add(partition)
            self._positions[partition] = log[-1] + 1
        return found[:count] if len(self._positions) == 1 else found


@pytest.fixture
def consumer(monkeypatch: pytest.MonkeyPatch) -> FakeConsumer:
    fake = FakeConsumer({0: list(range(10)), 1: list(range(5)), 2: [0, 1, 7]})
    monkeypatch.setattr(range_reader, "_idle", {})
    monkeypatch.setattr(range_reader, "_new_consumer", lambda _: fake)
    monkeypatch.setattr(range_reader, "_READ_AHEAD_RECORDS", 5)
    return fake


def read(*ranges: tuple[int, int, int], fail: bool = True) -> list[str]:
    reader = RangeReader({}, fail, include_headers=False, poll_timeout_ms=1000)
    task = tuple(OffsetRange("t", *item) for item in ranges)
    found = [row for batch in reader.read(task) for row in batch.to_pylist()]
    for row in found:
        assert row["value"] == b"%d/%d" % (row["partition"], row["offset"])
    return [row["value"].decode() for row in found]


def test_one_task_reads_many_ranges(consumer: FakeConsumer) -> None:
    assert sorted(read((0, 2, 5), (1, 0, 2))) == ["0/2", "0/3", "0/4", "1/0", "1/1"]


def test_what_was_taken_beyond_an_end_is_the_next_tasks(consumer: FakeConsumer) -> None:
    read((0, 0, 4), (1, 0, 2))
    consumer.logs[0].append(10)

    rest = read((0, 4, 11), (1, 2, 5))

    assert sorted(rest) == sorted([f"0/{n}" for n in range(4, 11)] + ["1/2", "1/3", "1/4"])
    assert len(consumer.assigned) == 1, "it stood where the task goes on"


def test_after_a_small_task_nothing_is_fetched_ahead(consumer: FakeConsumer) -> None:
    read((0, 0, 3), (1, 0, 2))
    assert consumer.is_fetching

    read((0, 3, 5), (1, 2, 4))
    assert not consumer.is_fetching

    assert sorted(read((0, 5, 6), (1, 4, 5))) == ["0/5", "1/4"]


def test_a_task_that_goes_on_elsewhere_gets_nothing_of_what_was_held(
    consumer: FakeConsumer,
) -> None:
    read((0, 0, 4), (1, 0, 2))

    assert sorted(read((0, 6, 8), (1, 2, 3))) == ["0/6", "0/7", "1/2"]
    assert len(consumer.assigned) == 2


def test_too_much_held_is_read_again(
    consumer: FakeConsumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(range_reader, "_HELD_BYTES", 8)
    read((0, 0, 4), (1, 0, 2))

    assert len(read((0, 4, 10), (1, 2, 5))) == 9
    assert len(consumer.assigned) == 2


def test_gaps_at_and_over_the_end(consumer: FakeConsumer) -> None:
    assert sorted(read((0, 0, 1), (2, 0, 5))) == ["0/0", "2/0", "2/1"]
    assert sorted(read((0, 1, 2), (2, 5, 8))) == ["0/1", "2/7"]
    assert read((2, 0, 5)) == ["2/0", "2/1"]


def test_a_lost_offset_takes_nothing_of_the_others_twice(consumer: FakeConsumer) -> None:
    consumer.logs[1] = [3, 4]
    with pytest.raises(DataLossError):
        read((0, 0, 10), (1, 0, 5))

    found = read((0, 0, 10), (1, 0, 5), fail=False)

    assert sorted(found) == sorted([f"0/{n}" for n in range(10)] + ["1/3", "1/4"])
