"""The events that the queries with state read: files, a few for each of their micro-batches.

    <folder>/new/<topic>/batch-<query id>-<number>.parquet      one of each exact micro-batch
    <folder>/leaving/<topic>/                                   those being put together
    <folder>/<query>/<topic>/batch-<query id>-<number>.parquet  many of them, in one

The query of the exact figures has decoded every event already and knows the repeated ones. It
leaves the rest here before the store commits its batch, so the queries with state need no Python
processes, which cost more than all they do, and see no event twice. Files are put together before
they are handed on, since to open one costs Spark more than to read it. Spark deletes a file when it
is done with it, so each query has its own.

Every step can be done again after a crash. A batch that is run again writes the same file again.
What is leaving leaves as one file, named by the last of them; it is never written over, and Spark
passes over a name that it has seen.
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
    """The folder with the files, for queries that each read some topics."""

    def __init__(self, folder: Path, topics_of: dict[str, tuple[str, ...]]) -> None:
        self._folder = folder
        self._topics_of = topics_of
        self._topics = sorted({topic for topics in topics_of.values() for topic in topics})
        for query, topics in topics_of.items():
            for topic in topics:
                # Spark refuses a folder that is not there.
                (folder / query / topic).mkdir(parents=True, exist_ok=True)
        for topic in self._topics:
            (folder / "leaving" / topic).mkdir(parents=True, exist_ok=True)

    def write(self, facts: pa.Table, query_id: str, batch_id: int) -> None:
        """Leave the new events of a micro-batch; doing it again changes nothing."""
        for topic in self._topics:
            rows = facts.filter(pc.equal(facts.column("topic"), topic)).select(_COLUMNS)
            if rows.num_rows:
                name = f"batch-{query_id}-{batch_id:09}.parquet"
                put(rows.cast(_ARROW_SCHEMA), self._folder / "new" / topic / name)

    def hand_on(self) -> None:
        """Let each query have what was left since the last time, as one file of each topic."""
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
        # The last one last: it gives the name, should this be done again.
        for file in files:
            file.unlink()

    def read(self, spark: SparkSession, query: str, topic: str) -> DataFrame:
        """Return the events of a topic as this query's own stream."""
        return (
            spark.readStream.schema(_SCHEMA)
            .option("cleanSource", "delete")
            .parquet(str(self._folder / query / topic))
        )
