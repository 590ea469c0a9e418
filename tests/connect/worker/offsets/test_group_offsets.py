"""What groups have committed, asked while their coordinator changes."""

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from connect.worker.offsets.group_offsets import Committed, committed_offsets
from millstream.connect.errors import ConnectException
from millstream.testing import LocalCluster
from tests.lib.stock_clients import commit_offsets

pytestmark = pytest.mark.slow

GROUPS = [f"group-{number}" for number in range(6)]
COMMITTED = {("lines", 0): Committed(7, ""), ("lines", 1): Committed(3, "")}


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(3, has_links=False) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        admin.create_topics([NewTopic("lines", 2, 3)])["lines"].result(20)
        servers = {"bootstrap.servers": cluster.bootstrap_servers}
        for group in GROUPS:
            commit_offsets(servers, group, {("lines", 0): 7, ("lines", 1): 3})
        yield cluster


def test_all_groups_are_told_of_and_one_that_nobody_knows_has_nothing(
    cluster: LocalCluster,
) -> None:
    client = {"bootstrap.servers": cluster.bootstrap_servers}
    found = committed_offsets(client, [*GROUPS, "nobody"], 30)
    assert found == {**dict.fromkeys(GROUPS, COMMITTED), "nobody": {}}


def test_a_coordinator_that_is_killed_is_waited_for(cluster: LocalCluster) -> None:
    client = {"bootstrap.servers": cluster.bootstrap_servers}
    for node in cluster.broker_ids:
        cluster.kill(node)
        assert committed_offsets(client, GROUPS, 30) == dict.fromkeys(GROUPS, COMMITTED)
        cluster.start(node)
        assert committed_offsets(client, GROUPS, 30) == dict.fromkeys(GROUPS, COMMITTED)


def test_brokers_that_are_not_there_are_an_error() -> None:
    with pytest.raises(ConnectException, match="the brokers cannot be asked"):
        committed_offsets({"bootstrap.servers": "127.0.0.1:1"}, GROUPS, 5)
