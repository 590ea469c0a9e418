"""The options: the connector's names, and an error for everything else."""

import pytest

from spark_analytics.source.offsets import EARLIEST, LATEST
from spark_analytics.source.options import (
    Bound,
    Edge,
    OptionError,
    parse_sink_options,
    parse_source_options,
)

NEEDED = {"kafka.bootstrap.servers": "h:1", "subscribe": "orders"}


def parse(is_stream=True, /, **more):
    return parse_source_options({**NEEDED, **more}, is_stream=is_stream)


def refusal(is_stream=True, /, **more):
    with pytest.raises(OptionError) as error:
        parse(is_stream, **more)
    return str(error.value)


def test_a_stream_starts_at_latest_and_a_batch_is_everything():
    assert parse().start == Edge(bound=Bound.LATEST)
    assert parse(False).start == Edge(bound=Bound.EARLIEST)
    assert parse(False).end == Edge(bound=Bound.LATEST)


def test_names_are_taken_in_any_case():
    options = parse(MaxOffsetsPerTrigger="7", MINPARTITIONS="3", failOnDataLoss="False")
    assert (options.max_offsets_per_trigger, options.min_partitions) == (7, 3)
    assert options.fail_on_data_loss is False


def test_several_topics():
    assert parse(subscribe="a, b,c").topics == ("a", "b", "c")


def test_a_pattern():
    options = parse(subscribe="", subscribePattern="order.*")
    assert options.topic_pattern == "order.*"


def test_partitions_by_name():
    options = parse(subscribe="", assign='{"b": [1, 0], "a": [2]}')
    assert options.assigned == (("a", 2), ("b", 0), ("b", 1))


def test_offsets_by_partition():
    edge = parse(startingOffsets='{"orders": {"0": 23, "1": -2, "2": -1}}').start
    assert edge.offsets == {("orders", 0): 23, ("orders", 1): EARLIEST, ("orders", 2): LATEST}


def test_a_time_wins_over_an_offset():
    edge = parse(
        startingOffsets="earliest", startingOffsetsByTimestamp='{"orders": {"0": 5}}'
    ).start
    assert edge == Edge(timestamps_ms={("orders", 0): 5})
    assert parse(startingTimestamp="5").start == Edge(timestamp_ms=5)


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"assign": "{}"}, "exactly one"),
        ({"subscribe": " "}, "exactly one"),
        ({"subscribe": "", "assign": '{"a": 1}'}, "assign"),
        ({"subscribe": "", "subscribePattern": "("}, "subscribePattern"),
        ({"startingOffset": "earliest"}, "startingoffset"),
        ({"startingOffsets": "soon"}, "startingOffsets"),
        ({"endingOffsets": "latest"}, "batch"),
        ({"maxOffsetsPerTrigger": "0"}, "maxoffsetspertrigger"),
        ({"minPartitions": "many"}, "minpartitions"),
        ({"includeHeaders": "yes"}, "includeheaders"),
        ({"startingOffsetsByTimestampStrategy": "guess"}, "error or latest"),
        ({"kafka.auto.offset.reset": "latest"}, "auto.offset.reset"),
        ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers"),
    ],
)
def test_a_wrong_option_is_named(more, word):
    assert word in refusal(**more)


def test_a_batch_cannot_start_at_latest_nor_end_at_earliest():
    assert "latest" in refusal(False, startingOffsets="latest")
    assert "latest" in refusal(False, startingOffsets='{"orders": {"0": -1}}')
    assert "earliest" in refusal(False, endingOffsets="earliest")


def test_client_settings_are_passed_on_in_librdkafkas_names():
    client = parse(
        **{
            "kafka.isolation.level": "read_committed",
            "kafka.max.poll.records": "500",
            "kafka.fetch.max.wait.ms": "50",
        }
    ).client
    assert client == {
        "bootstrap.servers": "h:1",
        "isolation.level": "read_committed",
        "fetch.wait.max.ms": "50",
    }


def test_credentials_are_read_out_of_the_java_clients_form():
    module = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    client = parse(
        **{"kafka.sasl.jaas.config": f'{module} username="ada" password="a\\"b";'}
    ).client
    assert client["sasl.username"] == "ada"
    assert client["sasl.password"] == 'a"b'


def test_a_sink_needs_to_know_kafka():
    assert parse_sink_options({**NEEDED, "topic": "out"}).topic == "out"
    with pytest.raises(OptionError):
        parse_sink_options({"topic": "out"})
