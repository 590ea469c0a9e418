"""A mirror between two real brokers, there and back: records, settings, partitions, groups."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.cimpl import NewPartitions, NewTopic
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from millstream.mirror import Heartbeat, RemoteClusterUtils, TopicPartition
from millstream.testing import LocalBroker
from mirror.dedicated.whole_topic import whole_topic
from tests.lib.connect_worker import eventually
from tests.lib.mirror_process import (
    MirrorProcess,
    consume_some,
    produce,
    properties_file,
    records,
    run_mirror,
    topic_names,
)
from tests.lib.trace_collector import TraceCollector, running_collector
from tests.mirror.faults.load import Load

pytestmark = pytest.mark.slow


@dataclass
class Clusters:
    a: str
    b: str
    properties: Path
    mirror: MirrorProcess
    collector: TraceCollector


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    folder: Path = tmp_path_factory.mktemp("mirror")
    with running_collector() as collector, LocalBroker() as a, LocalBroker() as b:
        addresses = {"a": a.bootstrap_servers, "b": b.bootstrap_servers}
        settings = {
            "a->b.enabled": "true",
            "b->a.enabled": "true",
            "sync.group.offsets.enabled": "true",
            "tasks.max": "2",
        }
        make_topic(a.bootstrap_servers, "orders", 3, {"retention.ms": "123456789"})
        produce(a.bootstrap_servers, "orders", range(300), 3)
        properties = properties_file(folder, addresses, settings)
        process = MirrorProcess(properties)
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("OTEL_TRACES_EXPORTER", "otlp")
            environment.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
            environment.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
            process.start()
        try:
            yield Clusters(a.bootstrap_servers, b.bootstrap_servers, properties, process, collector)
        finally:
            process.stop()


def make_topic(servers: str, name: str, partitions: int, config: dict[str, str]) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(name, partitions, 1, config=config)])[name].result(20)


def config_of(servers: str, topic: str) -> dict[str, str]:
    admin = AdminClient({"bootstrap.servers": servers})
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    told = admin.describe_configs([resource])[resource].result(20)
    return {name: entry.value for name, entry in told.items()}


def test_records_arrive_as_they_are(clusters: Clusters) -> None:
    expected = records(clusters.a, "orders")
    assert len(expected) == 300
    eventually(lambda: records(clusters.b, "a.orders") == expected)


def test_a_copy_is_a_span_in_the_trace_of_its_record(clusters: Clusters) -> None:
    make_topic(clusters.a, "traced", 1, {})
    trace_id, parent_id = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    headers = {"traceparent": f"00-{trace_id}-{parent_id}-01".encode()}
    producer = Producer({"bootstrap.servers": clusters.a})
    producer.produce("traced", b"of no trace")
    producer.produce("traced", b"of a trace", headers=headers)
    producer.produce("traced", b"of none", headers={"traceparent": b"not one"})
    assert producer.flush(20) == 0
    eventually(lambda: len(records(clusters.b, "a.traced")) == 3)

    def spans() -> list[tuple[str, Span]]:
        return [each for each in clusters.collector.spans if each[1].name.endswith(".traced")]

    ((service, span),) = eventually(spans)
    assert (service, span.name, span.kind) == ("mirror", "send a.traced", Span.SPAN_KIND_PRODUCER)
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (trace_id, parent_id)
    assert span.span_id.hex() != parent_id
    told = {one.key: one.value.string_value or one.value.int_value for one in span.attributes}
    assert told == {
        "messaging.system": "kafka",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": "a.traced",
        "messaging.destination.partition.id": "0",
        "messaging.kafka.offset": 1,
    }
    # What reads the copy is in the same trace: the header is as it was.
    (copied,) = [each for each in records(clusters.b, "a.traced") if each[1] == b"of a trace"]
    assert list(headers.items()) in copied


def test_topics_come_with_settings_that_follow(clusters: Clusters) -> None:
    eventually(lambda: "a.orders" in topic_names(clusters.b))
    assert config_of(clusters.b, "a.orders")["retention.ms"] == "123456789"
    change = ConfigEntry("retention.ms", "99999999", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, "orders", incremental_configs=[change])
    admin = AdminClient({"bootstrap.servers": clusters.a})
    admin.incremental_alter_configs([resource])[resource].result(20)
    eventually(lambda: config_of(clusters.b, "a.orders")["retention.ms"] == "99999999")


def test_nothing_goes_round(clusters: Clusters) -> None:
    make_topic(clusters.b, "orders", 1, {})
    produce(clusters.b, "orders", range(10))
    eventually(lambda: len(records(clusters.a, "b.orders")) == 10)
    eventually(lambda: {"a.orders", "a.heartbeats"} <= topic_names(clusters.b))
    of_orders = {each for each in topic_names(clusters.a) if "orders" in each}
    assert of_orders == {"orders", "b.orders"}
    of_orders = {each for each in topic_names(clusters.b) if "orders" in each}
    assert of_orders == {"orders", "a.orders"}


def test_new_partitions_and_topics_are_found(clusters: Clusters) -> None:
    make_topic(clusters.a, "payments", 1, {})
    admin = AdminClient({"bootstrap.servers": clusters.a})
    produce(clusters.a, "payments", range(10))
    eventually(lambda: len(records(clusters.b, "a.payments")) == 10)
    admin.create_partitions([NewPartitions("payments", 4)])["payments"].result(20)
    eventually(
        lambda: len(admin.list_topics("payments", timeout=60).topics["payments"].partitions) == 4
    )
    produce(clusters.a, "payments", range(10, 50), 4)
    eventually(lambda: records(clusters.b, "a.payments") == records(clusters.a, "payments"))


def test_a_group_goes_on_in_the_other_cluster(clusters: Clusters) -> None:
    make_topic(clusters.a, "lines", 1, {})
    produce(clusters.a, "lines", range(100))
    read = consume_some(clusters.a, "lines", "readers", 60)
    offset = eventually(lambda: translated(clusters.b, "a.lines", "readers"))
    assert 0 < offset <= 60
    assert "a.lines" in topic_names(clusters.b)

    def goes_on() -> bool:
        left = consume_from(clusters.b, "a.lines", "readers")
        return left == offset

    eventually(goes_on)
    rest = consume_some(clusters.b, "a.lines", "readers", 100 - offset)
    assert set(read) | set(rest) == set(range(100))


def translated(servers: str, topic: str, group: str) -> int:
    """Return where a group of `a` would go on by its last checkpoint, 0 when it has none."""
    at = TopicPartition(topic, 0)
    found = RemoteClusterUtils.translate_offsets({"bootstrap.servers": servers}, "a", group)
    return found[at].offset if at in found else 0


def consume_from(servers: str, topic: str, group: str) -> int:
    """Return where a group goes on, negative when it has not read there."""
    admin = AdminClient({"bootstrap.servers": servers})
    asked = [ConsumerGroupTopicPartitions(group, [ClientPartition(topic, 0)])]
    (told,) = admin.list_consumer_group_offsets(asked)[group].result(20).topic_partitions
    return int(told.offset)


def commit(servers: str, topic: str, group: str, offset: int) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    told = [ConsumerGroupTopicPartitions(group, [ClientPartition(topic, 0, offset)])]
    (done,) = admin.alter_consumer_group_offsets(told)[group].result(20).topic_partitions
    assert done.error is None, done.error


@contextmanager
def reading(servers: str, topic: str, group: str, count: int) -> Iterator[None]:
    """Read so many records with a group and commit; it stays its member while the block runs."""
    settings = {"group.id": group, "enable.auto.commit": False, "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": servers, **settings})
    try:
        consumer.subscribe([topic])
        last = [eventually(lambda: consumer.poll(0.5)) for _ in range(count)][-1]
        assert last.error() is None, last.error()
        consumer.commit(last, asynchronous=False)
        yield
    finally:
        consumer.close()


def test_offsets_follow_only_while_nobody_reads_in_the_target(clusters: Clusters) -> None:
    make_topic(clusters.a, "visits", 1, {})
    produce(clusters.a, "visits", range(100))
    eventually(lambda: len(records(clusters.b, "a.visits")) == 100)
    with reading(clusters.b, "a.visits", "visitors", 10):
        commit(clusters.a, "visits", "visitors", 100)
        eventually(lambda: translated(clusters.b, "a.visits", "visitors") == 100)
        # Groups are dealt out to two tasks in turn: of two that come behind, one is looked after by
        # the same task, and later than this one in the same round.
        for idle in ("visitors-1", "visitors-2"):
            commit(clusters.a, "visits", idle, 100)
        for idle in ("visitors-1", "visitors-2"):
            eventually(lambda: consume_from(clusters.b, "a.visits", idle) == 100)  # noqa: B023
        assert consume_from(clusters.b, "a.visits", "visitors") == 10
        assert "not committed group=visitors " not in clusters.mirror.log()
    eventually(lambda: consume_from(clusters.b, "a.visits", "visitors") == 100)


def test_heartbeats_say_whose_they_are_and_when(clusters: Clusters) -> None:
    """Those of the flow into b, and, copied from a, those of the flow back."""
    for topic, source, target in (("heartbeats", "a", "b"), ("a.heartbeats", "b", "a")):
        found = eventually(lambda: len(read := records(clusters.b, topic)) > 2 and read)  # noqa: B023
        beats = [Heartbeat.of_record(key, value) for key, value, *_ in found]
        assert {(one.source_cluster_alias, one.target_cluster_alias) for one in beats} == {
            (source, target)
        }
        assert [one.timestamp_ms for one in beats] == [each[4] for each in found]
        assert all(one.timestamp_ms < after.timestamp_ms for one, after in pairwise(beats))


def test_clients_see_what_comes_from_where(clusters: Clusters) -> None:
    settings = {"bootstrap.servers": clusters.b}
    eventually(lambda: RemoteClusterUtils.upstream_clusters(settings) == {"a"})
    assert RemoteClusterUtils.replication_hops(settings, "a") == 1
    assert RemoteClusterUtils.replication_hops(settings, "c") == -1
    assert RemoteClusterUtils.heartbeat_topics(settings) == {"heartbeats", "a.heartbeats"}
    assert RemoteClusterUtils.checkpoint_topics(settings) == {"a.checkpoints.internal"}


def test_a_topic_made_again_is_copied_anew_and_once(clusters: Clusters) -> None:
    """With more records than before, where a consumer reads on, and with fewer."""
    make_topic(clusters.a, "again", 1, {})
    produce(clusters.a, "again", range(20))
    copied = list(range(20))
    admin = AdminClient({"bootstrap.servers": clusters.a})
    for more in (range(100, 150), range(200, 210)):
        eventually(lambda: numbers(clusters.b, "a.again") == copied)  # noqa: B023
        admin.delete_topics(["again"])["again"].result(20)
        make_topic(clusters.a, "again", 1, {})
        produce(clusters.a, "again", more)
        copied = [*copied, *more]
    eventually(lambda: numbers(clusters.b, "a.again")[-10:] == copied[-10:])
    assert numbers(clusters.b, "a.again") == copied


def numbers(servers: str, topic: str) -> list[int]:
    return [int(each[1] or b"") for each in records(servers, topic)]


def test_it_shows_its_flows(clusters: Clusters) -> None:
    eventually(lambda: clusters.mirror.get("/flows")[0]["ready"])
    flows = {each["flow"]: each for each in clusters.mirror.get("/flows")}
    assert set(flows) == {"a->b", "b->a"}
    states = flows["a->b"]["connectors"]
    assert {each["state"] for each in states.values()} == {"RUNNING"}
    assert clusters.mirror.get("/health/ready")["status"] == "healthy"


def test_lag_is_a_metric_of_every_partition(clusters: Clusters) -> None:
    def lags() -> list[float]:
        return [
            float(line.rpartition(" ")[2])
            for line in clusters.mirror.text("/metrics").splitlines()
            if "_replication_offset_lag{" in line and 'topic="a.orders"' in line
        ]

    def is_zero() -> bool:
        return lags() == [0, 0, 0]

    eventually(is_zero)
    assert metric_values(clusters, "_replication_offset{", "a.orders") == [100, 100, 100]
    assert "kafka_connect_mirror_mirrorsourceconnector_record_count_total{" in (
        clusters.mirror.text("/metrics")
    )


def test_how_long_a_checkpoint_took_is_a_metric_of_its_group(clusters: Clusters) -> None:
    """Of a group of its own: a task that starts anew, as others come, knows none before news."""
    make_topic(clusters.a, "calls", 1, {})
    produce(clusters.a, "calls", range(10))
    commit(clusters.a, "calls", "callers", 10)
    eventually(lambda: metric_values(clusters, "_checkpoint_latency_ms_avg{", "a.calls"))


def metric_values(clusters: Clusters, name: str, topic: str) -> list[float]:
    lines = clusters.mirror.text("/metrics").splitlines()
    wanted = [line for line in lines if name in line and f'topic="{topic}"' in line]
    return [float(line.rpartition(" ")[2]) for line in wanted]


def test_status_is_what_the_clusters_tell(clusters: Clusters) -> None:
    def is_even() -> bool:
        there, back = json.loads(run_mirror("status", str(clusters.properties), "--json").stdout)
        lags = {**there["topics"], **back["topics"]}
        return there["flow"] == "a->b" and lags["orders"] == 0

    eventually(is_even)
    said = run_mirror("status", str(clusters.properties)).stdout
    assert "left out  a.orders: came from a" in said
    assert "group     readers: last checkpoint" in said


def test_a_topic_that_is_written_all_the_while_is_read_to_where_it_ended(
    clusters: Clusters,
) -> None:
    make_topic(clusters.a, "busy", 1, {})
    load = Load(clusters.a, "busy", 1)
    load.start()
    try:
        load.more(100)
        client = {"bootstrap.servers": clusters.a, "group.id": "x", "fetch.wait.max.ms": "30000"}
        found = [int(each.value()) for each in whole_topic(client, "busy")]
        assert found == list(range(len(found)))
        assert len(found) >= 100
    finally:
        load.stop()


def test_one_copy_is_compared_and_ends(clusters: Clusters, tmp_path: Path) -> None:
    with LocalBroker() as other:
        addresses = {"a": clusters.a, "c": other.bootstrap_servers}
        told = {
            "a->c.enabled": "true",
            "topics": "orders, lines",
            "emit.heartbeats.enabled": "false",
        }
        file = str(properties_file(tmp_path, addresses, told))
        done = run_mirror(file, "--once")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "(100.0 %)" in done.stdout
        assert done.stdout.count("same     a->c orders-") == 3
        assert "DIFFERS" not in done.stdout
        produce(other.bootstrap_servers, "a.lines", range(1))
        again = run_mirror(file, "--once")
        assert again.returncode == 1
        assert "DIFFERS  a->c lines-0: 100 records" in again.stdout, again.stderr[-3000:]


def delete_records(servers: str, topic: str, partition: int, before: int) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    at = ClientPartition(topic, partition, before)
    (deleted,) = admin.delete_records([at]).values()
    deleted.result(20)


def missing_offsets(process: MirrorProcess, topic: str) -> float:
    found = [
        float(line.rpartition(" ")[2])
        for line in process.text("/metrics").splitlines()
        if "_missing_offsets_total{" in line and f'topic="{topic}"' in line
    ]
    return sum(found)


def test_records_that_are_deleted_before_they_are_copied_are_told_once(tmp_path: Path) -> None:
    with LocalBroker() as a, LocalBroker() as b:
        source = a.bootstrap_servers
        make_topic(source, "short", 2, {})
        produce(source, "short", range(10), 1)
        addresses = {"a": source, "b": b.bootstrap_servers}
        properties = properties_file(tmp_path, addresses, {"a->b.enabled": "true"})
        with MirrorProcess(properties):
            eventually(lambda: len(records(b.bootstrap_servers, "a.short")) == 10)
        # While no mirror runs, forty more come, and all but the last fifteen go.
        produce(source, "short", range(10, 50), 1)
        delete_records(source, "short", 0, 35)
        with MirrorProcess(properties) as process:
            eventually(lambda: len(records(b.bootstrap_servers, "a.short")) == 25)
            eventually(lambda: missing_offsets(process, "a.short") == 25)
            produce(source, "short", range(50, 60), 1)
            eventually(lambda: len(records(b.bootstrap_servers, "a.short")) == 35)
            assert missing_offsets(process, "a.short") == 25
            told = [
                line
                for line in process.log().splitlines()
                if "before they were copied" in line and "WARNING" in line
            ]
            assert len(told) == 1
            assert "offsets 10 to 34 of short-0, 25 in all" in told[0]
