"""The pytest fixtures `kafka_broker` and `kafka_cluster`: fresh ones for every test.

The logs of their nodes are shown when the test fails. Installing the distribution is enough;
nothing need be imported.
"""

from collections.abc import Generator, Iterator
from typing import Any

import pytest

from millrace.testing.local_broker import LocalBroker
from millrace.testing.local_cluster import LocalCluster


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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the log of every node among a failed test's fixtures to its report."""
    report = yield
    if report.failed:
        for name, value in getattr(item, "funcargs", {}).items():
            if isinstance(value, LocalBroker):
                report.sections.append((f"log of {name}", value.log_tail()))
            if isinstance(value, LocalCluster):
                for node_id, tail in value.logs().items():
                    report.sections.append((f"log of {name}, node {node_id}", tail))
    return report
