"""Brokers of ours are killed, paused and moved from, and what comes of it is explained."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from broker.cli.reassign_partitions import main as reassign_partitions
from common.kafka.admin.cluster import describe_metadata_quorum, unregister_broker
from common.kafka.admin.configs import ResourceType
from common.kafka.admin.coordinators import CoordinatorType, ask_coordinators
from common.kafka.admin.topics import create_topic
from explain.asking.questions import admin_client
from millstream.testing import LocalCluster
from tests.lib.apache_cluster import NODE_IDS, ApacheCluster
from tests.lib.apache_kafka import kafka_libs
from tests.lib.explained import GIVE_UP_SECONDS, Explained
from tests.lib.waiting import until

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SHORT_MS = 1_000
"""How long to wait for a broker that does not answer."""
SETTINGS = {
    "auto.leader.rebalance.enable": "false",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
QUICK = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "300"}
AWAY = {"cluster-broker-fenced", "cluster-voter-silent", "cluster-quorum-at-risk"}
"""What is wrong when one of three nodes is away, each a broker and a voter."""
Start = Callable[..., Explained]


@pytest.fixture
def start() -> Iterator[Callable[..., tuple[LocalCluster, Explained]]]:
    """Start a cluster of three brokers, with one controller apart unless said otherwise."""
    running: list[LocalCluster] = []

    def run(controllers: int | None = 1, **settings: str) -> tuple[LocalCluster, Explained]:
        cluster = LocalCluster(
            brokers=3, controllers=controllers, has_links=False, **{**SETTINGS, **settings}
        )
        running.append(cluster)
        cluster.start()
        return cluster, Explained(cluster.bootstrap_servers)

    yield run
    for one in running:
        one.close()


def place(kafka: Explained, topic: str, *replicas: list[int], **settings: str) -> None:
    """Create a topic with certain replicas for each partition."""
    config = {name.replace("_", "."): value for name, value in settings.items()}
    with admin_client(kafka.access) as client:
        create_topic(client, topic, assignment=list(replicas), configs=config)
    until(lambda: kafka.topic(topic).codes == {"partition-in-sync"})


def problems(kafka: Explained) -> set[str]:
    return {one.code for one in kafka.cluster().problems}


def test_brokers_that_go_away(start: Start) -> None:
    cluster, kafka = start(**QUICK)
    place(kafka, "orders", [1, 2, 3], min_insync_replicas="2")
    place(kafka, "single", [1], [2], [3])
    kafka.produce("orders", 3)
    kafka.commit("fraud", {("single", 2): 0})
    healthy = kafka.cluster()
    assert not healthy.problems
    assert healthy.codes == {"cluster-state", "partition-in-sync"} & healthy.codes

    cluster.kill(3)
    until(lambda: "cluster-broker-fenced" in problems(kafka))
    found = kafka.topic("orders")
    assert [one.code for one in found.problems] == ["partition-replica-down"]
    assert "partition-at-min-isr" in found.codes
    (down,) = kafka.topic("single", 2).problems
    assert down.code == "partition-without-leader-all-replicas-down"
    record = kafka.topic("orders", 0, 1)
    assert record.codes >= {"record-lacking-replicas", "record-readable"}

    cluster.kill(1)
    until(lambda: "partition-below-min-isr" in kafka.topic("orders").codes)
    assert kafka.topic("orders").problems

    cluster.start(1, 3)
    until(lambda: not problems(kafka))
    assert "partition-leader-not-preferred" in kafka.topic("orders").codes

    cluster.kill(3)
    until(lambda: "cluster-broker-fenced" in problems(kafka))
    with admin_client(kafka.access) as client:
        unregister_broker(client, 3)
    until(lambda: "partition-replica-down-unknown-since" in kafka.topic("orders").codes)


def test_the_last_broker_in_sync_is_down(start: Start) -> None:
    cluster, kafka = start(**QUICK)
    place(kafka, "orders", [1, 2])
    kafka.produce("orders", 3)
    cluster.kill(2)
    until(lambda: "partition-replica-down" in kafka.topic("orders").codes)
    kafka.produce("orders", 3)
    cluster.kill(1)
    cluster.start(2)
    code = "partition-without-leader-in-sync-replicas-down"
    until(lambda: code in kafka.topic("orders").codes)
    (problem,) = kafka.topic("orders").problems
    assert (problem.figures["electable"], problem.figures["up"]) == ([1], [2])
    cluster.start(1)
    until(lambda: not problems(kafka))


def test_brokers_of_apache_kafka_that_go_away(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One way through most of the causes here: nodes of Apache's take long to start.

    So they are paused, never killed. The first active controller answers all the time.
    """
    settings = {name.replace(".", "_"): value for name, value in SETTINGS.items()}
    # A marker that is on its way is given up after request.timeout.ms (docs/explain.md).
    settings |= {"offsets_topic_num_partitions": "6", "request_timeout_ms": "300000"}
    with ApacheCluster(kafka_libs(), tmp_path, **settings) as cluster:
        stays, second, third = by_leadership(cluster)
        kafka = Explained(cluster.address(stays))
        place(kafka, "orders", [third, stays, second], min_insync_replicas="2")
        place(kafka, "single", [1], [2], [3])
        place(kafka, "pair", [second, third])
        place(kafka, "strict", [second, third], min_insync_replicas="2")
        throttled = {"leader_replication_throttled_replicas": "*"}
        place(kafka, "copied", [stays, second], [stays, third], **throttled)
        kafka.produce("orders", 3)
        groups = names_by_coordinator(kafka, CoordinatorType.GROUP)
        transactional_ids = names_by_coordinator(kafka, CoordinatorType.TRANSACTION)
        left, lost = groups[stays], groups[third]
        for group in (left, lost):
            kafka.commit(group, {("single", each): 0 for each in range(3)})
        until(lambda: not problems(kafka))
        moved_with_a_throttle(kafka, tmp_path, capsys)
        away, ends = transactional_ids[third], transactional_ids[stays]
        kafka.transactional(away)
        producer = written_in_a_transaction(kafka, ends, ("single", third - 1))

        cluster.pause(third)
        producer.commit_transaction(GIVE_UP_SECONDS)
        with kafka.patience(SHORT_MS):
            until(lambda: "cluster-broker-silent" in problems(kafka))
            until(lambda: problems(kafka) >= AWAY)
            (down,) = kafka.topic("orders").problems
            assert down.code == "partition-replica-down"
            assert "partition-at-min-isr" in kafka.topic("orders").codes
            assert "partition-below-min-isr" in kafka.topic("strict").codes
            (down,) = kafka.topic("single", third - 1).problems
            assert down.code == "partition-without-leader-all-replicas-down"
            record = kafka.topic("orders", 0, 1)
            assert record.codes >= {"record-lacking-replicas", "record-readable"}
            assert "group-partition-without-leader" in kafka.group(left).codes
            until(lambda: "group-coordinator-unavailable" in kafka.group(lost).codes)
            until(lambda: "transaction-coordinator-unavailable" in kafka.transaction(away).codes)
            found = kafka.transaction(ends).codes
            assert found >= {"transaction-ending", "transaction-ending-without-leader"}

            kafka.produce("pair", 3)
            copied_slowly(kafka, ("copied", 1), leader_id=stays)
            cluster.pause(second)
            until(lambda: "cluster-without-controller" in problems(kafka))
            kafka.produce("copied", 2, acks=1)
            wanted = {"record-above-high-watermark", "asking-without-answer"}
            until(lambda: kafka.topic("copied", 0, 1).codes >= wanted)

            cluster.resume(third)
            until(lambda: "partition-replica-behind" in kafka.topic("copied", 1).codes)
            code = "partition-without-leader-in-sync-replicas-down"
            until(lambda: code in kafka.topic("pair").codes)
            (problem,) = [one for one in kafka.topic("pair").problems if one.code == code]
            assert (problem.figures["electable"], problem.figures["up"]) == ([second], [third])
            until(lambda: kafka.transaction(ends).codes == {"transaction-closed"})
            until(lambda: "partition-leader-not-preferred" in kafka.topic("orders").codes)
            until(lambda: "cluster-voter-never-fetched" in problems(kafka))
            with admin_client(kafka.access) as client:
                unregister_broker(client, second)
            until(lambda: "cluster-broker-fenced" not in problems(kafka))
            code = "partition-replica-down-unknown-since"
            until(lambda: code in kafka.topic("orders").codes)

        cluster.break_directory(third)
        with admin_client(kafka.access) as client:
            create_topic(client, "new", assignment=[[third]] * 3)
        until(lambda: "cluster-directory-failed" in problems(kafka))


