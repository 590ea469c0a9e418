"""Each view on ten rows."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from spark_analytics.jobs.decoding import Decoder
from tests.lib.order_records import NOON, Record, RecordMaker, fetch_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.interop]

NOON_MS = int(NOON.timestamp() * 1000)
Frame = Callable[[list[Record]], "DataFrame"]


@pytest.fixture
def make() -> RecordMaker:
    return RecordMaker()


@pytest.fixture
def events(spark: "SparkSession") -> Frame:
    """Decoded in the test's own process: the executors' part has a test of its own."""
    import pyarrow as pa

    from spark_analytics.jobs.events import EVENT

    decoder = Decoder(fetch_schema)

    def frame(records: list[Record]) -> "DataFrame":
        columns = [list(column) for column in zip(*records, strict=True)]
        types = [pa.string(), pa.int32(), pa.int64(), pa.timestamp("us", "UTC"), pa.binary()]
        batch = pa.RecordBatch.from_arrays(
            [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)],
            names=["topic", "partition", "offset", "timestamp", "value"],
        )
        table = pa.Table.from_batches([decoder.decode_batch(batch)])
        return spark.createDataFrame(table, EVENT)

    return frame


def rows(frame: "DataFrame") -> list[dict[str, Any]]:
    return [row.asDict() for row in frame.collect()]


def test_revenue_by_window_state_and_country(events: Frame, make: RecordMaker) -> None:
    from spark_analytics.jobs import revenue

    later = {"ordered_at": NOON + timedelta(minutes=61)}
    frame = events(
        [
            make.order("a", 1, "CREATED"),
            make.order("a", 2, "VALIDATED"),
            make.order("b", 1, "CREATED", total=Decimal("0.0001")),
            make.order("c", 1, "CREATED", country="EIRE"),
            make.order("d", 1, "CREATED", country=None, **later),
            make.order("e", 1, "CREATED", **later),
            make.verdict("a", "FRAUD"),
            make.decision("a", "VALIDATED"),
            make.product("85123A", "HEART", 0),
            make.record("orders", b"junk"),
        ]
    ).where("problem IS NULL")

    found = {
        (row["grain"], row["window_start_ms"] - NOON_MS, row["state"], row["country"]): (
            row["orders"],
            row["revenue_e4"],
            row["late_orders"],
        )
        for row in rows(revenue.transform(frame, watermark_ms=NOON_MS + 3_600_000))
    }

    half_day = -12 * 3_600_000
    assert found["minute", 0, "CREATED", "United Kingdom"] == (2, 25_001, 2)
    assert found["hour", 0, "CREATED", "United Kingdom"] == (2, 25_001, 2)
    assert found["hour", 3_600_000, "CREATED", "United Kingdom"] == (1, 25_000, 0)
    assert found["day", half_day, "CREATED", "United Kingdom"] == (3, 50_001, 0)
    assert found["day", half_day, "VALIDATED", "United Kingdom"] == (1, 25_000, 0)
    assert found["day", half_day, "CREATED", "unknown"] == (1, 25_000, 0)
    assert len(found) == 14


def test_products_of_validated_orders(events: Frame, make: RecordMaker) -> None:
    from spark_analytics.jobs import products

    twice = [
        {"product_id": "22423", "quantity": 3, "unit_price": Decimal("10.95")},
        {"product_id": "22423", "quantity": 1, "unit_price": Decimal("12.0001")},
    ]
    frame = events(
        [
            make.order("a", 1, "CREATED"),
            make.order("a", 2, "VALIDATED"),
            make.order("b", 2, "VALIDATED", lines=twice),
            make.order("c", 2, "FAILED"),
            make.product("22423", "CAKESTAND", 0),
            make.product("22423", "CAKESTAND 3 TIER", 5),
            make.record("products", None),
        ]
    )

    found = {row.pop("product_id"): row for row in rows(products.transform(frame))}
    names = rows(products.names(frame))

    assert found == {
        "85123A": {"orders": 1, "quantity": 2, "revenue_e4": 25_000},
        "22423": {"orders": 1, "quantity": 4, "revenue_e4": 448_501},
    }
    assert [(row["product_id"], row["description"]) for row in names] == [
        ("22423", "CAKESTAND 3 TIER")
    ]


def test_verdicts_and_failures(events: Frame, make: RecordMaker) -> None:
    from spark_analytics.jobs import verdicts

    limit = {"check": "FRAUD", "code": "LIMIT", "detail": "x"}
    stock = {"check": "INVENTORY", "code": "NO_STOCK", "detail": "x"}
    frame = events(
        [
            make.verdict("a", "FRAUD"),
            make.verdict("b", "FRAUD"),
            make.verdict("b", "INVENTORY", "FAIL"),
            make.verdict("c", "FRAUD", "ERROR"),
            make.order("a", 2, "FAILED", reasons=[limit, stock, stock]),
            make.order("b", 2, "FAILED", reasons=[limit], total=Decimal(1)),
            make.order("c", 2, "VALIDATED"),
        ]
    )

    found = {tuple(row.values()) for row in rows(verdicts.transform(frame))}
    failed = {tuple(row.values()) for row in rows(verdicts.failures(frame))}

    assert found == {
        ("FRAUD", "PASS", "", 2),
        ("INVENTORY", "FAIL", "TOO_MUCH", 1),
        ("FRAUD", "ERROR", "TOO_MUCH", 1),
    }
    assert failed == {("FRAUD", "LIMIT", 2, 35_000), ("INVENTORY", "NO_STOCK", 1, 25_000)}


def test_funnel_joins_orders_validations_and_decisions(events: Frame, make: RecordMaker) -> None:
    from spark_analytics.jobs import funnel

    frame = events(
        [
            make.verdict("a", "FRAUD"),
            make.order("a", 2, "VALIDATED"),
            make.order("a", 1, "CREATED"),
            make.verdict("a", "FRAUD"),
            make.decision("a", "VALIDATED"),
            make.verdict("b", "INVENTORY"),
            make.product("85123A", "HEART", 0),
        ]
    )

    found = {row["order_id"]: row for row in rows(funnel.transform(frame))}

    assert set(found) == {"a", "b"}
    whole = found["a"]
    assert (whole["version"], whole["state"], whole["total_e4"]) == (2, "VALIDATED", 25_000)
    assert whole["created_ms"] == NOON_MS + 100
    assert whole["validated_ms"] == NOON_MS + 200
    assert whole["fraud_ms"] == NOON_MS + 1_000
    assert whole["decided_ms"] == NOON_MS + 5_000
    assert whole["inventory_ms"] is None
    assert (found["b"]["version"], found["b"]["inventory_ms"]) == (None, NOON_MS + 6_000)


def test_segments_of_customers(spark: "SparkSession") -> None:
    from spark_analytics.jobs import segments

    history = [
        (customer, NOON - timedelta(days=days), Decimal(10))
        for customer, orders in {
            "often and lately": [0, 1, 2, 3, 4],
            "once and lately": [1],
            "often but long ago": [100, 101, 102, 103],
            "once and long ago": [110],
            "now and then": [40, 50],
        }.items()
        for days in orders
    ]
    frame = spark.createDataFrame(
        history, "customer_id string, ordered_at timestamp, total decimal(18,4)"
    )

    found = {row["customer_id"]: row for row in rows(segments.transform(frame))}

    best = found["often and lately"]
    assert (best["recency_days"], best["frequency"], best["monetary_e4"]) == (0, 5, 500_000)
    assert {customer: row["segment"] for customer, row in found.items()} == {
        "often and lately": "champions",
        "once and lately": "new or promising",
        "often but long ago": "at risk",
        "once and long ago": "hibernating",
        "now and then": "loyal",
    }
