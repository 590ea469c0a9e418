"""The events for the stateful queries: files, a few for each of their micro-batches.

    <folder>/new/<topic>/batch-<query id>-<number>.parquet      one of each exact micro-batch
    <folder>/leaving/<topic>/                                   those that are being merged
    <folder>/<query>/<topic>/batch-<query id>-<number>.parquet  the merged files

The query of the exact figures has decoded every event and knows the repeated ones. It writes the
rest here before the store commits its batch, so the stateful queries need no Python processes,
which would cost more than all their work, and read no event twice. Files are merged before a query
gets them, because Spark takes longer to open one than to read it. Spark deletes a file after its
batch, so each query has its own copy.

Every step can be repeated after a crash. A repeated batch writes the same file again. The files in
`leaving` become one file with the name of the last of them; it is never overwritten, and Spark
ignores a name that it has already read.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema

from spark_analytics.jobs.events import EVENT
from spark_analytics.jobs.history import put

_COLUMNS = (
    *("topic", "problem", "order_id", "state", "country", "total"),
    *("ordered_at", "occurred_at", "appended_at", "check", "result"),
)
_SCHEMA = t.StructType([EVENT[name] for name in _COLUMNS])
_ARROW_SCHEMA = to_arrow_schema(_SCHEMA, timezone="UTC")


class EventFiles:
    """The folder with the files; each query reads some topics."""

    def __init__(self, folder: Path, topics_of: dict[str, tuple[str, ...]]) -> None:
        self._folder = folder
        self._topics_of = topics_of
        self._topics = sorted({topic for topics in topics_of.values() for topic in topics})
        for query, topics in topics_of.items():
            for topic in topics:
                # Spark refuses a folder that does not exist.
                (folder / query / topic).mkdir(parents=True, exist_ok=True)
        for topic in self._topics:
            (folder / "leaving" / topic).mkdir(parents=True, exist_ok=True)

    def write(self, facts: pa.Table, query_id: str, batch_id: int) -> None:
        """Write the new events of a micro-batch; idempotent."""
        for topic in self._topics:
            rows = facts.filter(pc.equal(facts.column("topic"), topic)).select(_COLUMNS)
            if rows.num_rows:
                name = f"batch-{query_id}-{batch_id:09}.parquet"
                put(rows.cast(_ARROW_SCHEMA), self._folder / "new" / topic / name)

    def hand_on(self) -> None:
        """Merge the new files of each topic, and pass the merged file to each query."""
        for topic in self._topics:
            leaving = self._folder / "leaving" / topic
            if not any(leaving.iterdir()):
                for file in sorted((self._folder / "new" / topic).glob("*.parquet")):
                    file.rename(leaving / file.name)
            if files := sorted(leaving.iterdir()):
                self._hand_on(topic, files)

    def _hand_on(self, topic: str, files: list[Path]) -> None:
        targets = [
            self._folder / query / topic / files[-1].name
            for query, topics in self._topics_of.items()
            if topic in topics
        ]
        absent = [target for target in targets if not target.exists()]
        if absent:
            whole = pa.concat_tables([pq.read_table(file, partitioning=None) for file in files])
            for target in absent:
                put(whole, target)
        # The last file is removed last: it gives the name if this is repeated.
        for file in files:
            file.unlink()

    def read(self, spark: SparkSession, query: str, topic: str) -> DataFrame:
        """Return the events of a topic as this query's own stream."""
        return (
            spark.readStream.schema(_SCHEMA)
            .option("cleanSource", "delete")
            .parquet(str(self._folder / query / topic))
        )