def written_in_a_transaction(
    kafka: Explained, transactional_id: str, place: tuple[str, int]
) -> Producer:
    """Return a producer with an open transaction that has a record in one partition."""
    producer = kafka.transactional(transactional_id)
    topic, partition = place
    producer.begin_transaction()
    producer.produce(topic, b"mine", partition=partition)
    assert producer.flush(GIVE_UP_SECONDS) == 0
    return producer


def copied_slowly(kafka: Explained, place: tuple[str, int], leader_id: int) -> None:
    """Fill a partition whose topic is throttled, so that one who returns takes a minute to copy it.

    The leader gives a batch, and then none until its average since is below the rate.
    """
    topic, partition = place
    kafka.produce(topic, 6, partition=partition, value=bytes(900_000))
    slow = {"leader.replication.throttled.rate": "1"}
    kafka.alter(str(leader_id), slow, ResourceType.BROKER)


def by_leadership(cluster: ApacheCluster) -> list[int]:
    """Return the ids of the nodes, the active controller first."""
    with admin_client(Explained(cluster.address(NODE_IDS[0])).access) as client:
        leader = describe_metadata_quorum(client).leader_id
    return sorted(NODE_IDS, key=lambda each: each != leader)


def names_by_coordinator(kafka: Explained, kind: CoordinatorType) -> dict[int, str]:
    """Return a name of a group, or a transactional id, for each coordinator."""
    names = [f"name-{number}" for number in range(100)]
    with admin_client(kafka.access, GIVE_UP_SECONDS * 1000) as client:
        found = ask_coordinators(
            client, names, lambda node_id, keys: dict.fromkeys(keys, node_id), kind=kind
        )
    return {node_id: name for name, node_id in found.items() if isinstance(node_id, int)}


