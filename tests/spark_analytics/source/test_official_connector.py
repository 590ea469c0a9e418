"""`format("kafka")` with Spark's own jars against our broker, beside `format("millstream")`."""

import json

import pytest

pytest.importorskip("pyspark")

import confluent_kafka
from pyspark.sql import functions as f

from millstream.testing import LocalBroker
from tests.lib.spark import create_topic, in_order, produce, source_options, values

pytestmark = [pytest.mark.slow, pytest.mark.interop]
FORMATS = ("kafka", "millstream")


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
    middle = in_order(load(spark.read, "millstream", servers, "chosen"))[200].timestamp
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


def test_only_what_is_committed_goes_through_its_source_and_its_sink(spark, servers, tmp_path):
    create_topic(servers, "transacted", 2)
    create_topic(servers, "passed-on", 1)
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": servers, "transactional.id": "for-spark"}
    )
    producer.init_transactions(30)
    committed = []
    for number in range(12):
        producer.begin_transaction()
        some = range(number * 50, number * 50 + 50)
        for value in some:
            producer.produce("transacted", str(value).encode(), partition=value % 2)
        if number % 3 == 1:
            producer.flush(30)  # It is in the log, and is aborted there.
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
            committed += some
    rows = load(
        spark.readStream,
        "kafka",
        servers,
        "transacted",
        maxOffsetsPerTrigger=130,
        **{"kafka.isolation.level": "read_committed"},
    )
    query = (
        rows.select("key", "value")
        .writeStream.format("kafka")
        .options(**{"kafka.bootstrap.servers": servers, "topic": "passed-on"})
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    found = values(in_order(load(spark.read, "kafka", servers, "passed-on")))
    assert sorted(found) == committed
