"""Replicas go to other brokers and directories while they are used; records are deleted everywhere.

Three real brokers in racks of their own, each with two log directories.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from broker.cli.reassign_partitions import main as reassign_partitions
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from millstream.testing import LocalCluster
from tests.lib.apache_kafka import Tool, kafka_libs, run_tools
from tests.lib.raw_kafka import RawConnection
from tests.lib.replicated_load import Load, Partition, are_equal, consumed, segments
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

JAVA_REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
JAVA_DELETE_RECORDS = "org.apache.kafka.tools.DeleteRecordsCommand"
THROTTLES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")


class ClusterOfTwoDirectories(LocalCluster):
    """Every broker has the log directories `data` and `more`."""

    def _make_node(self, folder: Path, node_id: int) -> None:
        super()._make_node(folder, node_id)
        self.node(node_id).settings["log.dirs"] = ",".join(map(str, self.directories(node_id)))

    def directories(self, broker_id: int) -> list[Path]:
        return [self.node(broker_id).folder / name for name in ("data", "more")]


@pytest.fixture(scope="module")
def cluster() -> Iterator[ClusterOfTwoDirectories]:
    with ClusterOfTwoDirectories(has_links=False) as started:
        yield started


def create(cluster: LocalCluster, topic: str, *replicas: list[int]) -> None:
    """Create a topic whose partitions lie on these brokers; one in sync is enough."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    wanted = NewTopic(
        topic,
        len(replicas),
        replica_assignment=list(replicas),
        config={"min.insync.replicas": "1"},
    )
    admin.create_topics([wanted])[topic].result()


def fill(cluster: LocalCluster, topic: str, partition_count: int, record_count: int) -> int:
    """Produce records of 10 kB to every partition; give how many bytes that is of each."""
    producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for number in range(record_count):
        for partition in range(partition_count):
            producer.produce(topic, b"%d" % number + b"x" * 10_000, partition=partition)
    assert producer.flush(60) == 0
    return record_count * 10_000