def test_a_broker_that_hangs(start: Start) -> None:
    cluster, kafka = start(
        **{"broker.session.timeout.ms": "60000", "replica.lag.time.max.ms": "4000"}
    )
    place(kafka, "orders", [1, 2, 3])
    kafka.produce("orders", 3)
    cluster.pause(3)
    try:
        kafka.produce("orders", 2, acks=1)
        with kafka.patience(SHORT_MS):
            record = kafka.topic("orders", 0, 4)
            (problem,) = record.problems
            assert problem.code == "record-above-high-watermark"
            assert problem.figures["lacking"] == [3]
            assert "cluster-broker-silent" in kafka.cluster().codes
            until(lambda: "partition-replica-behind" in kafka.topic("orders").codes)
            assert "asking-without-answer" in kafka.producer(0).codes
    finally:
        cluster.resume(3)
    until(lambda: not problems(kafka))


def test_a_partition_that_is_moved(
    start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, kafka = start()
    moved_with_a_throttle(kafka, tmp_path, capsys)


def moved_with_a_throttle(
    kafka: Explained, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place(kafka, "large", [1])
    kafka.produce("large", 60, value=bytes(50_000))  # One fetch takes a megabyte at once.
    moves = {
        "version": 1,
        "partitions": [{"topic": "large", "partition": 0, "replicas": [2]}],
    }
    file = folder / "moves.json"
    file.write_text(json.dumps(moves))
    where = ["--bootstrap-server", kafka.bootstrap, "--reassignment-json-file", str(file)]
    assert reassign_partitions([*where, "--execute", "--throttle", "1000"]) == 0
    found = kafka.topic("large")
    assert found.codes >= {"partition-reassigning", "partition-replication-throttled"}
    assert not found.problems
    assert reassign_partitions([*where, "--cancel"]) == 0
    capsys.readouterr()


def test_a_quorum_that_loses_voters(start: Start) -> None:
    cluster, kafka = start(controllers=None, **QUICK)
    leader = cluster.active_controller()
    first, second = [each for each in (1, 2, 3) if each != leader]
    assert not kafka.cluster().problems
    cluster.kill(first)
    until(lambda: "cluster-voter-silent" in problems(kafka))
    assert "cluster-quorum-at-risk" in problems(kafka)
    cluster.kill(second)
    left = Explained(cluster.address(leader))
    with left.patience(SHORT_MS):
        until(lambda: "cluster-without-controller" in left.cluster().codes)
    cluster.start(first)
    until(lambda: "cluster-voter-never-fetched" in problems(kafka))
    cluster.start(second)
    until(lambda: not problems(kafka))


def test_coordinators_and_leaders_that_are_away(start: Start) -> None:
    cluster, kafka = start(**QUICK)
    place(kafka, "orders", [1], [2], [3])
    kafka.commit("fraud", {("orders", 0): 0, ("orders", 1): 0, ("orders", 2): 0})
    kafka.transactional("billing")
    coordinator = kafka.transaction("billing").findings[0].figures["coordinator"]
    other = next(each for each in (1, 2, 3) if each != coordinator)
    producer = written_in_a_transaction(kafka, "billing", ("orders", other - 1))
    cluster.kill(other)
    until(lambda: "cluster-broker-fenced" in problems(kafka))
    producer.commit_transaction(GIVE_UP_SECONDS)  # It is decided, but not written everywhere.
    with kafka.patience(SHORT_MS):
        until(lambda: "transaction-ending-without-leader" in kafka.transaction("billing").codes)
        assert "transaction-ending" in kafka.transaction("billing").codes
        cluster.kill(coordinator)
        until(lambda: "transaction-coordinator-unavailable" in kafka.transaction("billing").codes)
    cluster.start(other, coordinator)
    until(lambda: kafka.transaction("billing").codes == {"transaction-closed"})


def test_a_group_whose_coordinator_or_leader_is_away(start: Start) -> None:
    cluster, kafka = start(**QUICK)
    place(kafka, "orders", [1], [2], [3])
    kafka.commit("fraud", {("orders", each): 0 for each in range(3)})
    with kafka.members("fraud", ["orders"]):
        (state,) = [one for one in kafka.group("fraud").findings if one.code == "group-state"]
    coordinator = state.figures["coordinator"]
    other = next(each for each in (1, 2, 3) if each != coordinator)
    cluster.kill(other)
    until(lambda: "group-partition-without-leader" in kafka.group("fraud").codes)
    cluster.kill(coordinator)
    with kafka.patience(SHORT_MS):
        until(lambda: "group-coordinator-unavailable" in kafka.group("fraud").codes)
    cluster.start(other, coordinator)
    until(lambda: kafka.group("fraud").codes >= {"group-without-members", "group-up-to-date"})
