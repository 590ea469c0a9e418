"""The job of test_standalone_master: batch and stream over one topic, figures as JSON.

Where it runs is not in it: the master comes from MILLRACE_SPARK_CONF.
"""

import json
import sys

from pyspark.sql import functions as f

from spark_analytics.session import spark_session


def main() -> None:
    servers, topic, checkpoint = sys.argv[1:]
    spark = spark_session("count")
    options = {
        "kafka.bootstrap.servers": servers,
        "subscribe": topic,
        "startingOffsets": "earliest",
    }
    number = f.regexp_extract(f.col("value").cast("string"), r"\d+", 0).cast("int")
    rows = spark.read.format("millrace").options(**options).load().repartition(4)
    counted = rows.agg(f.count("*").alias("rows"), f.sum(number).alias("sum")).first()
    stream = spark.readStream.format("millrace").options(**options).load()
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
    }
    spark.stop()
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
