"""What is said of the differences between two pictures of a cluster."""

import asyncio
from dataclasses import replace

import pytest

from common.http.problems import ProblemError
from common.kafka.topics import TopicPartition
from console.console import LongReads
from console.group_lags import Position, Positions
from console.reading.following import FollowedRow
from console.reading.readers import Read, Readers
from console.records.rows import NULL, Row
from console.watching.changes import changes
from console.watching.flows import rates
from console.watching.pictures import PartitionPicture, Picture

BROKERS = {1: "a:1", 2: "b:2", 3: "c:3"}


def partition(leader: int, *in_sync: int) -> PartitionPicture:
    return PartitionPicture(leader, (1, 2, 3), frozenset(in_sync or (1, 2, 3)))


HEALTHY = Picture(
    BROKERS,
    1,
    {("orders", 0): partition(1), ("orders", 1): partition(2), ("orders", 2): partition(2)},
    {"fraud": 0},
    {"broker-1": "ready", "broker-2": "ready"},
)


def test_nothing_is_said_of_two_equal_pictures() -> None:
    assert changes(HEALTHY, HEALTHY) == []


def test_what_is_written_is_told_by_leader_and_a_log_that_was_cut_counts_nothing() -> None:
    led = {TopicPartition("orders", number): number % 2 for number in range(4)}
    before = dict(zip(led, (10, 10, 10, 10), strict=True))
    after = dict(zip(led, (30, 10, 5, 12), strict=True))
    assert rates(before, after, led, 2.0) == {0: 10, 1: 1}
    assert rates({}, after, led, 2.0) == {}


def test_a_group_is_told_once_when_it_has_read_a_record_that_is_followed() -> None:
    place = TopicPartition("orders", 1)
    committed = {"email": 5, "search": 4}

    async def positions() -> dict[str, Positions]:
        return {group: {place: Position(at, 9)} for group, at in committed.items()}

    async def look() -> None:
        readers = Readers(positions)
        assert await readers.look() == []
        readers.add([FollowedRow("orders", Row(1, 4, 0, NULL, NULL))])
        assert await readers.look() == [Read("email", "orders", 1, "4")]
        assert await readers.look() == []
        committed["search"] = 5
        assert await readers.look() == [Read("search", "orders", 1, "4")]

    asyncio.run(look())


def test_a_broker_that_is_killed_takes_its_leaders_with_it() -> None:
    after = replace(
        HEALTHY,
        brokers={1: "a:1", 3: "c:3"},
        partitions={
            ("orders", 0): partition(1, 1, 3),
            ("orders", 1): partition(3, 1, 3),
            ("orders", 2): partition(3, 1, 3),
        },
        parts={"broker-1": "ready", "broker-2": "stopped"},
        lags={"fraud": 120},
    )
    assert changes(HEALTHY, after) == [
        "The process broker-2 was stopped.",
        "Broker 2 is gone from the cluster: the controller has fenced it, and no client is sent "
        "there.",
        "Broker 3 leads 2 partitions that broker 2 led.",
        "Broker 2 is out of sync in 3 partitions: acks=all does not wait for it.",
        "The group fraud is 120 records behind.",
    ]
    assert changes(after, HEALTHY) == [
        "The process broker-2 runs and is ready.",
        "Broker 2 is in the cluster, and catches up with the leaders.",
        "Broker 2 leads 2 partitions that broker 3 led.",
        "Broker 2 is in sync again in 3 partitions.",
        "The group fraud has caught up.",
    ]


@pytest.mark.parametrize(
    ("count", "said"),
    [(1, "orders-0 is without"), (2, "orders-0 and orders-1 are without"), (9, "9 partitions are")],
)
def test_partitions_without_leader_are_named_or_counted(count: int, said: str) -> None:
    before = replace(HEALTHY, partitions={("orders", n): partition(1, 1) for n in range(count)})
    after = replace(HEALTHY, partitions={("orders", n): partition(-1, 1) for n in range(count)})
    assert changes(before, after)[0].startswith(said)
    assert "with a leader again" in changes(after, before)[0]


def test_no_more_than_the_limit_reads_for_long() -> None:
    reads = LongReads(1)
    with reads.one(), pytest.raises(ProblemError, match="run already"), reads.one():
        pass
    with reads.one():
        pass


def test_topics_come_and_go() -> None:
    more = replace(HEALTHY, partitions={**HEALTHY.partitions, ("made", 0): partition(1)})
    assert changes(HEALTHY, more) == ["The topic made was created."]
    assert changes(more, HEALTHY) == ["The topic made was deleted."]
