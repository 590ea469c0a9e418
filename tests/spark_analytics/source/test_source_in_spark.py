"""The source and the sink in a real Spark, against our broker."""

import json
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

pytest.importorskip("pyspark")

from pyspark.errors import PySparkException
from pyspark.sql import functions as f

from millstream.testing import LocalBroker
from tests.lib.spark import create_topic, in_order, produce, source_options, values

pytestmark = [pytest.mark.slow, pytest.mark.interop]


@pytest.fixture(scope="module")
def broker():
    with LocalBroker(num_partitions=3) as broker:
        yield broker


@pytest.fixture
def servers(broker):
    return broker.bootstrap_servers


@pytest.fixture
def topic(servers, request):
    name = request.node.name.replace("[", "-").replace("]", "")
    create_topic(servers, name, 3)
    return name


def read(spark, servers, topic, **more):
    return spark.read.format("millstream").options(**source_options(servers, topic, **more)).load()


def read_stream(spark, servers, topic, **more):
    options = source_options(servers, topic, **more)
    return spark.readStream.format("millstream").options(**options).load()


class Collected:
    """A foreachBatch that keeps the rows, batch by batch."""

    def __init__(self):
        self.batches = []

    def __call__(self, frame, batch_id):
        self.batches.append(frame.collect())

    @property
    def rows(self):
        return [row for batch in self.batches for row in batch]


def run_available(frame, checkpoint):
    """Run a stream over all there is; return its batches."""
    collected = Collected()
    query = (
        frame.writeStream.foreachBatch(collected)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    return collected


@contextmanager
def running(frame, checkpoint):
    """Run a stream with a trigger; stop it between batches."""
    collected = Collected()
    query = (
        frame.writeStream.foreachBatch(collected)
        .option("checkpointLocation", str(checkpoint))
        .trigger(processingTime="200 milliseconds")
        .start()
    )
    try:
        yield query, collected
    finally:
        query.stop()


def test_rows_are_those_a_client_sees(spark, servers, topic):
    produce(servers, topic, range(1000))
    rows = in_order(read(spark, servers, topic, includeHeaders="true"))
    assert rows == rows_of_a_client(servers, topic, 3)
    assert values(rows) == list(range(1000))


def rows_of_a_client(servers, topic, partitions):
    """Read a topic with a plain client, as Spark's rows."""
    from datetime import datetime

    from pyspark.sql import Row

    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "plain", "enable.partition.eof": True}
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    rows, ended = [], 0
    while ended < partitions:
        message = consumer.poll(60)
        assert message is not None
        if message.error():
            ended += 1
            continue
        headers = [Row(key=key, value=value) for key, value in message.headers() or []]
        rows.append(
            Row(
                key=message.key(),
                value=message.value(),
                topic=topic,
                partition=message.partition(),
                offset=message.offset(),
                timestamp=datetime.fromtimestamp(message.timestamp()[1] / 1000),  # noqa: DTZ006 - as Spark
                timestampType=0,
                headers=headers or None,
            )
        )
    consumer.close()
    return sorted(rows, key=lambda row: (row.partition, row.offset))


def test_a_batch_between_offsets_in_small_tasks(spark, servers, topic):
    produce(servers, topic, range(300))
    start = json.dumps({topic: {"0": 10, "1": -2, "2": 5}})
    end = json.dumps({topic: {"0": 20, "1": 7, "2": 5}})
    frame = read(spark, servers, topic, startingOffsets=start, endingOffsets=end, minPartitions=6)
    assert frame.rdd.getNumPartitions() >= 6
    assert [(row.partition, row.offset) for row in in_order(frame)] == [
        *((0, offset) for offset in range(10, 20)),
        *((1, offset) for offset in range(7)),
    ]


def test_an_empty_topic_is_an_empty_frame(spark, servers, topic):
    assert read(spark, servers, topic).collect() == []


def test_a_wrong_option_says_so(spark, servers, topic):
    with pytest.raises(PySparkException, match="startingoffset is not known"):
        read(spark, servers, topic, startingOffset="earliest").collect()


