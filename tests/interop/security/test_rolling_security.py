"""A live cluster of three nodes goes from PLAINTEXT to SASL_SSL, one node at a time, under load.

The steps are Kafka's own: a second listener, and an authorizer that still allows everything; then
the clients move, then the brokers; then the first listener is removed, and what no rule allows is
denied.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from millstream.processes.cluster_layout import free_ports
from millstream.testing import LocalCluster
from millstream.testing.security import USER, LocalSecurity
from tests.lib.replicated_load import Load, consumed
from tests.lib.secured_broker import AUTHORIZER
from tests.lib.waiting import until

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(280)]

TOPIC, PARTITIONS = "t", 3
NEW = "SASL_SSL"
Settings = dict[str, str]


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(brokers=3, has_links=False) as running:
        running.create_topic(TOPIC, PARTITIONS)
        yield running


class Change:
    """The change of one cluster: its certificates, users and second ports."""

    def __init__(self, cluster: LocalCluster, folder: Path) -> None:
        self._cluster = cluster
        self._security = LocalSecurity("sasl_ssl", folder)
        self._ports = dict(zip(cluster.broker_ids, islice(free_ports(), 3), strict=True))
        servers = ",".join(f"127.0.0.1:{port}" for port in self._ports.values())
        self.client = self._security.client_settings(servers, "confluent-kafka")

    def with_second_listener(self, node_id: int, settings: Settings) -> Settings:
        listener = f"{NEW}://127.0.0.1:{self._ports[node_id]}"
        return {
            **settings,
            **self._security.broker_settings(),
            "listeners": f"{settings['listeners']},{listener}",
            "listener.security.protocol.map": (
                f"PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,{NEW}:{NEW}"
            ),
            "inter.broker.listener.name": "PLAINTEXT",
            "authorizer.class.name": AUTHORIZER,
            # Nodes that have not changed yet have no name.
            "super.users": f"User:{USER};User:ANONYMOUS",
            "allow.everyone.if.no.acl.found": "true",
        }

    def with_new_replication(self, _: int, settings: Settings) -> Settings:
        return {**settings, "inter.broker.listener.name": NEW}

    def without_first_listener(self, _: int, settings: Settings) -> Settings:
        listeners = settings["listeners"].split(",")
        return {
            **settings,
            "listeners": ",".join(each for each in listeners if "PLAINTEXT://" not in each),
            # Controllers keep a listener without names, which is not changed here.
            "allow.everyone.if.no.acl.found": "false",
        }

    def roll(self, changed: Callable[[int, Settings], Mapping[str, str]], *loads: Load) -> None:
        """Restart node by node; no node is stopped before all replicas are in sync again."""
        for node_id in self._cluster.broker_ids:
            node = self._cluster.node(node_id)
            self._cluster.stop(node_id)
            node.settings = dict(changed(node_id, node.settings))
            self._cluster.start(node_id)
            until(self._is_whole)
            for load in loads:
                load.goes_on()

    def _is_whole(self) -> bool:
        try:
            found = AdminClient({**self.client, "log_level": 0}).list_topics(TOPIC, timeout=5)
        except KafkaException:
            return False
        partitions = found.topics[TOPIC].partitions.values()
        return len(partitions) == PARTITIONS and all(len(each.isrs) == 3 for each in partitions)


def test_no_acknowledged_record_is_lost(cluster: LocalCluster, tmp_path: Path) -> None:
    change = Change(cluster, tmp_path)
    with Load(cluster, TOPIC, name="old-") as old:
        change.roll(change.with_second_listener, old)
        group = confluent_kafka.Consumer(
            {**change.client, "group.id": "g", "auto.offset.reset": "earliest"}
        )
        group.subscribe([TOPIC])
        # Clients move one after the other: for a while there are both kinds.
        with Load(cluster, TOPIC, change.client, name="new-") as new:
            old.goes_on()
            old.end()
            change.roll(change.with_new_replication, new)
            change.roll(change.without_first_listener, new)
    seen: Counter[bytes] = Counter()

    def has_seen_all() -> bool:
        messages = group.consume(5000, 0.2)
        seen.update(each.value() or b"" for each in messages if not each.error())
        return old.acknowledged | new.acknowledged <= seen.keys()

    until(has_seen_all)
    group.close()
    told = {name: str(value) for name, value in change.client.items()}
    read = Counter(consumed(told.pop("bootstrap.servers"), TOPIC, PARTITIONS, **told))
    assert old.acknowledged | new.acknowledged == read.keys()
    assert set(read.values()) == {1}
    plain = {"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0}
    with pytest.raises(KafkaException):
        AdminClient(plain).list_topics(timeout=1)
