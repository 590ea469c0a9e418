"""The lines of the performance tools: those of Kafka's."""

import random
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import pytest

from broker.cli.arguments import ToolFailed
from broker.cli.clients.performance import (
    ConsumerStats,
    ProducerStats,
    date_text,
    metric_lines,
    percentiles,
)
from broker.cli.producer_perf_test import POOL_BYTES, random_payloads, read_parts

MEBIBYTE = 1 << 20


def test_an_interval_and_everything() -> None:
    stats = ProducerStats(1_000, 5_000, is_steady_state=False)
    stats.add([1, 3], MEBIBYTE)
    assert stats.report(5_999) == []
    assert stats.report(6_000) == [
        "2 records sent, 0.4 records/sec (0.20 MB/sec), 2.0 ms avg latency, 3.0 ms max latency."
    ]
    stats.add([5] * 98, MEBIBYTE)
    assert stats.total_text(11_000) == (
        "100 records sent, 10.000000 records/sec (0.20 MB/sec), 4.94 ms avg latency, "
        "5.00 ms max latency, 5 ms 50th, 5 ms 95th, 5 ms 99th, 5 ms 99.9th."
    )


def test_after_the_warm_up_only_the_steady_state_reports() -> None:
    warm, steady = (ProducerStats(0, 10, is_steady_state=steady) for steady in (False, True))
    warm.is_silent = True
    for stats in (warm, steady):
        stats.add([1], 1)
    assert warm.report(10) == []
    assert steady.report(10)[0] == "In steady state."
    steady.add([2], 1)
    assert len(steady.report(20)) == 1
    assert steady.total_text(20).startswith("2 steady state records sent, 100.000000 records/sec")


def test_percentiles_are_those_of_the_sorted_latencies() -> None:
    latencies = [random.Random(1).randrange(50) for _ in range(999)]
    histogram = {value: latencies.count(value) for value in set(latencies)}
    parts = (0.5, 0.95, 0.99, 0.999)
    assert percentiles(histogram, parts) == [sorted(latencies)[int(p * 999)] for p in parts]
    assert percentiles({}, parts) == [0, 0, 0, 0]


def test_what_was_consumed() -> None:
    stats = ConsumerStats(0)
    stats.count, stats.bytes = 4, MEBIBYTE
    assert stats.report(1_000, 500, "now") == (
        "now, 0, 1.0000, 1.0000, 4, 4.0000, 500, 500, 2.0000, 8.0000"
    )
    stats.count, stats.bytes = 6, 2 * MEBIBYTE
    assert stats.report(2_000, 0, "then") == (
        "then, 0, 2.0000, 1.0000, 6, 2.0000, 0, 1000, 1.0000, 2.0000"
    )
    assert stats.total_text(2_000, 2_000, "a", "b") == (
        "a, b, 2.0000, 1.0000, 6, 3.0000, 2000, 0, 0.0000, 0.0000"
    )


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd HH:mm:ss:SSS", "2026-01-02 13:04:05:006"),
        ("dd.MM.yy 'at' hh 'h'", "02.01.26 at 01 h"),
        ("M/d/y h a, EEEE MMM", "1/2/2026 1 PM, Friday Jan"),
        ("DDD kk K", "002 13 1"),
    ],
)
def test_times_are_printed_as_java_prints_them(pattern: str, text: str) -> None:
    moment = datetime(2026, 1, 2, 13, 4, 5, 6_000, tzinfo=UTC)
    assert date_text(pattern, moment) == text


def test_a_letter_that_java_does_not_know_is_refused() -> None:
    with pytest.raises(ToolFailed, match="Illegal pattern character 'q'"):
        date_text("yyyy qqq", datetime(2026, 1, 2, tzinfo=UTC))


def test_no_records_have_no_mean() -> None:
    stats = ProducerStats(0, 1_000, is_steady_state=False)
    assert ", NaN ms avg latency, 0.00 ms max latency, 0 ms 50th" in stats.total_text(1_000)


def test_metrics_are_the_numbers_of_the_client() -> None:
    said = {"name": "x", "txmsgs": 7, "brokers": {"b": {"rtt": {"avg": 1.5}}}}
    assert metric_lines(said, "producer-metrics") == [
        "",
        "Metric Name                          Value",
        "producer-metrics:brokers:b:rtt:avg : 1.500",
        "producer-metrics:txmsgs            : 7",
    ]


def test_payloads_are_letters_and_repeat_late() -> None:
    first = list(islice(random_payloads(10, random.Random(0)), 1_000))
    assert len(set(first)) == len(first)
    assert all(len(one) == 10 and one.isalpha() and one.isupper() for one in first)
    assert first == list(islice(random_payloads(10, random.Random(0)), 1_000))
    assert len(next(random_payloads(2 * POOL_BYTES, random.Random(0)))) == 2 * POOL_BYTES


def test_parts_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "parts"
    file.write_text("a\nb,c\n", encoding="utf-8")
    assert read_parts(str(file), "\\n") == [b"a", b"b,c"]
    assert read_parts(str(file), ",") == [b"a\nb", b"c\n"]
