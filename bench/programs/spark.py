"""Spark's source against the official Kafka connector: rows/s of both on the same topic.

`python -m bench spark [ROWS]`. A broker for the benchmark, four partitions, values of 200 bytes;
Spark on `local[2]` in one session; every read goes into Spark's `noop` sink, so decoding is not
measured. Each figure is the best of three after one read to warm up. The connector is measured if
its jars are in build/spark-jars (tests/spark_analytics/jars/resolve.sh).
"""

import tempfile
import time
from collections.abc import Callable
from typing import TypeVar

from confluent_kafka import Producer
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.streaming import DataStreamReader, StreamingQuery
from pyspark.sql.streaming.listener import StreamingQueryProgress

from bench.lib.servers import ROOT
from millstream.testing import LocalBroker
from spark_analytics.session import spark_session

ROWS = 1_000_000
VALUE_BYTES = 200
PARTITIONS = 4
ROUNDS = 3
TOPIC = "bench"
JARS = ROOT / "build" / "spark-jars"


def main(arguments: list[str]) -> int:
    """Read the topic with each source that is there, and print rows a second."""
    rows = int(arguments[0]) if arguments else ROWS
    jars = sorted(str(path) for path in JARS.glob("*.jar"))
    formats = ["millstream", *(["kafka"] if jars else [])]
    settings = {"spark.master": "local[2]", "spark.jars": ",".join(jars)}
    with LocalBroker(is_testing=False, num_partitions=PARTITIONS) as broker:
        produce(broker.bootstrap_servers, rows)
        spark = spark_session("bench", **settings)
        spark.sparkContext.setLogLevel("ERROR")
        print(f"rows equal: {are_rows_equal(spark, broker.bootstrap_servers, formats)}")
        for name in formats:
            measure(spark, broker.bootstrap_servers, name, rows)
        spark.stop()
    return 0


def produce(servers: str, rows: int) -> None:
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 50, "log_level": 3})
    value = b"v" * (VALUE_BYTES - 8)
    for first in range(0, rows, 10_000):
        numbers = range(first, min(first + 10_000, rows))
        messages = [{"key": b"%d" % n, "value": value + b"%08d" % n} for n in numbers]
        producer.produce_batch(TOPIC, messages, partition=first // 10_000 % PARTITIONS)
        producer.flush()


def measure(spark: SparkSession, servers: str, name: str, rows: int) -> None:
    batch = best(lambda: read_batch(reader(spark.read, servers, name).load()))
    stream = best(lambda: read_stream(reader(spark.readStream, servers, name).load()))
    inside = max(
        rows / sum(p["durationMs"]["addBatch"] for p in stream_progress(spark, servers, name)) * 1e3
        for _ in range(ROUNDS)
    )
    print(
        f"{name:9} batch {rows / batch:9,.0f} rows/s  stream {rows / stream:9,.0f} rows/s"
        f"  within addBatch {inside:9,.0f} rows/s"
    )


Reader = TypeVar("Reader", DataFrameReader, DataStreamReader)


def reader(start: Reader, servers: str, name: str) -> Reader:
    return (
        start.format(name)
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", TOPIC)
        .option("startingOffsets", "earliest")
    )


def read_batch(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def read_stream(frame: DataFrame) -> StreamingQuery:
    with tempfile.TemporaryDirectory() as checkpoint:
        query = (
            frame.writeStream.format("noop")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    return query


def stream_progress(spark: SparkSession, servers: str, name: str) -> list[StreamingQueryProgress]:
    return read_stream(reader(spark.readStream, servers, name).load()).recentProgress


def best(run: Callable[[], object]) -> float:
    seconds = []
    for _ in range(ROUNDS + 1):
        started = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
    return min(seconds[1:])


def are_rows_equal(spark: SparkSession, servers: str, formats: list[str]) -> bool:
    """Compare the count and an order-independent digest of whole rows."""
    digests = {
        str(
            reader(spark.read, servers, name)
            .load()
            .selectExpr("count(*)", "sum(cast(xxhash64(*) as decimal(38, 0)))")
            .collect()
        )
        for name in formats
    }
    print(*digests, sep="\n")
    return len(digests) == 1
