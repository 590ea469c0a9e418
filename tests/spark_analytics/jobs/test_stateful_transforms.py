"""The transforms that keep state, as streams: a few rows, batch by batch, late ones among them."""

import os
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.lib.order_records import NOON

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.interop]

DAY = 24 * 60
NOON_MS = int(NOON.timestamp() * 1000)
Event = dict[str, Any]


class Streams:
    """Streams of events out of files: one file of each is one micro-batch."""

    def __init__(self, spark: "SparkSession", folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self.last_progress: Any = None

    def stream(self, name: str, *batches: list[Event]) -> "DataFrame":
        from pyspark.sql.pandas.types import to_arrow_schema

        from spark_analytics.jobs.events import EVENT

        schema, folder = to_arrow_schema(EVENT, timezone="UTC"), self._folder / name
        folder.mkdir()
        for number, events in enumerate(batches):
            # The source takes files by their time, the oldest first.
            file = folder / f"{number}.parquet"
            pq.write_table(pa.Table.from_pylist(events, schema), file)
            os.utime(file, (number, number))
        options = {"maxFilesPerTrigger": "1"}
        return self._spark.readStream.schema(EVENT).options(**options).parquet(str(folder))

    def run(self, frame: "DataFrame") -> list[list["Row"]]:
        """Run to the end of the files; return the rows of each micro-batch that had any."""
        batches: list[list[Row]] = []
        query = (
            frame.writeStream.foreachBatch(lambda batch, _: batches.append(batch.collect()))
            .option("checkpointLocation", str(self._folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(240)
        self.last_progress = query.lastProgress
        return [rows for rows in batches if rows]


@pytest.fixture
def streams(spark: "SparkSession", tmp_path: Path) -> Streams:
    return Streams(spark, tmp_path)


def order(order_id: str, minutes: float, state: str = "CREATED", **more: Any) -> Event:
    at = NOON + timedelta(minutes=minutes)
    event = {"topic": "orders", "order_id": order_id, "version": 1, "state": state}
    event |= {"country": "EIRE", "total": Decimal("2.5000"), "ordered_at": at, "occurred_at": at}
    return event | more


def tick(minutes: float) -> Event:
    """Return an order that is there for its time only."""
    return order(f"tick at {minutes}", minutes, country="nowhere")


def later(topic: str, order_id: str, seconds: float, **more: Any) -> Event:
    at = NOON + timedelta(seconds=seconds)
    return {"topic": topic, "order_id": order_id, "appended_at": at, **more}


def check(order_id: str, seconds: float, name: str, result: str = "PASS") -> Event:
    return later("order-validations", order_id, seconds, check=name, result=result)


Windows = dict[tuple[str, float, str, str], tuple[int, int]]


@pytest.fixture
def windows_of() -> Callable[[list["Row"]], Windows]:
    def windows(rows: list["Row"]) -> Windows:
        found = {}
        for row in rows:
            minutes = (row["window_start_ms"] - NOON_MS) / 60_000
            key = (row["grain"], minutes, row["state"], row["country"])
            assert key not in found, "a window is told once"
            found[key] = (row["orders"], row["revenue_e4"])
        return found

    return windows


def test_windows_close_when_the_watermark_has_passed_and_late_orders_are_left_out(
    streams: Streams, windows_of: Callable[[list["Row"]], Windows]
) -> None:
    from spark_analytics.jobs import closed_windows

    events = streams.stream(
        "orders",
        [order("a", 0.1), order("b", 0.9), order("c", 1.5, country=None)],
        # In time still, since the watermark is at 12:01 minus 10 minutes; and no event.
        [order("d", 0.5, state="VALIDATED"), {"topic": "orders", "problem": "x"}],
        [order("e", 75)],
        # A watermark counts from the next micro-batch on.
        [tick(76)],
        # It is at 13:06: the minute and the hour of these are closed, the day is not.
        [order("f", 0.7), order("g", 74, total=Decimal("0.0001"))],
        # The last millisecond of a day in UTC, and the next one.
        [order("h", DAY / 2 - 1 / 60_000), order("i", DAY / 2), tick(3 * DAY)],
        [tick(3 * DAY)],
    )

    batches = streams.run(closed_windows.transform(events, allowed_lateness_ms=600_000))

    found = windows_of([row for rows in batches for row in rows if row["country"] != "nowhere"])
    assert found == {
        ("minute", 0, "CREATED", "EIRE"): (2, 50_000),
        ("minute", 0, "VALIDATED", "EIRE"): (1, 25_000),
        ("minute", 1, "CREATED", "unknown"): (1, 25_000),
        ("minute", 74, "CREATED", "EIRE"): (1, 1),
        ("minute", 75, "CREATED", "EIRE"): (1, 25_000),
        ("minute", 719, "CREATED", "EIRE"): (1, 25_000),
        ("minute", 720, "CREATED", "EIRE"): (1, 25_000),
        ("hour", 0, "CREATED", "EIRE"): (2, 50_000),
        ("hour", 0, "VALIDATED", "EIRE"): (1, 25_000),
        ("hour", 0, "CREATED", "unknown"): (1, 25_000),
        ("hour", 60, "CREATED", "EIRE"): (2, 25_001),
        ("hour", 660, "CREATED", "EIRE"): (1, 25_000),
        ("hour", 720, "CREATED", "EIRE"): (1, 25_000),
        # The day was open still: for it the order of 12:00:42 came in time.
        ("day", -720, "CREATED", "EIRE"): (6, 125_001),
        ("day", -720, "VALIDATED", "EIRE"): (1, 25_000),
        ("day", -720, "CREATED", "unknown"): (1, 25_000),
        ("day", 720, "CREATED", "EIRE"): (1, 25_000),
    }


def test_latencies_join_in_any_order_of_arrival_and_state_is_forgotten_behind_the_watermark(
    streams: Streams,
) -> None:
    from spark_analytics.jobs import latencies

    orders = streams.stream(
        "orders",
        [order("a", 0), order("a", 0, state="VALIDATED"), order("slow", 0)],
        [order("b", 0.5), order("late", -30)],
        [order("end", 60)],
    )
    checks = streams.stream(
        "checks",
        [check("a", 1, "FRAUD"), check("b", 31, "FRAUD"), check("slow", 301, "FRAUD")],
        [check("a", 2, "INVENTORY", "FAIL"), check("nobody", 3, "FRAUD")],
        [check("b", 33, "INVENTORY"), check("end", 3600, "FRAUD")],
    )
    decisions = streams.stream(
        "decisions",
        [later("order-decisions", "a", 4, decision="VALIDATED")],
        [later("order-decisions", "slow", 302, decision="VALIDATED")],
        [
            later("order-decisions", "b", 36, decision="VALIDATED"),
            later("order-decisions", "end", 3604, decision="VALIDATED"),
        ],
    )

    batches = streams.run(latencies.transform(orders, checks, decisions))

    found = {
        (row["order_id"], row["check"]): (
            row["result"],
            row["placed_ms"] - NOON_MS,
            row["checked_latency_ms"],
            row["decided_latency_ms"],
        )
        for rows in batches
        for row in rows
    }
    assert found == {
        ("a", "FRAUD"): ("PASS", 0, 1_000, 4_000),
        ("a", "INVENTORY"): ("FAIL", 0, 2_000, 4_000),
        ("b", "FRAUD"): ("PASS", 30_000, 1_000, 6_000),
        ("b", "INVENTORY"): ("PASS", 30_000, 3_000, 6_000),
        ("end", "FRAUD"): ("PASS", 3_600_000, 0, 4_000),
    }
    # Of an hour only what the last few minutes brought is still there.
    operators = streams.last_progress["stateOperators"]
    assert [operator["numRowsTotal"] for operator in operators] == [2, 2]
