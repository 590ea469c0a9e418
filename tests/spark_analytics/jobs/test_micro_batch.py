"""Micro-batches with real Avro bytes and a real store; the registry is a few lines of HTTP."""

import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from spark_analytics.serving.layout import connect_reader
from spark_analytics.serving.reader import ServingReader
from spark_analytics.serving.writer import ServingWriter
from tests.lib.order_records import NOON, RECORDS, Record, RecordMaker, fetch_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

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
        from spark_analytics.jobs.event_files import EventFiles
        from spark_analytics.jobs.history import OrderHistory
        from spark_analytics.jobs.micro_batch import MicroBatches
        from spark_analytics.jobs.stateful_queries import TOPICS

        self._spark = spark
        self.folder = path.parent
        self.store = ServingWriter(path)
        connection = connect_reader(path)
        assert connection is not None
        self._reader = ServingReader(connection)
        self.history = OrderHistory(path.parent / "history")
        self.event_files = EventFiles(self.folder / "streams", TOPICS)
        self._batches = MicroBatches(
            self.store,
            (registry_url, ()),
            self.history,
            self.event_files,
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

    def event_contents(self) -> dict[Path, bytes]:
        files = (self.folder / "streams").glob("*/*/*.parquet")
        return {file: file.read_bytes() for file in files}

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
    from spark_analytics.jobs import facts

    row: dict[str, Any] = dict.fromkeys(facts.COLUMNS)
    row |= {"topic": "orders", "version": 2, "state": "VALIDATED", "customer_id": "c"}
    row |= {"ordered_at": NOON, "total": Decimal("2.5000")}
    orders = [{**row, "order_id": f"o{number}"} for number in range(40)]
    for number, order in enumerate(orders):
        job.history.write(pa.Table.from_pylist([order]), "query", number)

    job.history.compact()
    # Run again after a crash.
    job.history.write(pa.Table.from_pylist(orders[-1:]), "query", len(orders) - 1)

    assert len(job.history.files()) == 2
    rows = job.history.read(spark).collect()
    found = [row["order_id"] for row in rows]
    assert {row["total"] for row in rows} == {Decimal("2.5000")}
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
    from spark_analytics.jobs.segments import SegmentsJob

    job.take(one_order(RecordMaker()), 0)
    segments = SegmentsJob(spark, job.store, job.history, 60_000)

    assert segments.make() == 1
    assert segments.make() == 0
    assert job.figures()["segments"][0]["customers"] == 1


def test_queries_with_state_read_each_new_event_once(job: Job, spark: "SparkSession") -> None:
    from spark_analytics.jobs import latencies
    from spark_analytics.jobs.stateful_queries import LATENCIES, TOPICS

    make = RecordMaker()
    job.take([*one_order(make), *one_order(make), make.record("orders", b"junk")], 0)
    job.take(one_order(make), 1)
    job.event_files.hand_on()
    job.take([make.order("b", 1, "CREATED", country="EIRE")], 2)
    job.event_files.hand_on()

    read = [job.event_files.read(spark, LATENCIES, topic) for topic in TOPICS[LATENCIES]]
    orders = run_once(read[0].select("order_id", "state", "country", "total"), job.folder / "1")
    joined = run_once(latencies.transform(*read), job.folder / "2")

    assert sorted(map(tuple, orders)) == [
        ("a", "CREATED", "United Kingdom", Decimal("2.5000")),
        ("a", "VALIDATED", "United Kingdom", Decimal("2.5000")),
        ("b", "CREATED", "EIRE", Decimal("2.5000")),
    ]
    # The order happened at noon and 100 ms; records were appended each second from then on.
    assert {(row["check"], row["checked_latency_ms"]) for row in joined} == {
        ("FRAUD", 1_900),
        ("INVENTORY", 2_900),
        ("ORDER_DETAILS", 3_900),
    }
    # A decision has nothing by which its repetition is known: each has its row.
    assert min(row["decided_latency_ms"] for row in joined) == 4_900


def test_events_for_the_queries_with_state_are_whole_after_a_crash_before_the_commit(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = one_order(RecordMaker())
    with monkeypatch.context() as crashing:
        crashing.setattr(job.store, "commit", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            job.take(records, 0)
    before = job.event_contents()

    job.take(records, 0)

    assert len(before) == 3
    assert job.event_contents() == before


class CrashError(Exception):
    """The process ends here."""


@pytest.mark.parametrize(
    ("place", "after"),
    [
        *(("rename", n) for n in range(3)),
        ("put", 0),
        ("put", 1),
        *(("unlink", n) for n in range(3)),
    ],
)
def test_a_crash_while_files_are_handed_on_loses_and_doubles_nothing(
    job: Job, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch, place: str, after: int
) -> None:
    from spark_analytics.jobs import event_files, facts
    from spark_analytics.jobs.stateful_queries import LATENCIES, TOPICS, WINDOWS

    row: dict[str, Any] = dict.fromkeys(facts.COLUMNS) | {"topic": "orders", "state": "CREATED"}

    def write(*numbers: int) -> None:
        for number in numbers:
            events = pa.Table.from_pylist([{**row, "order_id": f"o{number}"}])
            job.event_files.write(events, "query", number)

    def crashing(real: Any) -> Any:
        left = iter(range(after))

        def call(*arguments: Any) -> Any:
            if next(left, None) is None:
                raise CrashError
            return real(*arguments)

        return call

    write(0, 1, 2)
    with monkeypatch.context() as crash:
        owner = event_files if place == "put" else Path
        crash.setattr(owner, place, crashing(getattr(owner, place)))
        with pytest.raises(CrashError):
            job.event_files.hand_on()
    write(3)
    job.event_files.hand_on()
    # What had begun to leave went first.
    job.event_files.hand_on()

    assert TOPICS[WINDOWS] == ("orders",)
    for query in (WINDOWS, LATENCIES):
        rows = job.event_files.read(spark, query, "orders").select("order_id")
        found = [row["order_id"] for row in run_once(rows, job.folder / f"checkpoint-{query}")]
        assert sorted(found) == ["o0", "o1", "o2", "o3"]


def run_once(frame: "DataFrame", folder: Path) -> list["Row"]:
    """Return what a stream has at this moment."""
    rows: list[Row] = []
    query = (
        frame.writeStream.foreachBatch(lambda batch, _: rows.extend(batch.collect()))
        .option("checkpointLocation", str(folder))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(240)
    return rows
