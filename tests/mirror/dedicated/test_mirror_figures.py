"""How far a copy is: figures, status, digests."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest

from millstream.connect.errors import ConnectException
from millstream.mirror import TopicPartition
from mirror.dedicated import whole_topic
from mirror.dedicated.mirror_maker_settings import Pair
from mirror.dedicated.status import FlowStatus, status_lines
from mirror.dedicated.verification import Digest, compare, digests
from mirror.metrics import PartitionMetrics, metrics
from tests.mirror.test_policies import flow


def test_lag_is_what_has_no_copy() -> None:
    figures = PartitionMetrics()
    figures.were_read(3, [5] * 4)
    figures.were_read(9, [5] * 6)
    for offset in range(4):
        figures.was_stored(offset, 100, 9)
    assert (figures.position, figures.lag, figures.stored_bytes) == (4, 6, 400)


def test_a_cluster_that_is_away_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_topic, "_FIRST_ANSWER_SECONDS", 0.1)
    away = {"bootstrap.servers": "127.0.0.1:1", "group.id": "any"}
    with pytest.raises(ConnectException, match=r"127\.0\.0\.1:1 does not answer"):
        list(whole_topic.whole_topic(away, "orders"))


def test_behind_the_last_record_there_may_be_markers() -> None:
    figures = PartitionMetrics()
    figures.were_read(0, [0])
    figures.ended(3)
    assert figures.lag == 3
    figures.was_stored(0, 1, 0)
    assert (figures.position, figures.lag) == (3, 0)


def measured(figures: PartitionMetrics, now_ms: int) -> dict[str, float]:
    at = {TopicPartition("orders", 0): figures}
    prefix = "kafka_connect_mirror_mirrorsourceconnector_"
    return {each.name.removeprefix(prefix): each.value for each in metrics(flow(), at, now_ms)}


def test_figures_are_those_of_the_last_minute() -> None:
    figures = PartitionMetrics()
    figures.pass_time(1)
    figures.were_read(2, [4, 10, 7])
    for offset, age_ms in enumerate((4, 10, 7)):
        figures.was_stored(offset, 100, 2 * age_ms)
    found = measured(figures, 1)
    ages = [found[f"record_age_ms{kind}"] for kind in ("", "_min", "_max", "_avg")]
    latencies = [found[f"replication_latency_ms{kind}"] for kind in ("", "_min", "_max", "_avg")]
    assert (ages, latencies) == ([7, 4, 10, 7], [14, 8, 20, 14])
    assert (found["record_rate"], found["byte_rate"]) == (0.1, 10)
    figures.pass_time(30_001)
    figures.were_read(3, [1])
    found = measured(figures, 60_001)
    assert (found["record_age_ms_min"], found["record_age_ms_max"]) == (1, 10)
    assert found["record_rate"] == 0.05
    figures.pass_time(60_001)
    assert measured(figures, 60_001)["record_age_ms_max"] == 1
    figures.pass_time(90_001)
    assert measured(figures, 90_001)["record_age_ms_max"] == 0


def test_status_says_who_is_behind_and_what_is_left_out() -> None:
    one, other = TopicPartition("orders", 0), TopicPartition("orders", 1)
    status = FlowStatus(
        Pair("a", "b"),
        {one: 0, other: 5},
        {one: 100, other: 1_005},
        {one: 100},
        {"b.orders": "came from b"},
        {"connect-sink": "excluded by connect-.*"},
        {"readers": 2_000},
    )
    assert status_lines(status) == [
        "a->b: 1 topics, 2 partitions, replication-offset-lag 1,000",
        "  behind    orders: 1,000",
        "  group     readers: last checkpoint 2 s ago",
        "  left out  b.orders: came from b",
        "  left out  group connect-sink: excluded by connect-.*",
    ]


@dataclass
class Message:
    """What a consumer gives, as far as a digest looks at it."""

    k: bytes | None
    v: bytes | None
    h: list[tuple[str, bytes | None]] = field(default_factory=list)
    t: int = 0
    o: int = 0

    def key(self) -> bytes | None:
        return self.k

    def value(self) -> bytes | None:
        return self.v

    def headers(self) -> list[tuple[str, bytes | None]]:
        return self.h

    def timestamp(self) -> tuple[int, int]:
        return 1, self.t

    def partition(self) -> int:
        return 0

    def topic(self) -> str:
        return "orders"

    def offset(self) -> int:
        return self.o


def digest(messages: Iterable[Message], *, is_compacted: bool = False) -> Digest:
    return digests(messages, is_compacted=is_compacted)[0]


def test_of_the_source_what_was_copied_is_compared() -> None:
    source = [Message(None, b"%d" % n, o=n) for n in range(5)]
    at = TopicPartition("orders", 0)
    (same,) = compare(lambda: source, lambda: source[:3], {at: 3}, is_compacted=False)
    assert same.is_same
    assert same.source.record_count == 3
    (other,) = compare(lambda: source, lambda: source[:3], {at: 4}, is_compacted=False)
    assert not other.is_same
    (empty,) = compare(lambda: source, list, {at: 0}, is_compacted=False)
    assert empty.is_same


def test_what_the_source_has_retired_since_is_not_compared() -> None:
    source = [Message(None, b"%d" % n, o=n) for n in range(5)]
    at = TopicPartition("orders", 0)
    (left,) = compare(lambda: source[2:], lambda: source, {at: 5}, is_compacted=False)
    assert left.is_same
    assert (left.source.record_count, left.only_in_target) == (3, 2)
    # One that has all of its records is compared from its beginning on.
    (twice,) = compare(lambda: source, lambda: source + source, {at: 5}, is_compacted=False)
    assert not twice.is_same
    stray = [*source, Message(None, b"stray", o=5)]
    (other,) = compare(lambda: source[2:], lambda: stray, {at: 5}, is_compacted=False)
    assert not other.is_same


def test_a_digest_tells_everything_apart() -> None:
    messages = [
        Message(b"k", b"v"),
        Message(b"", b"kv"),
        Message(None, b"kv"),
        Message(b"k", None),
        Message(b"k", b""),
        Message(b"k", b"v", [("h", b"")]),
        Message(b"k", b"v", [("h", None)]),
        Message(b"k", b"v", t=1),
    ]
    assert len({digest([each]).sha256 for each in messages}) == len(messages)
    assert digest(messages) != digest(reversed(messages))


def test_of_a_compacted_topic_what_is_left_of_each_key_counts() -> None:
    dirty = [Message(b"a", b"1"), Message(b"b", b"1"), Message(b"a", b"2"), Message(b"b", None)]
    assert digest(dirty, is_compacted=True) == digest([Message(b"a", b"2")], is_compacted=True)
    assert digest(dirty, is_compacted=True).record_count == 1
    assert digest(dirty) != digest(dirty[2:])
