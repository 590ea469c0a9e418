"""`format("kafka")` with Spark's own jars against our broker, beside `format("millrace")`."""

import json

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import functions as f

from millrace.testing import LocalBroker
from tests.lib.spark import create_topic, in_order, produce, source_options, values

pytestmark = [pytest.mark.slow, pytest.mark.interop]
FORMATS = ("kafka", "millrace")


@pytest.fixture(scope="module", autouse=True)
def official_jars(kafka_jars):
    if not kafka_jars:
        pytest.skip("the official connector's jars are not in build/spark-jars, nor is mvn here")


@pytest.fixture(scope="module")
def servers():
    with LocalBroker(num_partitions=3) as broker:
        yield broker.bootstrap_servers


def load(start, name, servers, topic, **more):
    return start.format(name).options(**source_options(servers, topic, **more)).load()


def minutes(rows):
    """A job: it knows columns, not formats."""
    keys = f.coalesce(f.length("key"), f.lit(0)).alias("length")
    return rows.groupBy(keys, "partition").agg(f.count("*").alias("rows"), f.max("offset"))


def run_to_table(frame, name, checkpoint):
    query = (
        frame.writeStream.format("memory")
        .queryName(name)
        .option("checkpointLocation", str(checkpoint))
        .outputMode("complete")
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)


def test_rows_and_schema_are_the_same(spark, servers):
    create_topic(servers, "same", 3)
    produce(servers, "same", range(3000))
    produce(servers, "same", range(3000, 6000), **{"compression.type": "lz4"})
    frames = [load(spark.read, name, servers, "same", includeHeaders="true") for name in FORMATS]
    kafka, ours = frames
    assert ours.schema.simpleString() == kafka.schema.simpleString()
    rows = in_order(ours)
    assert rows == in_order(kafka)
    assert values(rows) == list(range(6000))


def test_the_same_options_choose_the_same_rows(spark, servers):
    create_topic(servers, "chosen", 2)
    produce(servers, "chosen", range(400))
    middle = in_order(load(spark.read, "millrace", servers, "chosen"))[200].timestamp
    choices = [
        {"startingOffsets": json.dumps({"chosen": {"0": 7, "1": -2}})},
        {"endingOffsets": json.dumps({"chosen": {"0": 11, "1": 3}}), "minPartitions": "5"},
        {"startingTimestamp": str(round(middle.timestamp() * 1000))},
    ]
    for choice in choices:
        kafka, ours = (
            in_order(load(spark.read, name, servers, "chosen", **choice)) for name in FORMATS
        )
        assert ours == kafka, choice
        assert kafka, choice


def test_a_job_takes_the_format_by_configuration(spark, servers, tmp_path):
    create_topic(servers, "job", 3)
    produce(servers, "job", range(2000))
    for name in FORMATS:
        rows = load(spark.readStream, name, servers, "job", maxOffsetsPerTrigger=500)
        run_to_table(minutes(rows), name, tmp_path / name)
    kafka, ours = (spark.table(name).orderBy("length", "partition").collect() for name in FORMATS)
    assert ours == kafka
    assert sum(row["rows"] for row in kafka) == 2000


def test_each_reads_what_the_other_writes(spark, servers):
    create_topic(servers, "from", 2)
    produce(servers, "from", range(500))
    rows = load(spark.read, "kafka", servers, "from", includeHeaders="true")
    for name in FORMATS:
        create_topic(servers, f"by-{name}", 1)
        writer = rows.select("key", "value", "headers").write.format(name).mode("append")
        writer.options(**{"kafka.bootstrap.servers": servers, "topic": f"by-{name}"}).save()
    for reader, writer in (FORMATS, FORMATS[::-1]):
        found = load(spark.read, reader, servers, f"by-{writer}", includeHeaders="true")
        columns = ("key", "value", "headers")
        assert sorted(map(str, found.select(*columns).collect())) == sorted(
            map(str, rows.select(*columns).collect())
        )
