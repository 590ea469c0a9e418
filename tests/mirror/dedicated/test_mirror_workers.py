"""A mirror's tasks run in several processes with one file, or in an ordinary Connect worker."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from millstream.mirror import RemoteClusterUtils
from millstream.testing import LocalBroker
from tests.lib.connect_worker import ConnectWorker, eventually
from tests.lib.mirror_process import (
    MirrorProcess,
    consume_some,
    produce,
    properties_file,
    records,
    topic_names,
)

pytestmark = pytest.mark.slow

PARTITIONS = 4
SESSION_MS = "3000"
"""One that is killed is given up after so long."""
PACKAGE = "org.apache.kafka.connect.mirror"
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"


@pytest.fixture(scope="module")
def source() -> Iterator[str]:
    with LocalBroker() as broker:
        servers = broker.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": servers})
        for topic in ("orders", "lines"):
            admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(20)
            produce(servers, topic, range(200), PARTITIONS)
        yield servers


@pytest.fixture
def target() -> Iterator[str]:
    with LocalBroker(**{"group.min.session.timeout.ms": SESSION_MS}) as broker:
        yield broker.bootstrap_servers


def copied_by(mirror: MirrorProcess) -> set[str]:
    """Name the partitions of `orders` that a process copies."""
    (flow,) = mirror.get("/flows")
    return set(flow["topics"].get("a.orders", {}).get("offsets", ()))


def test_two_processes_share_a_flow_and_the_one_that_is_left_does_all(
    source: str, target: str, tmp_path: Path
) -> None:
    told = {"a->b.enabled": "true", "topics": "orders", "tasks.max": str(PARTITIONS)}
    told |= {"session.timeout.ms": SESSION_MS, "b.session.timeout.ms": SESSION_MS}
    told |= {"heartbeat.interval.ms": "500", "b.heartbeat.interval.ms": "500"}
    mirrors = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        file = properties_file(tmp_path / name, {"a": source, "b": target}, told)
        mirrors.append(MirrorProcess(file))
    one, two = mirrors
    everything = {str(number) for number in range(PARTITIONS)}
    with one, two:

        def is_shared() -> bool:
            here, there = copied_by(one), copied_by(two)
            return bool(here and there) and not here & there and here | there == everything

        eventually(is_shared)
        eventually(lambda: records(target, "a.orders") == records(source, "orders"))
        one.kill()
        produce(source, "orders", range(200, 300), PARTITIONS)
        eventually(lambda: copied_by(two) == everything)
        eventually(lambda: numbers(target, "a.orders") >= set(range(300)))


def numbers(servers: str, topic: str) -> set[int]:
    return {int(each[1] or b"") for each in records(servers, topic)}


@pytest.fixture
def worker(target: str, tmp_path: Path) -> Iterator[ConnectWorker]:
    told = {"bootstrap.servers": target, "group.id": "workers"}
    for kind in ("config", "offset", "status"):
        told[f"{kind}.storage.topic"] = f"connect-{kind}"
        told[f"{kind}.storage.replication.factor"] = "1"
    told |= dict.fromkeys(("key.converter", "value.converter", "header.converter"), BYTES)
    with ConnectWorker(tmp_path, told) as worker:
        yield worker


def config(name: str, source: str, target: str) -> dict[str, str]:
    return {
        "connector.class": f"{PACKAGE}.{name}",
        "source.cluster.alias": "a",
        "target.cluster.alias": "b",
        "source.cluster.bootstrap.servers": source,
        "target.cluster.bootstrap.servers": target,
        "topics": "lines",
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
        "heartbeats.topic.replication.factor": "1",
        "refresh.groups.interval.seconds": "1",
        "emit.checkpoints.interval.seconds": "1",
    }


def configure(worker: ConnectWorker, name: str, settings: dict[str, str]) -> None:
    """Make a connector; 409 says to ask again, as workers agree just now on who leads."""

    def is_made() -> bool:
        status, body, _ = worker.call("PUT", f"/connectors/{name}/config", settings)
        assert status in (201, 409), body
        return status == 201

    eventually(is_made)


def offsets_of(worker: ConnectWorker, name: str) -> list[Any]:
    status, body, _ = worker.call("GET", f"/connectors/{name}/offsets")
    assert status == 200, body
    found: list[Any] = body["offsets"]
    return found


def test_the_three_connectors_run_in_a_worker_and_their_offsets_can_be_set(
    source: str, target: str, worker: ConnectWorker
) -> None:
    consume_some(source, "lines", "readers", 200)
    names = ("MirrorSourceConnector", "MirrorCheckpointConnector", "MirrorHeartbeatConnector")
    for name in names:
        configure(worker, name, config(name, source, target))
    for name in names:
        worker.wait_for(name, connector="RUNNING", t0="RUNNING")
    eventually(lambda: "a.lines" in topic_names(target))
    eventually(lambda: records(target, "a.lines") == records(source, "lines"))
    told = {"bootstrap.servers": target}
    eventually(
        lambda: len(RemoteClusterUtils.translate_offsets(told, "a", "readers")) == PARTITIONS
    )
    eventually(lambda: "heartbeats" in RemoteClusterUtils.heartbeat_topics(told))
    check_offsets(worker, source, target)


def _places(worker: ConnectWorker, name: str) -> dict[int, int]:
    """Return how far `lines` is copied; `heartbeats` may be, too, that another mirror has left."""
    return {
        each["partition"]["partition"]: each["offset"]["offset"]
        for each in offsets_of(worker, name)
        if each["partition"]["topic"] == "lines"
    }


def check_offsets(worker: ConnectWorker, source: str, target: str) -> None:
    """Set one back (KIP-875): the last ten of that partition come again, and nothing else."""
    name = "MirrorSourceConnector"
    worker.call("PUT", f"/connectors/{name}/stop")
    worker.wait_for(name, connector="STOPPED")
    place = {"cluster": "a", "topic": "lines", "partition": 0}
    # It is stopped when it is told; its task commits what it has written as it ends.
    eventually(lambda: _places(worker, name) == dict.fromkeys(range(4), 49))
    wrong = {"offsets": [{"partition": place, "offset": {"offset": -1}}]}
    status, body, _ = worker.call("PATCH", f"/connectors/{name}/offsets", wrong)
    assert status >= 400
    assert "needs a number 'offset'" in body["message"]
    back = {"offsets": [{"partition": place, "offset": {"offset": 39}}]}
    status, body, _ = worker.call("PATCH", f"/connectors/{name}/offsets", back)
    assert (status, body["message"]) == (
        200,
        "The offsets for this connector have been altered successfully",
    )
    worker.call("PUT", f"/connectors/{name}/resume")
    before = [each for each in records(source, "lines") if each[2] == 0]
    after = [*before, *before[40:]]
    eventually(lambda: [each for each in records(target, "a.lines") if each[2] == 0] == after)
    assert len(records(target, "a.lines")) == 210
