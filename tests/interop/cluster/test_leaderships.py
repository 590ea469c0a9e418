"""The leaders of partitions, and elections: three real brokers that die, stop and come back.

Every test has its own partitions, and leaves all brokers running.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import confluent_kafka
import pytest

from broker.cli.admin_settings import admin_settings
from common.kafka.admin.client import AdminClient
from common.kafka.admin.cluster import UpgradeType, update_features
from common.kafka.admin.configs import ConfigSource, Resource, ResourceType, alter, describe
from common.kafka.admin.settings import AdminSettings
from common.kafka.admin.topics import (
    NO_LEADER,
    PartitionDescription,
    create_topic,
    describe_topics,
    list_topics,
)
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ReplicaState,
)
from millstream.launch import program_command, program_environment
from millstream.testing import LocalBroker, LocalCluster
from tests.lib.apache_kafka import kafka_libs, running_node
from tests.lib.raw_kafka import RawConnection
from tests.lib.replicated_load import Load, are_equal, consumed
from tests.lib.scraped_metrics import metrics_of
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

CHECK_SECONDS = 1
"""Between two looks whether the preferred replicas lead; 300 unless it is set."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(
        has_links=False, leader_imbalance_check_interval_seconds=CHECK_SECONDS
    ) as started:
        yield started


@pytest.fixture(autouse=True)
def _all_run(cluster: LocalCluster) -> Iterator[None]:
    yield
    for broker_id in cluster.broker_ids:
        if cluster.node(broker_id).is_paused:
            cluster.resume(broker_id)
    cluster.start()


def at(cluster: LocalCluster) -> AdminSettings:
    return admin_settings(cluster.bootstrap_servers)


def create(cluster: LocalCluster, topic: str, *replicas: list[int], **configs: str) -> None:
    settings = {name.replace("_", "."): value for name, value in configs.items()}
    with AdminClient(at(cluster)) as client:
        create_topic(client, topic, assignment=list(replicas), configs=settings)
    # Every broker follows the metadata by itself, and any may be asked.
    running = [one for one in cluster.broker_ids if cluster.node(one).is_running]
    until(lambda: all(topic in topics_at(cluster, broker_id) for broker_id in running))
    until(lambda: all(one.isr == one.replicas for one in described(cluster, topic)))


def topics_at(cluster: LocalCluster, broker_id: int) -> set[str]:
    with AdminClient(admin_settings(cluster.address(broker_id))) as client:
        return {topic.name for topic in list_topics(client)}


def described(cluster: LocalCluster, topic: str) -> list[PartitionDescription]:
    with AdminClient(at(cluster)) as client:
        return describe_topics(client, [topic])[0].partitions


def leader_of(cluster: LocalCluster, topic: str) -> int:
    return described(cluster, topic)[0].leader_id


def produce(cluster: LocalCluster, topic: str, value: bytes) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers})
    producer.produce(topic, value)
    assert producer.flush(60) == 0


# --- who is no replica moves nothing ---


class Forgery(NamedTuple):
    version: int
    broker_id: int

    def request(self, topic: str, topic_id: bytes) -> FetchRequest:
        """Say to be a broker that has the first record."""
        wanted = FetchPartition(fetch_offset=1, log_start_offset=0, partition_max_bytes=1_000)
        request = FetchRequest(
            max_wait_ms=0,
            topics=[FetchTopic(topic=topic, topic_id=topic_id, partitions=[wanted])],
        )
        if self.version < 15:
            request.replica_id = self.broker_id
        else:
            request.replica_state = ReplicaState(replica_id=self.broker_id, replica_epoch=-1)
        return request


