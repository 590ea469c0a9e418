"""The history: every order that was validated or failed, as Parquet partitioned by day.

    <folder>/day=2011-02-01/batch-<query id>-<number>.parquet

A micro-batch writes one file for each day of its orders, named by query and batch, before the store
commits the batch. Spark repeats a batch after a crash; its files then replace themselves, and a
rename makes each write atomic. So the history has every order of the store. It may have one twice
(after a crash with a lost checkpoint, or a crash within `compact`), so a reader deduplicates by
(order id, version).
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema

from spark_analytics.jobs.events import EVENT
from spark_analytics.jobs.topics import ORDERS

FINAL_STATES = ("VALIDATED", "FAILED")
COMPACT_FROM_FILES = 32
_COLUMNS = ("order_id", "version", "state", "customer_id", "country", "ordered_at", "total")
_SCHEMA = t.StructType([EVENT[name] for name in _COLUMNS])
_ARROW_SCHEMA = to_arrow_schema(_SCHEMA, timezone="UTC")


class OrderHistory:
    """The folder with the files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, facts: pa.Table, query_id: str, batch_id: int) -> None:
        """Write the orders of a micro-batch; idempotent."""
        is_final = pc.and_(
            pc.equal(facts.column("topic"), ORDERS),
            pc.is_in(facts.column("state"), pa.array(FINAL_STATES)),
        )
        finished = facts.filter(is_final).select(_COLUMNS).cast(_ARROW_SCHEMA)
        days = finished.column("ordered_at").cast(pa.timestamp("us")).cast(pa.date32())
        for day in sorted(days.unique().to_pylist()):
            name = f"batch-{query_id}-{batch_id:09}.parquet"
            put(finished.filter(pc.equal(days, day)), self._folder / f"day={day}" / name)

    def files(self) -> list[Path]:
        """Return all files, in order."""
        return sorted(self._folder.glob("day=*/*.parquet"))

    def read(self, spark: SparkSession) -> DataFrame:
        """Return all events, each once."""
        schema = t.StructType([*_SCHEMA.fields, t.StructField("day", t.StringType())])
        frame = spark.read.schema(schema).parquet(str(self._folder))
        return frame.dropDuplicates(["order_id", "version"])

    def compact(self) -> None:
        """Merge the files of each day: the stream writes a small one every second."""
        for folder in sorted({file.parent for file in self.files()}):
            files = sorted(folder.glob("*.parquet"))
            if len(files) < COMPACT_FROM_FILES:
                continue
            whole = pa.concat_tables([pq.read_table(file, partitioning=None) for file in files])
            put(whole, folder / f"compact-{files[-1].name}")
            for file in files:
                file.unlink()


def put(table: pa.Table, target: Path) -> None:
    """Write a file atomically."""
    target.parent.mkdir(parents=True, exist_ok=True)
    # Spark and `glob` above ignore names that begin with a dot.
    unfinished = target.with_name(f".{target.stem}.unfinished")
    pq.write_table(table, unfinished)
    unfinished.replace(target)
