"""Three real brokers keep every record three times, byte for byte, whichever of them dies."""

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from millrace.testing import LocalCluster
from tests.lib.replicated_load import Load, Partition, are_equal, consumed
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

TOPIC, PARTITIONS = "kept", 3


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(has_links=False) as started:
        admin = AdminClient({"bootstrap.servers": started.bootstrap_servers})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS)])[TOPIC].result()
        yield started


def is_all_in_sync(cluster: LocalCluster) -> bool:
    return all(len(Partition(cluster, TOPIC, n).isr) == 3 for n in range(PARTITIONS))


@pytest.mark.parametrize("fault", ["killed", "stopped", "wiped"])
def test_a_leader_goes_under_load_and_everything_is_kept(cluster: LocalCluster, fault: str) -> None:
    with Load(cluster, TOPIC) as load:
        leader = Partition(cluster, TOPIC, 0).leader
        if fault == "stopped":
            cluster.stop(leader)
        else:
            cluster.kill(leader)
        load.goes_on()
        if fault == "wiped":
            cluster.wipe(leader)
        cluster.start(leader)
        load.goes_on()
    until(lambda: is_all_in_sync(cluster))
    assert load.acknowledged <= set(consumed(cluster.bootstrap_servers, TOPIC, PARTITIONS))
    until(lambda: are_equal(cluster, cluster.broker_ids, TOPIC, PARTITIONS))
