"""The end of a node's process: in time if the node has failed, cleanly for any number of logs."""

import shutil
from pathlib import Path

import pytest

from broker.server.running import FATAL_STOP_SECONDS
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.framing import encode_request
from common.kafka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from millstream.testing import LocalBroker, LocalCluster
from tests.chaos.disk_shim import EIO, SWITCH, build_shim
from tests.lib.raw_kafka import RawConnection
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

MANY = 4_300
GRACE_SECONDS = 20.0
"""For a machine that has much else to do."""


def topic(name: str, partition_count: int) -> CreatableTopic:
    return CreatableTopic(name=name, num_partitions=partition_count, replication_factor=1)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="a disk that fails needs gcc")
def test_a_node_whose_metadata_log_fails_ends_in_time_though_nobody_answers_it(
    tmp_path: Path,
) -> None:
    """It would leave the quorum and hand over what it leads: to whom, it never hears."""
    environment = {"LD_PRELOAD": str(build_shim(tmp_path))}
    with LocalCluster(has_links=False, environment=environment) as cluster:
        failing = cluster.active_controller()
        others = [node_id for node_id in cluster.node_ids if node_id != failing]
        node = cluster.node(failing)
        with RawConnection(cluster.address(failing)) as connection:
            for node_id in others:
                cluster.pause(node_id)
            (node.data_folder / SWITCH).write_text(f"fail {EIO}")
            request = CreateTopicsRequest(topics=[topic("orders", 1)], timeout_ms=60_000)
            connection.send(encode_request(ApiKey.CREATE_TOPICS, 5, 1, None, request))
            until(lambda: "the metadata log failed" in node.log())
        assert node.wait_until_ended(FATAL_STOP_SECONDS + GRACE_SECONDS) != 0
        for node_id in others:
            cluster.resume(node_id)
            cluster.kill(node_id)


def test_a_node_with_very_many_partitions_is_let_go(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with LocalBroker(log_dirs=data) as broker:
        with RawConnection(broker.bootstrap_servers, timeout_seconds=60) as connection:
            request = CreateTopicsRequest(topics=[topic("many", MANY)], timeout_ms=60_000)
            created = connection.ask(ApiKey.CREATE_TOPICS, 5, request)
            assert created.topics[0].error_code == ErrorCode.NONE  # type: ignore[attr-defined]
        until(lambda: sum(1 for _ in data.glob("many-*")) == MANY)
        broker.stop()
        assert "without the controller" not in broker.log()
        assert (data / ".kafka_cleanshutdown").exists()


def test_a_node_whose_only_directory_is_removed_ends_and_says_why() -> None:
    with LocalCluster(brokers=1, has_links=False) as cluster:
        node = cluster.node(1)
        shutil.rmtree(node.data_folder)
        # The next checkpoint of the high watermarks finds no directory.
        assert node.wait_until_ended(FATAL_STOP_SECONDS + GRACE_SECONDS) == 1
        assert "the log directory of the metadata has failed" in node.log()
