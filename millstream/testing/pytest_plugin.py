"""The pytest fixtures: new brokers and other servers for every test.

`kafka_broker` and `kafka_cluster` start brokers. `schema_registry`, `rest_proxy` and
`connect_worker` use the test's `kafka_broker`; `kafka_stack` starts all of these servers.
`session_kafka_broker` and `session_kafka_cluster` are started once for all tests, which share their
topics.

If a test fails, pytest shows the logs of its servers. The plugin is active when the distribution is
installed; no import is needed.
"""

from collections.abc import Generator, Iterator
from typing import Any

import pytest

from millstream.testing.local_broker import LocalBroker
from millstream.testing.local_cluster import LocalCluster
from millstream.testing.local_program import (
    LocalConnect,
    LocalProgram,
    LocalRegistry,
    LocalRestProxy,
)
from millstream.testing.local_stack import LocalStack


@pytest.fixture
def kafka_broker() -> Iterator[LocalBroker]:
    """A real broker on a free port, in a temporary folder, stopped after the test."""
    with LocalBroker() as broker:
        yield broker


@pytest.fixture
def kafka_cluster() -> Iterator[LocalCluster]:
    """A real cluster of three nodes, each broker and controller, stopped after the test."""
    with LocalCluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def session_kafka_broker() -> Iterator[LocalBroker]:
    """A real broker for all tests of the run (of each worker, with pytest-xdist)."""
    with LocalBroker() as broker:
        yield broker


@pytest.fixture(scope="session")
def session_kafka_cluster() -> Iterator[LocalCluster]:
    """A real cluster of three nodes for all tests of the run (of each worker)."""
    with LocalCluster() as cluster:
        yield cluster


@pytest.fixture
def schema_registry(kafka_broker: LocalBroker) -> Iterator[LocalRegistry]:
    """A schema registry on the test's `kafka_broker`."""
    with LocalRegistry(kafka_broker.bootstrap_servers) as registry:
        kafka_broker.registry_url = registry.url
        yield registry


@pytest.fixture
def rest_proxy(
    kafka_broker: LocalBroker, schema_registry: LocalRegistry
) -> Iterator[LocalRestProxy]:
    """A REST proxy on the test's `kafka_broker` and `schema_registry`."""
    with LocalRestProxy(kafka_broker.bootstrap_servers, schema_registry.url) as proxy:
        yield proxy


@pytest.fixture
def connect_worker(
    kafka_broker: LocalBroker, schema_registry: LocalRegistry
) -> Iterator[LocalConnect]:
    """A Connect worker on the test's `kafka_broker` and `schema_registry`."""
    with LocalConnect(kafka_broker.bootstrap_servers, schema_registry.url) as worker:
        yield worker


@pytest.fixture
def kafka_stack() -> Iterator[LocalStack]:
    """A whole stack: a broker, a schema registry, a REST proxy and a Connect worker."""
    with LocalStack() as stack:
        yield stack


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the log of every node and program among a failed test's fixtures to its report."""
    report = yield
    if report.failed:
        for name, value in getattr(item, "funcargs", {}).items():
            if isinstance(value, LocalBroker):
                report.sections.append((f"log of {name}", value.log_tail()))
            if isinstance(value, LocalProgram):
                report.sections.append((f"log of {name}", value.log_tail()))
            if isinstance(value, LocalStack):
                for part, tail in value.logs().items():
                    report.sections.append((f"log of {name}, {part}", tail))
            if isinstance(value, LocalCluster):
                for node_id, tail in value.logs().items():
                    report.sections.append((f"log of {name}, node {node_id}", tail))
    return report