def test_forged_replicas_commit_nothing(cluster: LocalCluster) -> None:
    create(cluster, "forged", [1, 2, 3])
    with AdminClient(at(cluster)) as client:
        topic_id = describe_topics(client, ["forged"])[0].topic_id
    producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers})
    producer.list_topics("forged", 10)
    reports: list[object] = []
    cluster.pause(2)
    cluster.pause(3)
    producer.produce("forged", b"x", on_delivery=lambda *report: reports.append(report))
    with RawConnection(cluster.address(1)) as connection:
        until(lambda: producer.poll(0) == 0 and has_records(cluster, "forged"))
        for version in (12, 14, 15, 17):
            for broker_id in (2, 3):
                request = Forgery(version, broker_id).request("forged", topic_id)
                answer = connection.ask(ApiKey.FETCH, version, request)
                assert isinstance(answer, FetchResponse)
                (told,) = answer.responses[0].partitions
                assert told.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
        consumer = FetchPartition(partition_max_bytes=1_000)
        topics = [FetchTopic(topic_id=topic_id, partitions=[consumer])]
        answer = connection.ask(ApiKey.FETCH, 17, FetchRequest(max_wait_ms=0, topics=topics))
        assert isinstance(answer, FetchResponse)
        assert answer.responses[0].partitions[0].high_watermark == 0
    producer.poll(0)
    assert reports == []
    cluster.resume(2)
    cluster.resume(3)
    assert producer.flush(60) == 0
    assert consumed(cluster.bootstrap_servers, "forged", 1) == [b"x"]


def has_records(cluster: LocalCluster, topic: str) -> bool:
    """Tell whether broker 1 has something of the topic's first partition on its disk."""
    folder = cluster.node(1).data_folder / f"{topic}-0"
    return any(file.stat().st_size for file in folder.glob("*.log"))


# --- who leads ---


def test_leaderships_go_back_to_the_preferred_replica_by_themselves(cluster: LocalCluster) -> None:
    create(cluster, "preferred", [1, 2, 3])

    def elections() -> float:
        name = "kafka_controller_controllerstats_leaderelectionrateandtimems_count"
        return sum(metrics_of(cluster, node_id)[name] for node_id in (2, 3))

    before = elections()
    cluster.kill(1)
    until(lambda: leader_of(cluster, "preferred") == 2)
    assert elections() > before
    cluster.start(1)
    until(lambda: leader_of(cluster, "preferred") == 1)
    until(lambda: described(cluster, "preferred")[0].isr == [1, 2, 3])


def test_without_a_replica_in_sync_nobody_leads_until_that_is_allowed(
    cluster: LocalCluster,
) -> None:
    create(cluster, "unclean", [2, 3], min_insync_replicas="1")
    produce(cluster, "unclean", b"both")
    cluster.kill(3)
    produce(cluster, "unclean", b"only 2")
    cluster.kill(2)
    cluster.start(3)
    until(lambda: leader_of(cluster, "unclean") == NO_LEADER)
    # What the controller does after 3 has come back is in the metadata behind its coming back.
    create(cluster, "afterwards", [1, 3])
    assert leader_of(cluster, "unclean") == NO_LEADER
    with AdminClient(at(cluster)) as client:
        resource = Resource(ResourceType.TOPIC, "unclean")
        alter(client, {resource: {"unclean.leader.election.enable": "true"}})
    until(lambda: leader_of(cluster, "unclean") == 3)
    assert consumed(cluster.bootstrap_servers, "unclean", 1) == [b"both"]
    produce(cluster, "unclean", b"only 3")
    cluster.start(2)
    until(lambda: described(cluster, "unclean")[0].isr == [2, 3])
    assert consumed(cluster.bootstrap_servers, "unclean", 1) == [b"both", b"only 3"]
    until(lambda: are_equal(cluster, [2, 3], "unclean", 1))


def test_a_broker_that_stops_hands_over_before_it_goes(cluster: LocalCluster) -> None:
    create(cluster, "handed-over", *([1, 2, 3] for _ in range(5)))
    with Load(cluster, "handed-over") as load:
        cluster.stop(1)
        load.goes_on()
    until(lambda: {one.leader_id for one in described(cluster, "handed-over")} <= {2, 3})
    records = metadata_records(cluster, cluster.active_controller())
    topic_id = topic_id_text(records, "handed-over")
    of_broker = [
        index
        for index, (kind, data) in enumerate(records)
        if kind == "BROKER_REGISTRATION_CHANGE_RECORD" and data["brokerId"] == 1
    ]
    leaves, gone = of_broker[-2:]
    assert records[leaves][1]["inControlledShutdown"] == 1
    assert records[gone][1]["fenced"] == 1
    moved = {
        data["partitionId"]: index
        for index, (kind, data) in enumerate(records)
        if kind == "PARTITION_CHANGE_RECORD"
        and data["topicId"] == topic_id
        and data.get("leader", 1) in {2, 3}
    }
    assert moved.keys() == set(range(5))
    assert all(leaves < index < gone for index in moved.values())


