"""Quantiles of what was counted in buckets, and of the last minutes only."""

import math
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.server import clock
from broker.server.distribution import (
    BOUNDS,
    QUANTILES,
    WINDOW_SECONDS,
    Distribution,
    IdleRatio,
    quantiles,
)


@given(st.lists(st.floats(2e-6, 600), min_size=1, max_size=200))
def test_a_quantile_is_within_the_bucket_of_the_exact_one(values: list[float]) -> None:
    distribution = Distribution()
    for value in values:
        distribution.add(value)
    found = quantiles(distribution.counts)
    for label, share in QUANTILES.items():
        exact = sorted(values)[max(0, math.ceil(share * len(values)) - 1)]
        assert exact / 1.5 <= found[label] <= exact * 1.5


def test_values_that_were_zero_and_not_counted_are_below_all_others() -> None:
    distribution = Distribution()
    distribution.add(1.0)
    found = quantiles(distribution.counts, zeros=98)
    assert found["0.98"] == 0
    assert found["0.999"] == pytest.approx(1, rel=0.5)


def test_without_values_there_are_no_quantiles() -> None:
    assert all(map(math.isnan, quantiles(Distribution().counts).values()))


def test_a_value_beyond_the_last_bound_is_counted() -> None:
    distribution = Distribution()
    distribution.add(1e9)
    assert distribution.count == 1
    assert quantiles(distribution.counts)["0.50"] == BOUNDS[-1]


def test_what_is_older_than_the_window_is_left_out() -> None:
    distribution = Distribution()
    distribution.add(1.0)
    assert sum(distribution.recent(0)) == 1
    distribution.add(2.0)
    for minute in range(1, 5):
        assert sum(distribution.recent(60 * minute)) == 1
    distribution.add(3.0)
    assert sum(distribution.recent(WINDOW_SECONDS + 60)) == 1
    assert sum(distribution.recent(3 * WINDOW_SECONDS)) == 0
    assert distribution.count == 3


def test_a_thread_that_works_half_of_the_time_is_idle_half_of_it() -> None:
    ratio = IdleRatio(100, 7)
    assert ratio.recent(100, 7) == 1
    assert ratio.recent(110, 12) == 0.5
    assert ratio.recent(200, 57) == 0.5
    assert ratio.recent(300, 57) == 1


def test_a_thread_that_waits_for_a_processor_is_not_idle(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    scheduled = tmp_path / "schedstat"
    scheduled.write_text("2000000000 3000000000 70\n")
    monkeypatch.setattr(clock, "_SCHEDULED", scheduled)
    assert clock.busy_seconds() == 5
    scheduled.unlink()
    assert 0 < clock.busy_seconds() <= time.thread_time()
