"""Unmodified clients with a cluster of three: every broker is as good as another."""

import uuid
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle

import confluent_kafka
import confluent_kafka.admin
import pytest

from broker.cli import configs
from broker.cli.topics import main as topics
from broker.records.build import build_batch
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages.fetch import FetchRequest, FetchResponse, ReplicaState
from common.kafka.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from common.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from millstream.testing import LocalCluster
from tests.lib.apache_kafka import Tool, kafka_libs, run_tool, run_tools
from tests.lib.raw_kafka import RawConnection
from tests.lib.stock_admins import ADMINS
from tests.lib.stock_clients import CLIENTS, Record
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

RECORDS = [Record(f"key-{number}".encode(), b"value %d" % number) for number in range(60)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(num_partitions=6) as started:
        yield started


def fresh(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


@pytest.mark.parametrize("name", ADMINS)
def test_topics_are_administered_through_every_broker(cluster: LocalCluster, name: str) -> None:
    admin = ADMINS[name]
    addresses = [cluster.address(broker_id) for broker_id in cluster.broker_ids]
    for turn, through in enumerate(addresses):
        # A change is known elsewhere a moment later: brokers follow the metadata, each by itself.
        elsewhere = addresses[turn - 1]
        topic = fresh(name)
        admin.create(through, topic, 3)
        until(lambda: admin.partition_count(elsewhere, topic) == 3)  # noqa: B023 - used at once
        admin.grow(elsewhere, topic, 5)
        # The library may ask any broker for the settings that it is about to change.
        for address in addresses:
            until(lambda: admin.partition_count(address, topic) == 5)  # noqa: B023
        admin.set_config(through, topic, "retention.ms", "7000")
        until(lambda: admin.config(elsewhere, topic, "retention.ms") == "7000")  # noqa: B023
        admin.delete(elsewhere, topic)
        until(lambda: admin.partition_count(through, topic) == 0)  # noqa: B023


@pytest.mark.parametrize("name", CLIENTS)
def test_records_go_to_all_brokers_and_come_back(cluster: LocalCluster, name: str) -> None:
    topic = fresh(name)
    ADMINS["confluent-kafka"].create(cluster.bootstrap_servers, topic, 6)
    assert leaders_of(cluster, topic) == cluster.broker_ids
    records = RECORDS[:6] if name == "kcat" else RECORDS
    CLIENTS[name].produce(cluster.address(1), topic, records, "none")
    found = CLIENTS[name].consume(cluster.address(2), topic, fresh("group"), len(records))
    assert sorted(found) == sorted(records)


def leaders_of(cluster: LocalCluster, topic: str) -> list[int]:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": cluster.bootstrap_servers})

    def leaders() -> list[int]:
        found = admin.list_topics(topic, timeout=30).topics[topic].partitions.values()
        return sorted({partition.leader for partition in found})

    until(lambda: -1 not in leaders())
    return leaders()


def test_who_asks_the_wrong_broker_is_told_the_right_one(cluster: LocalCluster) -> None:
    topic = fresh("misdirected")
    ADMINS["confluent-kafka"].create(cluster.bootstrap_servers, topic, 1)
    (leader,) = leaders_of(cluster, topic)
    other = next(broker for broker in cluster.broker_ids if broker != leader)
    admin = ADMINS["confluent-kafka"]
    until(lambda: admin.partition_count(cluster.address(other), topic) == 1)
    host, _, port = cluster.address(leader).rpartition(":")
    batch = build_batch([(b"key", b"value", (), 1)])
    for _ in range(2):  # What one answer says must not stay in the next.
        with RawConnection(cluster.address(other)) as asking:
            data = TopicProduceData(
                name=topic, partition_data=[PartitionProduceData(index=0, records=batch)]
            )
            produced = asking.ask(
                ApiKey.PRODUCE, 12, ProduceRequest(acks=-1, timeout_ms=9_000, topic_data=[data])
            )
            assert isinstance(produced, ProduceResponse)
            refused = produced.responses[0].partition_responses[0]
            assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert refused.current_leader.leader_id == leader
            assert [(node.node_id, node.host, node.port) for node in produced.node_endpoints] == [
                (leader, host, int(port))
            ]


def test_replicas_are_refused_on_the_listener_of_clients(cluster: LocalCluster) -> None:
    """Brokers have one of their own here; whatever epoch is claimed makes no difference."""
    for broker_id in cluster.broker_ids:
        with RawConnection(cluster.address(broker_id)) as connection:
            for claimed in (-1, 0, 1 << 40):
                state = ReplicaState(replica_id=broker_id % 3 + 1, replica_epoch=claimed)
                answer = connection.ask(ApiKey.FETCH, 17, FetchRequest(replica_state=state))
                assert isinstance(answer, FetchResponse)
                assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_a_group_has_its_coordinator_on_any_broker(cluster: LocalCluster) -> None:
    topic = fresh("grouped")
    ADMINS["confluent-kafka"].create(cluster.bootstrap_servers, topic, 6)
    CLIENTS["confluent-kafka"].produce(cluster.bootstrap_servers, topic, RECORDS, "none")
    groups = {}
    while set(groups) != set(cluster.broker_ids):
        group = fresh("group")
        groups.setdefault(coordinator_of(cluster, group), group)
    for coordinator, group in groups.items():
        for name in ("aiokafka", "confluent-kafka", "kafka-python"):
            member = f"{group}-{name}" if name != "confluent-kafka" else group
            found = CLIENTS[name].consume(cluster.bootstrap_servers, topic, member, len(RECORDS))
            assert sorted(found) == sorted(RECORDS)
        assert {coordinator_of(cluster, group, through) for through in cluster.broker_ids} == {
            coordinator
        }
        assert committed(cluster, group, topic) == len(RECORDS)


def coordinator_of(cluster: LocalCluster, group: str, through: int = 1) -> int:
    found: list[int] = []

    def is_found() -> bool:
        with RawConnection(cluster.address(through)) as connection:
            request = FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
            answer = connection.ask(ApiKey.FIND_COORDINATOR, 4, request)
        assert isinstance(answer, FindCoordinatorResponse)
        found[:] = [one.node_id for one in answer.coordinators if not one.error_code]
        return bool(found)

    until(is_found)
    return found[0]


def committed(cluster: LocalCluster, group: str, topic: str) -> int:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": cluster.bootstrap_servers, "group.id": group}
    )
    partitions = [confluent_kafka.TopicPartition(topic, number) for number in range(6)]
    offsets = [one.offset for one in consumer.committed(partitions, timeout=30)]
    consumer.close()
    return sum(offset for offset in offsets if offset > 0)


KafkaTool = tuple[str, str, Callable[[str], bool]]
KAFKA_TOOLS: Sequence[KafkaTool] = (
    (
        "org.apache.kafka.tools.MetadataQuorumCommand",
        "describe --status",
        lambda said: said.startswith("ClusterId:") and "MaxFollowerLag:" in said,
    ),
    (
        "org.apache.kafka.tools.MetadataQuorumCommand",
        "describe --replication",
        lambda said: said.count("Follower") == 2 and said.count("Leader") == 1,
    ),
    (
        "org.apache.kafka.tools.TopicCommand",
        "--create --topic by-kafka --partitions 3 --config retention.ms=9000",
        lambda said: "Created topic by-kafka." in said,
    ),
)
KAFKA_TOOLS_ON_A_TOPIC: Sequence[KafkaTool] = (
    (
        "org.apache.kafka.tools.TopicCommand",
        "--describe --topic by-kafka",
        lambda said: "PartitionCount: 3" in said and "retention.ms=9000" in said,
    ),
    (
        "kafka.admin.ConfigCommand",
        "--alter --topic by-kafka --add-config cleanup.policy=compact",
        lambda said: "Completed updating config for topic by-kafka." in said,
    ),
    (
        "org.apache.kafka.tools.FeatureCommand",
        "describe",
        lambda said: "Feature: metadata.version" in said,
    ),
)


def test_kafka_s_own_tools_work_with_the_cluster(cluster: LocalCluster) -> None:
    run_kafka_tools(cluster, KAFKA_TOOLS)
    wait_until_all_know(cluster, "by-kafka")
    run_kafka_tools(cluster, KAFKA_TOOLS_ON_A_TOPIC)


def test_a_controller_describes_settings(
    cluster: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    controller = cluster.active_controller()
    address = f"127.0.0.1:{cluster._controller_ports[controller]}"
    to = ("--bootstrap-controller", address, "--describe", "--entity-type", "brokers")
    arguments = (*to, "--entity-name", str(controller), "--all")
    (theirs,) = run_tools(kafka_libs(), [Tool("kafka.admin.ConfigCommand", arguments)])
    assert f"node.id={controller} sensitive=false" in theirs.output
    capsys.readouterr()
    assert configs.main(list(arguments)) == 0
    ours = capsys.readouterr().out.splitlines()
    assert sorted(map(str.strip, ours)) == sorted(map(str.strip, theirs.output.splitlines()))


def run_kafka_tools(cluster: LocalCluster, tools: Sequence[KafkaTool]) -> None:
    """Run each through another broker, and look at what it says."""
    through = [cluster.address(broker_id) for broker_id in cluster.broker_ids]
    asked = [
        Tool(main_class, ("--bootstrap-server", address, *line.split()))
        for (main_class, line, _), address in zip(tools, cycle(through), strict=False)
    ]
    told = run_tools(kafka_libs(), asked)
    for (_, line, is_right), (status, output, errors) in zip(tools, told, strict=True):
        assert status == 0, (line, output, errors)
        assert is_right(output), (line, output)


def wait_until_all_know(cluster: LocalCluster, topic: str) -> None:
    """Wait until it makes no difference which broker is asked for a topic."""

    def is_known_to(address: str) -> bool:
        # A client of its own each time: one that knows the others might ask them.
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": address})
        return topic in admin.list_topics(timeout=30).topics

    until(lambda: all(is_known_to(cluster.address(one)) for one in cluster.broker_ids))


def test_a_report_of_what_is_missing_is_that_of_kafka_s_tool(
    cluster: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    libs = kafka_libs()
    topic = fresh("missing")
    ADMINS["confluent-kafka"].create(cluster.bootstrap_servers, topic, 6)
    cluster.kill(3)
    where = ["--bootstrap-server", cluster.address(1), "--describe", "--topic", topic]

    def ours(report: str) -> str:
        # At first the other brokers may not have read of the topic yet.
        is_known = topics([*where, f"--{report}"]) == 0
        said = capsys.readouterr().out
        return said if is_known else ""

    until(lambda: ours("unavailable-partitions").count("Leader: none") == 2)
    # One start of Java is enough: which partitions a report names is tested without.
    report = "under-min-isr-partitions"
    theirs = run_tool(libs, "org.apache.kafka.tools.TopicCommand", *where, f"--{report}")
    assert (theirs.returncode, theirs.stdout.split()) == (0, ours(report).split())
    assert len(theirs.stdout.splitlines()) == 6  # one replica each, where two are to be in sync
    cluster.start(3)
