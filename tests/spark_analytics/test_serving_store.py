"""The serving store: what a batch brings is there as a whole or not at all, and once."""

import sqlite3
from pathlib import Path

import pytest

from spark_analytics.serving.layout import UnreadableStoreError, connect_reader
from spark_analytics.serving.reader import ServingReader, amount, percentile
from spark_analytics.serving.writer import BatchResult, ServingWriter
from tests.lib.served_orders import batch_of, make_store, order_row


def reader_of(path: Path) -> ServingReader:
    connection = connect_reader(path)
    assert connection is not None
    return ServingReader(connection)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "serving.sqlite"


def test_no_store_is_no_reader(path: Path) -> None:
    assert connect_reader(path) is None


def test_store_of_another_layout_is_refused(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()

    with pytest.raises(UnreadableStoreError, match="layout 99"):
        connect_reader(path)


def test_reader_sees_the_figures(path: Path) -> None:
    writer = make_store(path, orders=14)
    reader = reader_of(path)

    assert reader.summary() == {
        "orders": 14,
        "states": {"FAILED": 2, "VALIDATED": 12},
        "checks": {
            "FRAUD": {"PASS": 12, "FAIL": 2, "ERROR": 0},
            "INVENTORY": {"PASS": 14, "FAIL": 0, "ERROR": 0},
            "ORDER_DETAILS": {"PASS": 14, "FAIL": 0, "ERROR": 0},
        },
        "revenue_validated": "148.16",
    }
    assert reader.revenue_by_day() == [
        {"key": "2011-02-01", "orders": 12, "revenue": "148.16"},
    ]
    assert [row["key"] for row in reader.revenue_by_country()] == [
        "EIRE", "France", "Germany", "United Kingdom",
    ]  # fmt: skip
    reader.close()
    writer.close()


def test_reader_still_reads_when_the_writer_has_gone(path: Path) -> None:
    make_store(path, orders=7).close()
    reader = reader_of(path)

    assert reader.summary()["orders"] == 7
    reader.close()


def test_batches_are_known_after_a_restart(path: Path) -> None:
    make_store(path, orders=7).close()

    writer = ServingWriter(path)

    assert writer.is_committed("query", 0)
    assert not writer.is_committed("query", 1)
    assert not writer.is_committed("another query", 0)
    writer.close()


def test_store_keeps_its_name_and_another_has_another(path: Path, tmp_path: Path) -> None:
    first = ServingWriter(path)
    store_id = first.store_id
    first.close()
    again, other = ServingWriter(path), ServingWriter(tmp_path / "other.sqlite")

    assert again.store_id == store_id != other.store_id
    again.close()
    other.close()


def test_keys_counted_before_are_known(path: Path) -> None:
    writer = make_store(path, orders=3)

    known = writer.known_events([("order-1", 1), ("order-1", 3), ("order-9", 1)])

    assert known == {("order-1", 1)}
    assert writer.known_checks([("order-2", "FRAUD"), ("order-9", "FRAUD")]) == {
        ("order-2", "FRAUD")
    }
    writer.close()


def test_batch_that_would_count_twice_changes_nothing(path: Path) -> None:
    writer = make_store(path, orders=7)
    reader = reader_of(path)
    before = reader.snapshot()

    with pytest.raises(sqlite3.IntegrityError):
        writer.commit(batch_of(6, 9, batch_id=1), timestamp_ms=1)

    assert reader.snapshot() == before
    assert not writer.is_committed("query", 1)
    reader.close()
    writer.close()


def test_steps_of_an_order_merge_in_any_order(path: Path, tmp_path: Path) -> None:
    whole = order_row(1, is_valid=True)
    created = {**whole, "version": 1, "state": "CREATED", "validated_ms": None, "fraud_ms": None}
    verdict = dict.fromkeys(whole) | {"order_id": "order-1", "fraud_ms": whole["fraud_ms"]}
    merged = []
    for name, pieces in (("a", [created, verdict, whole]), ("b", [verdict, whole, created, whole])):
        writer = ServingWriter(tmp_path / name)
        for number, piece in enumerate(pieces):
            writer.commit(BatchResult("query", number, views={"funnel": [piece]}), timestamp_ms=5)
        connection = connect_reader(tmp_path / name)
        assert connection is not None
        merged.append(tuple(connection.execute("SELECT * FROM orders").fetchone()))
        connection.close()
        writer.close()

    assert merged[0] == merged[1] == (*whole.values(), *merged[0][len(whole) :])
    assert merged[0][-1] == 5


def test_order_that_failed_after_validation_stays_validated(path: Path) -> None:
    writer = ServingWriter(path)
    declined = order_row(1, is_valid=True) | {"version": 3, "state": "FAILED"}
    writer.commit(BatchResult("query", 0, views={"funnel": [declined]}), timestamp_ms=1)
    reader = reader_of(path)

    assert reader.summary()["states"] == {"VALIDATED": 1}
    reader.close()
    writer.close()


def test_watermark_never_goes_back(path: Path) -> None:
    writer = ServingWriter(path)
    for batch_id, newest_ms in enumerate((500, 300)):
        batch = BatchResult("query", batch_id, newest_ordered_ms=newest_ms)
        writer.commit(batch, timestamp_ms=1)

    assert writer.property("newest_ordered_ms") == 500
    writer.close()


def test_changed_rows_are_those_after_a_revision(path: Path) -> None:
    writer = make_store(path, orders=2)
    revision = writer.property("revision")
    writer.commit(batch_of(2, 3, batch_id=1), timestamp_ms=1)

    columns, rows = writer.changed_rows("revenue", revision)

    # Order 2 alone: two states, three grains; but the day's windows have other countries too.
    assert len(rows) == 6
    assert "revenue_e4" in columns
    assert writer.changed_rows("revenue", writer.property("revision"))[1] == []
    writer.close()


@pytest.mark.parametrize(
    ("amount_e4", "text"),
    [(None, "0.00"), (25_500, "2.55"), (99, "0.01"), (10**15, "100000000000.00")],
)
def test_amount(amount_e4: int | None, text: str) -> None:
    assert amount(amount_e4) == text


def test_percentile_is_a_value_that_was_there() -> None:
    values = list(range(1, 101))

    assert [percentile(values, share) for share in (0.5, 0.95, 0.99, 1.0)] == [50, 95, 99, 100]
    assert percentile([], 0.5) is None
