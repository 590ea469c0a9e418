"""A worker of a cluster while its brokers are away: what it says of itself, and what it refuses."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from millrace.testing import LocalBroker
from tests.lib.connect_worker import ConnectWorker, eventually

pytestmark = pytest.mark.slow


@pytest.fixture
def broker() -> Iterator[LocalBroker]:
    with LocalBroker() as started:
        yield started


@pytest.fixture
def worker(broker: LocalBroker, tmp_path: Path) -> Iterator[ConnectWorker]:
    told = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "workers"}
    for kind in ("config", "offset", "status"):
        told[f"{kind}.storage.topic"] = f"connect-{kind}"
        told[f"{kind}.storage.replication.factor"] = "1"
    made = ConnectWorker(tmp_path, told)
    yield made
    made.kill()


def health(worker: ConnectWorker) -> tuple[int, str]:
    status, body, _ = worker.call("GET", "/health")
    return status, body["status"]


def test_health_is_starting_then_healthy_then_unhealthy_and_healthy_again(
    broker: LocalBroker, worker: ConnectWorker
) -> None:
    broker.kill()
    worker.start()
    assert health(worker) == (503, "starting")
    # There is no leader yet that could write a configuration.
    config = {"connector.class": "FileStreamSource", "topic": "t"}
    for method, path, body in (
        ("PUT", "/connectors/early/config", config),
        ("POST", "/connectors", {"name": "early", "config": config}),
    ):
        refused = worker.call(method, path, body)
        assert (refused.status, refused.body["error_code"]) == (409, 409)
        assert "no known leader URL" in refused.body["message"]

    broker.start()
    eventually(lambda: health(worker) == (200, "healthy"))
    broker.kill()
    assert health(worker) == (500, "unhealthy")
    assert worker.call("GET", "/health/live").status == 200
    broker.start()
    eventually(lambda: health(worker) == (200, "healthy"))
    assert worker.call("PUT", "/connectors/early/config", config).status == 201
    assert worker.stop() == 0
