"""Two real brokers with IdentityReplicationPolicy, and the source's defaults in the copies.

Names do not tell a copy from its original there, so each direction has topics of its own.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.cimpl import NewTopic

from millstream.testing import LocalBroker
from tests.lib.connect_worker import eventually
from tests.lib.mirror_process import MirrorProcess, produce, properties_file, records, topic_names

pytestmark = pytest.mark.slow

IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    with LocalBroker() as first, LocalBroker() as second:
        a, b = first.bootstrap_servers, second.bootstrap_servers
        for servers, topic in ((a, "orders"), (b, "payments")):
            admin = AdminClient({"bootstrap.servers": servers})
            admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(20)
            produce(servers, topic, range(50))
        settings = {
            "replication.policy.class": IDENTITY,
            "a->b.enabled": "true",
            "a->b.topics": "orders",
            "b->a.enabled": "true",
            "b->a.topics": "payments",
            "use.defaults.from": "source",
        }
        folder = tmp_path_factory.mktemp("mirror")
        with MirrorProcess(properties_file(folder, {"a": a, "b": b}, settings)):
            yield a, b


def test_names_stay_and_nothing_goes_round(clusters: tuple[str, str]) -> None:
    a, b = clusters
    for source, target, topic in ((a, b, "orders"), (b, a, "payments")):
        for more in (range(50, 60), range(60, 70)):
            expected = partial(records, source, topic)
            eventually(lambda: records(target, topic) == expected())  # noqa: B023
            produce(source, topic, more)
        eventually(lambda: len(records(target, topic)) == 70)  # noqa: B023
    # The copies went through since: what had come back would lie in the source.
    assert len(records(a, "orders")) == len(records(b, "payments")) == 70
    for servers, other in ((a, "b"), (b, "a")):
        eventually(lambda: f"{other}.heartbeats" in topic_names(servers))  # noqa: B023
        assert {each for each in topic_names(servers) if "orders" in each or "pay" in each} == {
            "orders",
            "payments",
        }


def told(servers: str, topic: str, name: str) -> Any:
    admin = AdminClient({"bootstrap.servers": servers})
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    return admin.describe_configs([resource])[resource].result(20)[name]


def change(servers: str, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": servers})
    admin.incremental_alter_configs([resource])[resource].result(20)


def test_the_sources_defaults_count(clusters: tuple[str, str]) -> None:
    """They are settings of the copy, and come again when somebody changes one there."""
    a, b = clusters
    eventually(lambda: "orders" in topic_names(b))
    source = told(a, "orders", "segment.jitter.ms")
    assert source.is_default
    change(b, "orders", "segment.jitter.ms", "777")
    eventually(lambda: told(b, "orders", "segment.jitter.ms").value == source.value)
    assert not told(b, "orders", "segment.jitter.ms").is_default
    # What is excluded does not come.
    change(b, "orders", "min.insync.replicas", "2")
    change(b, "orders", "segment.jitter.ms", "778")
    eventually(lambda: told(b, "orders", "segment.jitter.ms").value == source.value)
    assert told(b, "orders", "min.insync.replicas").value == "2"
