"""Micro-batches with real Avro bytes and a real store; the registry is a few lines of HTTP."""

import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from spark_analytics.serving.layout import connect_reader
from spark_analytics.serving.reader import ServingReader
from spark_analytics.serving.writer import ServingWriter
from tests.lib.order_records import NOON, RECORDS, Record, RecordMaker, fetch_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_analytics.jobs.micro_batch import Committed

pytestmark = [pytest.mark.slow, pytest.mark.interop]


class RegistryHandler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        try:
            schema = fetch_schema(int(self.path.rpartition("/")[2]))
        except KeyError:
            self.send_error(404)
            return
        body = json.dumps({"schema": json.dumps(schema)}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def registry_url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), RegistryHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


class Job:
    """Feeds batches into a store, as the query would."""

    def __init__(self, spark: "SparkSession", registry_url: str, path: Path) -> None:
        from spark_analytics.jobs.history import OrderHistory
        from spark_analytics.jobs.micro_batch import MicroBatches

        self._spark = spark
        self.store = ServingWriter(path)
        connection = connect_reader(path)
        assert connection is not None
        self._reader = ServingReader(connection)
        self.history = OrderHistory(path.parent / "history")
        self._batches = MicroBatches(
            self.store,
            registry_url,
            self.history,
            allowed_lateness_ms=60_000,
            timestamp_ms=lambda: 0,
        )

    def take(
        self, records: list[Record], batch_id: int, query_id: str = "query"
    ) -> "Committed | None":
        frame = self._spark.createDataFrame(records, RECORDS)
        return self._batches.process(frame, query_id, batch_id)

    def figures(self) -> dict[str, Any]:
        snapshot = self._reader.snapshot()
        return {name: value for name, value in snapshot.items() if name != "revision"}

    def close(self) -> None:
        self.store.close()
        self._reader.close()


@pytest.fixture
def job(spark: "SparkSession", registry_url: str, tmp_path: Path) -> Iterator[Job]:
    job = Job(spark, registry_url, tmp_path / "serving.sqlite")
    yield job
    job.close()


def one_order(make: RecordMaker) -> list[Record]:
    return [
        make.order("a", 1, "CREATED"),
        *[make.verdict("a", check) for check in ("FRAUD", "INVENTORY", "ORDER_DETAILS")],
        make.decision("a", "VALIDATED"),
        make.order("a", 2, "VALIDATED"),
    ]


def test_an_order_counts_once_however_often_it_is_delivered(job: Job) -> None:
    make = RecordMaker()
    records = one_order(make)
    # Redelivered: the same events at other offsets, within the batch and in a later one.
    again = one_order(make)

    first = job.take([*records, *again], 0)
    figures = job.figures()
    job.take(one_order(make), 1)

    assert first is not None
    assert (first.events, first.repeated, first.set_aside) == (12, 5, 0)
    assert figures["summary"] == {
        "orders": 1,
        "states": {"VALIDATED": 1},
        "checks": {
            check: {"PASS": 1, "FAIL": 0, "ERROR": 0}
            for check in ("FRAUD", "INVENTORY", "ORDER_DETAILS")
        },
        "revenue_validated": "2.50",
    }
    assert job.figures() == figures


def test_batch_that_spark_runs_again_changes_nothing(job: Job) -> None:
    records = one_order(RecordMaker())
    job.take(records, 0)
    figures = job.figures()
    files = {file: file.read_bytes() for file in job.history.files()}

    again = job.take(records, 0)

    assert again is None
    assert job.figures() == figures
    assert len(files) == 1
    assert {file: file.read_bytes() for file in job.history.files()} == files


def test_history_is_whole_after_a_crash_before_the_commit(
    job: Job, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    make = RecordMaker()
    day_before = {"ordered_at": NOON - timedelta(days=1), "total": Decimal("0.0001")}
    records = [
        *one_order(make),
        make.order("b", 1, "CREATED", **day_before),
        make.order("b", 2, "FAILED", **day_before),
        make.record("orders", b"junk"),
    ]
    with monkeypatch.context() as crashing:
        crashing.setattr(job.store, "commit", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            job.take(records, 0)

    job.take(records, 0)

    days = [file.parent.name for file in job.history.files()]
    assert days == ["day=2011-01-31", "day=2011-02-01"]
    rows = job.history.read(spark).orderBy("order_id").collect()
    assert [(row["order_id"], row["state"], row["total"], row["day"]) for row in rows] == [
        ("a", "VALIDATED", Decimal("2.5000"), "2011-02-01"),
        ("b", "FAILED", Decimal("0.0001"), "2011-01-31"),
    ]


def test_many_small_files_become_one_and_no_order_is_lost_or_doubled(
    job: Job, spark: "SparkSession"
) -> None:
    row = {"version": 2, "state": "VALIDATED", "customer_id": "c", "country": None}
    row |= {"ordered_ms": 1_296_561_600_000, "total_e4": 25_000, "day": "2011-02-01"}
    orders = [{**row, "order_id": f"o{number}"} for number in range(40)]
    for number, order in enumerate(orders):
        job.history.write([order], "query", number)

    job.history.compact()
    job.history.write([orders[-1]], "query", len(orders) - 1)  # run again after a crash

    assert len(job.history.files()) == 2
    found = [row["order_id"] for row in job.history.read(spark).collect()]
    assert sorted(found) == sorted(order["order_id"] for order in orders)


def test_lost_checkpoint_counts_nothing_twice(job: Job) -> None:
    records = one_order(RecordMaker())
    job.take(records, 0)
    figures = job.figures()

    job.take(records, 0, query_id="another query, from the beginning")

    assert job.figures() == figures


def test_records_that_are_no_events_are_set_aside(job: Job) -> None:
    make = RecordMaker()
    unknown_schema = b"\x00\x00\x00\x00\x63rest"
    bad = [make.record("orders", value) for value in (b"junk", None, b"", unknown_schema)]

    committed = job.take([*bad, *one_order(make)], 0)

    assert committed is not None
    assert committed.set_aside == 4
    assert job.figures()["set_aside"] == 4
    assert job.figures()["summary"]["orders"] == 1


def test_customer_segments_are_made_from_the_history(job: Job, spark: "SparkSession") -> None:
    from spark_analytics.jobs.segments_job import SegmentsJob

    job.take(one_order(RecordMaker()), 0)
    segments = SegmentsJob(spark, job.store, job.history, 60_000)

    assert segments.make() == 1
    assert segments.make() == 0
    assert job.figures()["segments"][0]["customers"] == 1