def settings_of(cluster: LocalCluster, kind: ResourceType, name: str) -> dict[str, str]:
    """Give what was set at run time of a topic or a broker."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    (described,) = admin.describe_configs([ConfigResource(kind, name)]).values()
    return {
        key: entry.value for key, entry in described.result().items() if "throttled" in entry.name
    }


def plan(folder: Path, topic: str, *replicas: list[int]) -> str:
    partitions = [
        {"topic": topic, "partition": number, "replicas": wanted}
        for number, wanted in enumerate(replicas)
    ]
    file = folder / "plan.json"
    file.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return str(file)


def test_replicas_move_under_load_no_faster_than_they_may(
    cluster: LocalCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    create(cluster, "moved", [1, 2], [2, 1])
    size_bytes = 2 * fill(cluster, "moved", 2, 200)
    file = plan(tmp_path, "moved", [3, 1], [2, 3])
    where = ["--bootstrap-server", cluster.bootstrap_servers, "--reassignment-json-file", file]
    with Load(cluster, "moved") as load:
        assert reassign_partitions([*where, "--execute", "--throttle", "1000"]) == 0
        until(lambda: Partition(cluster, "moved", 0).replicas == [3, 1, 2])
        assert reassign_partitions([*where, "--cancel"]) == 0
        until(lambda: Partition(cluster, "moved", 0).replicas == [1, 2])
        begin = time.monotonic()
        assert reassign_partitions([*where, "--execute", "--throttle", "1000000"]) == 0
        load.goes_on()
        until(lambda: Partition(cluster, "moved", 0).replicas == [3, 1])
        until(lambda: Partition(cluster, "moved", 1).replicas == [2, 3])
        took_seconds = time.monotonic() - begin
        load.goes_on()
    # What is copied before the first look at the rate, an answer's worth, is free.
    assert took_seconds > 0.9 * (size_bytes - 2_000_000) / 1_000_000
    assert settings_of(cluster, ResourceType.BROKER, "3")[THROTTLES[1]] == "1000000"
    assert reassign_partitions([*where, "--verify"]) == 0
    said = capsys.readouterr().out
    for number in range(2):
        assert f"Reassignment of partition moved-{number} is completed." in said
    # Brokers hear of it each at its own time.
    until(
        lambda: (
            "1000000" not in settings_of(cluster, ResourceType.BROKER, "3").values()
            and not any(settings_of(cluster, ResourceType.TOPIC, "moved").values())
        )
    )
    assert load.acknowledged <= set(consumed(cluster.bootstrap_servers, "moved", 2))
    until(lambda: sorted(segments(cluster, 1, "moved")) == [f"moved-0/{0:020d}.log"])
    until(
        lambda: all(
            segments(cluster, 3, "moved")[name] == data
            for broker_id in (1, 2)
            for name, data in segments(cluster, broker_id, "moved").items()
        )
    )


def test_kafka_s_own_tools_reassign_cancel_and_delete(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    libs = kafka_libs()
    create(cluster, "tools", [1, 2])
    fill(cluster, "tools", 1, 300)
    where = ("--bootstrap-server", cluster.bootstrap_servers)
    given = ("--reassignment-json-file", plan(tmp_path, "tools", [3, 2]))
    offsets = tmp_path / "offsets.json"
    wanted = {"topic": "tools", "partition": 0, "offset": 120}
    offsets.write_text(json.dumps({"version": 1, "partitions": [wanted]}))
    with Load(cluster, "tools") as load:
        executed, listed, cancelled, deleted, again = run_tools(
            libs,
            [
                Tool(JAVA_REASSIGN, (*where, *given, "--execute", "--throttle", "1000")),
                Tool(JAVA_REASSIGN, (*where, "--list")),
                Tool(JAVA_REASSIGN, (*where, *given, "--cancel")),
                Tool(JAVA_DELETE_RECORDS, (*where, "--offset-json-file", str(offsets))),
                Tool(JAVA_REASSIGN, (*where, *given, "--execute")),
            ],
        )
        assert "Successfully started partition reassignment for tools-0" in executed.output
        assert "tools-0: replicas: 3,2,1. adding: 3. removing: 1." in listed.output
        assert "Successfully cancelled partition reassignment for: tools-0" in cancelled.output
        assert "partition: tools-0\tlow_watermark: 120" in deleted.output, deleted
        assert again.status == 0, again.errors
        until(lambda: Partition(cluster, "tools", 0).replicas == [3, 2])
        load.goes_on()
    until(lambda: Partition(cluster, "tools", 0).isr == [2, 3])
    found = consumed(cluster.bootstrap_servers, "tools", 1)
    assert load.acknowledged <= set(found)
    assert found[0].startswith(b"120x")
    until(lambda: segments(cluster, 1, "tools") == {})


def move(cluster: ClusterOfTwoDirectories, broker_id: int, topic: str) -> Path:
    """Let a broker move a partition to its other directory; give where to."""
    here, there = cluster.directories(broker_id)
    if (there / f"{topic}-0").exists():
        here, there = there, here
    topics = [AlterReplicaLogDirTopic(name=topic, partitions=[0])]
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=str(there), topics=topics)])
    with RawConnection(cluster.address(broker_id)) as connection:
        answer = connection.ask(ApiKey.ALTER_REPLICA_LOG_DIRS, 2, request)
    assert isinstance(answer, AlterReplicaLogDirsResponse)
    assert answer.results[0].partitions[0].error_code == 0
    return there / f"{topic}-0"


def test_a_replica_goes_to_another_directory_under_load(cluster: ClusterOfTwoDirectories) -> None:
    create(cluster, "places", [1, 2, 3])
    fill(cluster, "places", 1, 300)
    with Load(cluster, "places") as load:
        for broker_id in (2, 1):  # a follower, then the leader
            place = move(cluster, broker_id, "places")
            until(place.exists)
            load.goes_on()
        assert Partition(cluster, "places", 0).leader == 1
        assert Partition(cluster, "places", 0).isr == [1, 2, 3]
        cluster.kill(1)
        load.goes_on()
        cluster.start(1)
        load.goes_on()
    until(lambda: Partition(cluster, "places", 0).isr == [1, 2, 3])
    until(lambda: are_equal(cluster, cluster.broker_ids, "places", 1))
    assert load.acknowledged <= set(consumed(cluster.bootstrap_servers, "places", 1))


def test_librdkafka_s_delete_records_waits_for_every_replica(cluster: LocalCluster) -> None:
    create(cluster, "deleted", [1, 2, 3])
    fill(cluster, "deleted", 1, 20)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})

    def delete(offset: int, seconds: float) -> int:
        wanted = confluent_kafka.TopicPartition("deleted", 0, offset)
        (done,) = admin.delete_records([wanted], operation_timeout=seconds).values()
        return int(done.result().low_watermark)

    begin = time.monotonic()
    assert [delete(7, 30), delete(confluent_kafka.OFFSET_END, 30)] == [7, 20]
    assert time.monotonic() - begin < 5
    fill(cluster, "deleted", 1, 1)
    cluster.pause(2)  # it is still alive, as far as anybody knows
    with pytest.raises(confluent_kafka.KafkaException) as refused:
        delete(21, 0.5)
    assert refused.value.args[0].code() == confluent_kafka.KafkaError.REQUEST_TIMED_OUT
    cluster.resume(2)
    until(lambda: Partition(cluster, "deleted", 0).isr == [1, 2, 3])
    assert delete(21, 30) == 21