def metadata_records(cluster: LocalCluster, node_id: int) -> list[tuple[str, dict[str, Any]]]:
    """Give all records of a node's metadata log."""
    files = sorted(cluster.node(node_id).data_folder.glob("__cluster_metadata-0/*.log"))
    command = program_command(
        "broker",
        "dump-log",
        "--cluster-metadata-decoder",
        "--files",
        ",".join(map(str, files)),
    )
    dumped = subprocess.run(
        command, env=program_environment(), capture_output=True, text=True, check=True, timeout=120
    )
    payloads = (line.partition(" payload: ")[2] for line in dumped.stdout.splitlines())
    records = [json.loads(payload) for payload in payloads if payload.startswith("{")]
    return [(record["type"], record["data"]) for record in records]


def topic_id_text(records: list[tuple[str, dict[str, Any]]], topic: str) -> str:
    (found,) = (
        data["topicId"]
        for kind, data in records
        if kind == "TOPIC_RECORD" and data["name"] == topic
    )
    return str(found)


# --- who may lead though it is not in sync ---


@pytest.mark.parametrize("is_clean", [True, False], ids=["stopped", "killed"])
def test_an_eligible_leader_is_one_still_if_it_was_stopped_and_not_if_it_was_killed(
    cluster: LocalCluster, is_clean: bool
) -> None:
    topic = f"eligible-{is_clean}"
    create(cluster, topic, [2, 3], min_insync_replicas="2")
    produce(cluster, topic, b"both")
    if is_clean:
        cluster.stop(3)
    else:
        cluster.kill(3)
    until(lambda: described(cluster, topic)[0].elr == [3])
    cluster.kill(2)
    cluster.start(3)
    if is_clean:
        until(lambda: leader_of(cluster, topic) == 3)
    else:
        until(lambda: described(cluster, topic)[0].elr == [2])
        create(cluster, f"after-{topic}", [1, 3])
        assert leader_of(cluster, topic) == NO_LEADER
    cluster.start(2)
    until(lambda: described(cluster, topic)[0].isr == [2, 3])
    assert consumed(cluster.bootstrap_servers, topic, 1) == [b"both"]


# --- what is told of it ---


MANAGER = "kafka_server_replicamanager_"


def missing_at(cluster: LocalCluster, leader: int) -> tuple[int, int]:
    """Count the partitions that a broker leads without all, and without enough, in sync."""
    with AdminClient(at(cluster)) as client:
        partitions = [one for topic in list_topics(client) for one in topic.partitions]
    led = [one for one in partitions if one.leader_id == leader]
    missing = [one for one in led if len(one.isr) < len(one.replicas)]
    # Every topic here wants two in sync, but those with partitions on 2 and 3 alone.
    return len(missing), sum(len(one.isr) < 2 for one in missing)


def test_metrics_tell_of_replicas_that_are_missing(cluster: LocalCluster) -> None:
    create(cluster, "counted", [1, 2, 3], [2, 3, 1])
    create(cluster, "pair", [1, 3])
    bad = ("underreplicatedpartitions", "underminisrpartitioncount")

    def told(*names: str) -> tuple[float, ...]:
        metrics = metrics_of(cluster, 1)
        return tuple(metrics[MANAGER + name] for name in names)

    until(lambda: told(*bad) == missing_at(cluster, 1) == (0, 0))
    (expands,) = told("isrexpands_total")
    cluster.kill(3)
    until(lambda: described(cluster, "pair")[0].isr == [1])
    until(lambda: told(*bad) == missing_at(cluster, 1))
    assert min(told(*bad)) > 0
    cluster.start(3)
    until(lambda: told(*bad) == missing_at(cluster, 1) == (0, 0))
    assert told("isrexpands_total")[0] > expands


# --- how many connections replicas are fetched by ---


