"""A worker of a cluster while its brokers are away: what it says of itself, and what it refuses."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from millstream.testing import LocalBroker
from tests.lib.connect_worker import ConnectWorker, eventually

pytestmark = pytest.mark.slow

SESSION_MS = 1_500


@pytest.fixture
def broker() -> Iterator[LocalBroker]:
    with LocalBroker(**{"group.min.session.timeout.ms": SESSION_MS}) as started:
        yield started


@pytest.fixture
def worker(broker: LocalBroker, tmp_path: Path) -> Iterator[ConnectWorker]:
    told = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "workers"}
    told |= {"session.timeout.ms": str(SESSION_MS), "heartbeat.interval.ms": "500"}
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
    # The worker has not read its topic, so it does not know which connectors there are.
    config = {"connector.class": "FileStreamSource", "topic": "t"}
    for method, path, body in (
        ("PUT", "/connectors/early/config", config),
        ("POST", "/connectors", {"name": "early", "config": config}),
    ):
        refused = worker.call(method, path, body)
        assert (refused.status, refused.body["error_code"]) == (503, 503)
        assert "still starting up" in refused.body["message"]

    broker.start()
    eventually(lambda: health(worker) == (200, "healthy"))
    broker.kill()
    assert health(worker) == (500, "unhealthy")
    assert worker.call("GET", "/health/live").status == 200
    broker.start()
    eventually(lambda: health(worker) == (200, "healthy"))
    assert worker.call("PUT", "/connectors/early/config", config).status == 201
    assert worker.stop() == 0


def test_a_sink_delivers_at_once_when_its_broker_returns_after_the_worker_s_session(
    broker: LocalBroker, worker: ConnectWorker, tmp_path: Path
) -> None:
    """The worker has stopped its tasks by then; their members' sessions end 45 s later."""
    copied = tmp_path / "copied"
    produce(broker, b"before")
    worker.start()
    config = {"connector.class": "FileStreamSink", "topics": "t", "file": str(copied)}
    eventually(lambda: worker.call("PUT", "/connectors/copy/config", config).status in (200, 201))
    eventually(lambda: copied.exists() and copied.read_text() == "before\n")
    broker.kill()
    eventually(lambda: "task ended task=copy-0" in worker.log())
    broker.start()
    produce(broker, b"after")
    # Well before the session of a member that did not leave ends.
    eventually(lambda: copied.read_text() == "before\nafter\n", 30)
    assert "member left its group group=connect-copy" in worker.log()
    assert worker.stop() == 0


def produce(broker: LocalBroker, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce("t", value)
    assert producer.flush(20) == 0
