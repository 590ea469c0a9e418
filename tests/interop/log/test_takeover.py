"""One data directory that Apache Kafka and this broker run on in turn: nothing in it is lost."""

import subprocess
import sys
from pathlib import Path

import confluent_kafka
import confluent_kafka.admin
import pytest

from broker.cli.admin_settings import admin_settings
from common.kafka.admin.client import AdminClient
from common.kafka.admin.cluster import describe_features
from tests.lib.apache_kafka import Tool, kafka_libs, run_tools, running_node
from tests.lib.our_node import our_node
from tests.lib.share_group_taken_over import ShareGroupTakenOver
from tests.lib.streams_group_taken_over import StreamsGroupTakenOver
from tests.lib.transactions_taken_over import TransactionsTakenOver

pytestmark = pytest.mark.interop

TOPIC = "orders"
BATCH = 20


def create_topic(bootstrap: str) -> None:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    topic = confluent_kafka.admin.NewTopic(TOPIC, 2, 1, config={"retention.ms": "-1"})
    for created in admin.create_topics([topic]).values():
        created.result(30)


def finalized_levels(bootstrap: str) -> dict[str, int]:
    with AdminClient(admin_settings(bootstrap, None, None)) as client:
        levels, _ = describe_features(client, None)
    return {level.name: level.finalized for level in levels}


def topic_ids(bootstrap: str) -> dict[str, str]:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    described = admin.describe_topics(confluent_kafka.TopicCollection([TOPIC]))
    return {name: str(future.result(30).topic_id) for name, future in described.items()}


def batch(run: int) -> set[str]:
    return {f"{run}-{number}" for number in range(BATCH)}


def go_on(bootstrap: str, run: int) -> None:
    """Read on as the group what the run before produced, and produce for the next."""
    if run:
        for protocol in ("classic", "consumer"):
            assert consume(bootstrap, protocol) == batch(run - 1), protocol
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    for value in batch(run):
        producer.produce(TOPIC, value)
    assert producer.flush(30) == 0


def consume(bootstrap: str, protocol: str) -> set[str]:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"{protocol}-readers",
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([TOPIC])
    values: set[str] = set()
    while len(values) < BATCH:
        message = consumer.poll(30)
        assert message is not None, values
        assert message.error() is None, message.error()
        values.add((message.value() or b"").decode())
    consumer.commit(asynchronous=False)
    consumer.close()
    return values


@pytest.mark.parametrize("is_dynamic", [False, True], ids=["static-voters", "kraft-version-1"])
def test_apache_kafka_and_ours_go_on_with_what_the_other_has_left(
    tmp_path: Path, is_dynamic: bool
) -> None:
    libs = kafka_libs()
    with running_node(libs, tmp_path, is_dynamic=is_dynamic) as bootstrap:
        create_topic(bootstrap)
        ids = topic_ids(bootstrap)
        go_on(bootstrap, 0)
        shared = ShareGroupTakenOver(bootstrap, TOPIC)
        shared.go_on(bootstrap, batch(0))
        streams = StreamsGroupTakenOver(bootstrap)
        streams.go_on(bootstrap, 0)
        transactions = TransactionsTakenOver(bootstrap)
        transactions.go_on(bootstrap, 0)
    for run, node in enumerate(
        (
            our_node(tmp_path),
            running_node(libs, tmp_path, is_dynamic=is_dynamic),
            our_node(tmp_path),
        ),
        1,
    ):
        transactions.prepare(tmp_path / "data", run - 1)
        with node as bootstrap:
            assert topic_ids(bootstrap) == ids
            go_on(bootstrap, run)
            transactions.go_on(bootstrap, run)
            shared.go_on(bootstrap, batch(run))
            assert finalized_levels(bootstrap)["kraft.version"] == int(is_dynamic)
            streams.go_on(bootstrap, run)
    for topic, decoder, kind in (
        ("__share_group_state", "--share-group-state-decoder", "deliveryCount"),
        ("__consumer_offsets", "--offsets-decoder", "sharers"),
        ("__consumer_offsets", "--offsets-decoder", "repartitionSourceTopics"),
    ):
        logs = sorted(map(str, (tmp_path / "data").glob(f"{topic}-*/*.log")))
        arguments = (decoder, "--files", ",".join(logs))
        (theirs,) = run_tools(libs, [Tool("org.apache.kafka.tools.DumpLogSegments", arguments)])
        assert kind in theirs.output, theirs
        dumping = [sys.executable, "-m", "broker", "dump-log", *arguments]
        assert subprocess.check_output(dumping, text=True) == theirs.output
