"""What counts as lag: records, but no markers of transactions and no holes of a compacted log."""

import pytest

from lag.backlog import batches, lag_of, written_ms
from lag.facts import Batch

NOTHING: tuple[Batch, ...] = ()


def data(first: int, last: int, count: int | None = None, at_ms: int = 50) -> Batch:
    return Batch(first, last, last - first + 1 if count is None else count, at_ms, False)


def marker(offset: int) -> Batch:
    return Batch(offset, offset, 1, 60, True)


@pytest.mark.parametrize(
    ("committed", "end", "found", "lag"),
    [
        (5, 5, NOTHING, 0),
        (7, 5, NOTHING, 0),  # The end is older than the commit.
        (5, 9, NOTHING, 4),
        (5, 6, [marker(5)], 0),
        (5, 8, [data(3, 6), marker(7)], 2),
        (0, 10, [data(0, 3), marker(4), data(5, 8), marker(9)], 8),
        (0, 100, [data(0, 3), marker(4)], 99),  # What was not read counts by its offsets.
        (0, 10, [data(0, 9, count=4)], 4),
        (2, 5, [data(0, 9)], 3),
        (0, 3, [data(5, 9)], 3),  # Beyond the end.
        (0, 12, [data(4, 7), marker(11)], 4),  # Holes of a compacted log.
    ],
)
def test_only_records_are_lag(committed: int, end: int, found: list[Batch], lag: int) -> None:
    assert lag_of(committed, end, found) == lag


def test_the_time_is_that_of_the_first_record_that_was_not_handled() -> None:
    found = [data(0, 3, at_ms=10), marker(4), data(5, 8, at_ms=20)]
    assert written_ms(2, found) == 10
    assert written_ms(4, found) == 20
    assert written_ms(9, found) is None
    assert written_ms(0, [data(0, 3, at_ms=-1)]) is None


@pytest.mark.parametrize("records", [b"", b"x" * 60, b"\0" * 61, b"\xff" * 200])
def test_bytes_that_are_no_batches_are_left_out(records: bytes) -> None:
    assert list(batches(records)) == []
