"""The job of test_standalone_master: batch and stream over one topic, figures as JSON.

    count_by_partition.py SERVERS TOPIC CHECKPOINT [FORMAT ...]

Where it runs is not in it, nor where a format comes from: MILLSTREAM_SPARK_CONF says it. Through
each further format the rows are counted once more.
"""

import json
import sys

from pyspark.sql import functions as f

from spark_analytics.session import spark_session
from tests.lib.spark import source_options


def main(servers: str, topic: str, checkpoint: str, *formats: str) -> None:
    spark = spark_session("count")
    options = source_options(servers, topic)
    number = f.regexp_extract(f.col("value").cast("string"), r"\d+", 0).cast("int")
    rows = spark.read.format("millstream").options(**options).load().repartition(4)
    counted = rows.agg(f.count("*").alias("rows"), f.sum(number).alias("sum")).first()
    stream = spark.readStream.format("millstream").options(**options).load()
    query = (
        stream.groupBy().count().writeStream.format("memory").queryName("streamed")
        .option("checkpointLocation", f"file://{checkpoint}")
        .outputMode("complete").trigger(availableNow=True).start()
    )  # fmt: skip
    query.awaitTermination()
    tracker = spark.sparkContext._jsc.sc().statusTracker()
    answer = {
        "master": spark.sparkContext.master,
        # The driver is in that list too.
        "executors": len(tracker.getExecutorInfos()) - 1,
        "rows": counted["rows"],
        "sum": counted["sum"],
        "streamed": spark.table("streamed").first()["count"],
        "by_format": {
            name: spark.read.format(name).options(**options).load().count() for name in formats
        },
    }
    spark.stop()
    print(json.dumps(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