def test_available_now_in_limited_batches_and_again_from_the_checkpoint(
    spark, servers, topic, tmp_path
):
    produce(servers, topic, range(1000))
    frame = read_stream(spark, servers, topic, maxOffsetsPerTrigger=300)
    first = run_available(frame, tmp_path)
    assert values(first.rows) == list(range(1000))
    assert 4 <= len(first.batches) <= 5
    assert max(len(batch) for batch in first.batches) <= 303
    produce(servers, topic, range(1000, 1100))
    second = run_available(frame, tmp_path)
    assert values(second.rows) == list(range(1000, 1100))


def test_a_stream_outlives_its_broker(spark, servers, topic, broker, tmp_path):
    produce(servers, topic, range(100))
    with running(read_stream(spark, servers, topic), tmp_path) as (query, collected):
        query.processAllAvailable()
        broker.kill()
        broker.start()
        produce(servers, topic, range(100, 200))
        query.processAllAvailable()
        assert query.isActive
        assert values(collected.rows) == list(range(200))


def test_new_partitions_are_read_from_their_first_record(spark, servers, topic, tmp_path):
    produce(servers, topic, range(100))
    with running(read_stream(spark, servers, topic), tmp_path) as (query, collected):
        query.processAllAvailable()
        admin = AdminClient({"bootstrap.servers": servers, "log_level": 2})
        admin.create_partitions([NewPartitions(topic, 5)])[topic].result()
        produce(servers, topic, range(100, 300))
        query.processAllAvailable()
        assert values(collected.rows) == list(range(300))
        assert {row.partition for row in collected.rows} == set(range(5))


def test_records_deleted_before_they_were_read_end_the_query_or_are_skipped(
    spark, servers, topic, tmp_path
):
    produce(servers, topic, range(100))
    frame = read_stream(spark, servers, topic)
    seen = values(run_available(frame, tmp_path / "a").rows)
    run_available(frame, tmp_path / "b")
    produce(servers, topic, range(100, 400))
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 2})
    # Everything but the last ten of each partition goes, read or not.
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "ends"})
    places = [TopicPartition(topic, number) for number in range(3)]
    ends = [consumer.get_watermark_offsets(place)[1] for place in places]
    consumer.close()
    cut = [TopicPartition(topic, number, end - 10) for number, end in enumerate(ends)]
    for answer in admin.delete_records(cut).values():
        answer.result()
    with pytest.raises(PySparkException, match="failOnDataLoss"):
        run_available(frame, tmp_path / "a")
    going_on = read_stream(spark, servers, topic, failOnDataLoss="false")
    rest = run_available(going_on, tmp_path / "b").rows
    assert len(rest) == 30
    assert not set(values(rest)) & set(seen)


def test_what_the_sink_writes_comes_back(spark, servers, topic):
    produce(servers, topic, range(500))
    rows = read(spark, servers, topic, includeHeaders="true")
    out = f"{topic}-out"
    create_topic(servers, out, 2)
    (
        rows.select("key", "value", "headers")
        .write.format("millstream")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", out)
        .mode("append")
        .save()
    )
    written = read(spark, servers, out, includeHeaders="true")
    columns = ("key", "value", "headers")
    assert sorted(map(str, written.select(*columns).collect())) == sorted(
        map(str, rows.select(*columns).collect())
    )


def test_a_stream_writes_to_the_topic_of_each_row(spark, servers, topic, tmp_path):
    produce(servers, topic, range(100))
    for name in ("even", "odd"):
        create_topic(servers, f"{topic}-{name}", 1)
    number = f.regexp_extract(f.col("value").cast("string"), r"\d+", 0).cast("int")
    name = f.when(number % 2 == 0, "-even").otherwise("-odd")
    rows = read_stream(spark, servers, topic).select(
        f.concat(f.lit(topic), name).alias("topic"), f.col("value").cast("string").alias("value")
    )
    query = (
        rows.writeStream.format("millstream")
        .option("kafka.bootstrap.servers", servers)
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    for remainder, name in enumerate(("even", "odd")):
        found = values(read(spark, servers, f"{topic}-{name}").collect())
        assert found == list(range(remainder, 100, 2))


def test_a_sink_without_a_topic_or_a_value_says_so(spark, servers):
    frame = spark.range(3)
    for columns, word in (({"value": "text"}, "topic"), ({"topic": "text"}, "value")):
        rows = frame.select(*(f.lit(text).alias(name) for name, text in columns.items()))
        writer = rows.write.format("millstream").option("kafka.bootstrap.servers", servers)
        with pytest.raises(PySparkException, match=word):
            writer.mode("append").save()
