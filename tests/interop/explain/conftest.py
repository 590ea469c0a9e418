"""A broker for the tests of this folder: ours, and then Apache Kafka."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from millstream.testing import LocalBroker
from tests.lib.apache_kafka import kafka_libs, running_node
from tests.lib.explained import Explained

SETTINGS = {
    # So that a batch opens a transaction that no coordinator knows.
    "transaction.partition.verification.enable": "false",
    "log.cleaner.backoff.ms": "100",
    "auto.create.topics.enable": "false",
    # Coordinators look for transactions that are past their time-out once an hour.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "3600000",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture(scope="session", params=["ours", "apache"])
def kafka(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Explained]:
    if request.param == "ours":
        with LocalBroker(**SETTINGS) as broker:
            yield Explained(broker.bootstrap_servers)
    else:
        with running_node(kafka_libs(), tmp_path_factory.mktemp("apache"), SETTINGS) as bootstrap:
            yield Explained(bootstrap)


@pytest.fixture
def name() -> str:
    """A name for the topic, the group and the transactional id of one test."""
    return f"orders-{uuid4().hex[:8]}"
