"""One of a broker's two disks fails under load: what it held is led elsewhere, and nothing else.

A library preloaded into the nodes makes the disk fail (`tests/chaos/disk_faults.c`).
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from millstream.testing import LocalCluster
from tests.chaos.disk_shim import EIO, SWITCH, build_shim
from tests.lib.explained import Explained
from tests.lib.replicated_load import Load, Partition, are_equal, consumed
from tests.lib.scraped_metrics import metrics_of
from tests.lib.waiting import until

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(shutil.which("gcc") is None, reason="a disk that fails needs gcc"),
]

TOPIC, PARTITIONS = "on-two-disks", 8


class ClusterOfTwoDisks(LocalCluster):
    """Every broker has the directories `more`, with the metadata, and `data`, which may fail."""

    def _make_node(self, folder: Path, node_id: int) -> None:
        super()._make_node(folder, node_id)
        node = self.node(node_id)
        node.settings["log.dirs"] = f"{node.folder / 'more'},{node.data_folder}"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ClusterOfTwoDisks]:
    environment = {"LD_PRELOAD": str(build_shim(tmp_path))}
    with ClusterOfTwoDisks(has_links=False, environment=environment) as started:
        admin = AdminClient({"bootstrap.servers": started.bootstrap_servers})
        wanted = NewTopic(TOPIC, PARTITIONS, replica_assignment=[[1, 2, 3]] * PARTITIONS)
        admin.create_topics([wanted])[TOPIC].result()
        yield started


def offline_directories(cluster: LocalCluster, broker_id: int) -> float:
    return metrics_of(cluster, broker_id)["kafka_log_logmanager_offlinelogdirectorycount"]


def test_a_disk_fails_and_only_what_it_held_is_led_elsewhere(cluster: ClusterOfTwoDisks) -> None:
    def held_on(name: str) -> set[int]:
        folders = (cluster.node(1).folder / name).glob(f"{TOPIC}-*")
        return {int(folder.name.rpartition("-")[2]) for folder in folders}

    until(lambda: held_on("data") | held_on("more") == set(range(PARTITIONS)))
    failing, kept = held_on("data"), held_on("more")
    assert failing
    assert kept
    process = cluster.node(1).pid
    with Load(cluster, TOPIC) as load:
        (cluster.node(1).data_folder / SWITCH).write_text(f"fail {EIO}")
        until(lambda: all(Partition(cluster, TOPIC, n).leader != 1 for n in failing))
        until(lambda: all(Partition(cluster, TOPIC, n).isr == [2, 3] for n in failing))
        load.goes_on()
        for number in kept:
            partition = Partition(cluster, TOPIC, number)
            assert (partition.leader, partition.isr) == (1, [1, 2, 3])
        assert offline_directories(cluster, 1) == 1
        assert "cluster-directory-failed" in Explained(cluster.bootstrap_servers).cluster().codes
        assert cluster.node(1).is_running
        assert cluster.node(1).pid == process
        (cluster.node(1).data_folder / SWITCH).unlink()
        cluster.stop(1)
        cluster.start(1)
        load.goes_on()
    until(lambda: all(Partition(cluster, TOPIC, n).isr == [1, 2, 3] for n in range(PARTITIONS)))
    assert offline_directories(cluster, 1) == 0
    assert load.acknowledged <= set(consumed(cluster.bootstrap_servers, TOPIC, PARTITIONS))
    until(lambda: are_equal(cluster, cluster.broker_ids, TOPIC, PARTITIONS))