def test_fetchers_become_more_and_fewer_while_they_fetch(cluster: LocalCluster) -> None:
    create(cluster, "fetched", *([1, 2, 3] for _ in range(4)))

    def fetchers() -> set[str]:
        lags = (name for name in metrics_of(cluster, 3) if "consumerlag" in name)
        found = (re.search(r'clientId="(.*)-1",.*topic="fetched"', name) for name in lags)
        return {each[1] for each in found if each is not None}

    until(lambda: fetchers() == {"ReplicaFetcherThread-0"})
    with Load(cluster, "fetched") as load, AdminClient(at(cluster)) as client:
        for count, names in (
            ("2", {"ReplicaFetcherThread-0", "ReplicaFetcherThread-1"}),
            (None, {"ReplicaFetcherThread-0"}),
        ):
            alter(client, {Resource(ResourceType.BROKER, "3"): {"num.replica.fetchers": count}})
            until(lambda: fetchers() == names)  # noqa: B023 - used at once
            load.goes_on()
    until(lambda: are_equal(cluster, cluster.broker_ids, "fetched", 4))
    until(lambda: all(one.isr == [1, 2, 3] for one in described(cluster, "fetched")))


# --- min.insync.replicas of one broker ---


def test_producers_wait_until_fewer_need_be_in_sync(cluster: LocalCluster) -> None:
    create(cluster, "strict", [1, 2, 3])
    of_topic = Resource(ResourceType.TOPIC, "strict")
    reports: list[object] = []
    settings = {"bootstrap.servers": cluster.bootstrap_servers}
    patient = confluent_kafka.Producer(settings)
    impatient = confluent_kafka.Producer({**settings, "retries": 0})
    with AdminClient(at(cluster)) as client:
        cluster.kill(3)
        until(lambda: described(cluster, "strict")[0].isr == [1, 2])
        alter(client, {of_topic: {"min.insync.replicas": "3"}})

        def refusal() -> int:
            errors: list[confluent_kafka.KafkaError | None] = []
            impatient.produce("strict", b"no", on_delivery=lambda error, _: errors.append(error))
            assert impatient.flush(60) == 0
            (error,) = errors
            return 0 if error is None else error.code()

        until(lambda: refusal() == confluent_kafka.KafkaError.NOT_ENOUGH_REPLICAS)
        patient.produce("strict", b"yes", on_delivery=lambda *report: reports.append(report[0]))
        until(lambda: refusal() != 0)  # as was the other's first attempt
        patient.poll(0)
        assert reports == []
        alter(client, {of_topic: {"min.insync.replicas": "2"}})
        assert patient.flush(60) == 0
    assert reports == [None]
    assert b"yes" in consumed(cluster.bootstrap_servers, "strict", 1)


ELR = "eligible.leader.replicas.version"
OF_BROKER, OF_CLUSTER = Resource(ResourceType.BROKER, "1"), Resource(ResourceType.BROKER, "")


def min_isr_of(client: AdminClient, resource: Resource) -> list[tuple[str | None, ConfigSource]]:
    entries = describe(client, resource, with_synonyms=False)
    return [(one.value, one.source) for one in entries if one.name == "min.insync.replicas"]


def told_of_min_isr(bootstrap: str) -> list[object]:
    """Set and take out `min.insync.replicas` everywhere, with the feature and without; say all."""
    said: list[object] = []
    with AdminClient(admin_settings(bootstrap)) as client:

        def try_all() -> None:
            for resource in (OF_BROKER, OF_CLUSTER):
                for value in ("2", None, "3"):
                    try:
                        alter(client, {resource: {"min.insync.replicas": value}})
                        said.append("done")
                    except KafkaError as error:
                        said.append((error.code, str(error)))

        def raise_or_lower(level: int) -> None:
            kind = UpgradeType.UPGRADE if level else UpgradeType.SAFE_DOWNGRADE
            outcome = update_features(client, {ELR: level}, kind, dry_run=False)[ELR]
            said.append(outcome and str(outcome))

        raise_or_lower(0)
        try_all()
        until(lambda: min_isr_of(client, OF_BROKER)[0][0] == "3")
        raise_or_lower(1)
        until(lambda: min_isr_of(client, OF_BROKER)[0][1] != ConfigSource.DYNAMIC_BROKER_CONFIG)
        said.append(min_isr_of(client, OF_BROKER))
        try_all()
        until(lambda: min_isr_of(client, OF_CLUSTER)[0][0] == "3")
        said.append(min_isr_of(client, OF_CLUSTER))
    return said


def test_min_insync_replicas_of_one_broker_goes_as_in_kafka(tmp_path: Path) -> None:
    with LocalBroker() as ours:
        said = told_of_min_isr(ours.bootstrap_servers)
    with running_node(kafka_libs(), tmp_path) as bootstrap:
        assert said == told_of_min_isr(bootstrap)
