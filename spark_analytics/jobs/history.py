"""The history: every order that was validated or failed, as Parquet partitioned by day.

    <folder>/day=2011-02-01/batch-<query id>-<number>.parquet

A micro-batch writes one file for each day it has orders of, named by query and batch, before the
store commits the batch. Spark runs a batch again after a crash; its files then replace themselves,
and a rename puts a file in place as a whole or not at all. So the history never lacks an order that
the store has. It may have one twice (a crash, and the checkpoint lost with it; or a crash within
`compact`), so whoever reads it goes by (order id, version).
"""

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema

from spark_analytics.jobs.events import AMOUNT
from spark_analytics.jobs.topics import ORDERS
from spark_analytics.serving.writer import Row

FINAL_STATES = ("VALIDATED", "FAILED")
COMPACT_FROM_FILES = 32
_FIELDS = {
    "order_id": t.StringType(),
    "version": t.IntegerType(),
    "state": t.StringType(),
    "customer_id": t.StringType(),
    "country": t.StringType(),
    "ordered_at": t.TimestampType(),
    "total": AMOUNT,
}
_SCHEMA = t.StructType([t.StructField(name, kind) for name, kind in _FIELDS.items()])


def transform(events: DataFrame) -> DataFrame:
    """Return order_id, version, state, customer_id, country, ordered_ms, total_e4, day."""
    finished = events.where((f.col("topic") == ORDERS) & f.col("state").isin(*FINAL_STATES))
    return finished.select(
        *("order_id", "version", "state", "customer_id", "country"),
        f.unix_millis("ordered_at").alias("ordered_ms"),
        (f.col("total") * 10_000).cast("long").alias("total_e4"),
        f.date_format("ordered_at", "yyyy-MM-dd").alias("day"),
    )


class OrderHistory:
    """The folder with the files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, rows: Sequence[Row], query_id: str, batch_id: int) -> None:
        """Write what a micro-batch brings; writing the same batch again changes nothing."""
        for day in sorted({row["day"] for row in rows}):
            name = f"batch-{query_id}-{batch_id:09}.parquet"
            table = _table([row for row in rows if row["day"] == day])
            _put(table, self._folder / f"day={day}" / name)

    def files(self) -> list[Path]:
        """Return all files, in order."""
        return sorted(self._folder.glob("day=*/*.parquet"))

    def read(self, spark: SparkSession) -> DataFrame:
        """Return all of it, each event once."""
        schema = t.StructType([*_SCHEMA.fields, t.StructField("day", t.StringType())])
        frame = spark.read.schema(schema).parquet(str(self._folder))
        return frame.dropDuplicates(["order_id", "version"])

    def compact(self) -> None:
        """Make one file of each day's many: a stream writes a small one every second."""
        for folder in sorted({file.parent for file in self.files()}):
            files = sorted(folder.glob("*.parquet"))
            if len(files) < COMPACT_FROM_FILES:
                continue
            whole = pa.concat_tables([pq.read_table(file, partitioning=None) for file in files])
            _put(whole, folder / f"compact-{files[-1].name}")
            for file in files:
                file.unlink()


def _put(table: pa.Table, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    # Spark and `glob` above pass over what begins with a dot.
    unfinished = target.with_name(f".{target.stem}.unfinished")
    pq.write_table(table, unfinished)
    unfinished.replace(target)


def _table(rows: Sequence[Row]) -> pa.Table:
    values: dict[str, list[Any]] = {
        name: [row[name] for row in rows] for name in _FIELDS if name not in ("ordered_at", "total")
    }
    values["ordered_at"] = [row["ordered_ms"] * 1000 for row in rows]
    values["total"] = [Decimal(row["total_e4"]).scaleb(-4) for row in rows]
    schema = to_arrow_schema(_SCHEMA, timezone="UTC")
    return pa.table([pa.array(values[entry.name], entry.type) for entry in schema], schema=schema)
