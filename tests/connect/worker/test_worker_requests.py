"""What a worker of a cluster with a password asks of whom, and what it lets pass without one."""

import base64
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from millstream.testing import LocalBroker
from tests.lib.connect_worker import Answer, ConnectWorker, eventually

pytestmark = pytest.mark.slow

ASKER = {"Authorization": f"Basic {base64.b64encode(b'admin:secret').decode()}"}
LINES = {"connector.class": "FileStreamSource", "topic": "lines", "tasks.max": "1"}


@pytest.fixture(scope="module")
def broker() -> Iterator[LocalBroker]:
    with LocalBroker() as started:
        yield started


@pytest.fixture(scope="module")
def workers(
    broker: LocalBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[ConnectWorker]]:
    told = {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": "guarded",
        "rest.basic.auth.credentials": "admin:secret",
    }
    for kind in ("config", "offset", "status"):
        told[f"{kind}.storage.topic"] = f"guarded-{kind}"
        told[f"{kind}.storage.replication.factor"] = "1"
    folder = tmp_path_factory.mktemp("guarded")
    made = [ConnectWorker(folder, told, name=f"worker{each}") for each in range(2)]
    try:
        for worker in made:
            worker.start()
        for worker in made:
            eventually(lambda worker=worker: worker.call("GET", "/health/ready").status == 200)
        yield made
    finally:
        for worker in made:
            worker.stop()


def ask(worker: ConnectWorker, method: str, path: str, body: object = None) -> Answer:
    return worker.call(method, path, body, ASKER)


def counted(worker: ConnectWorker) -> set[tuple[str, int]]:
    """Give the tasks of which the page of a worker shows counts."""
    shown = ask(worker, "GET", "/page/state").body["connectors"]
    tasks = [(each["name"], task) for each in shown for task in each["tasks"]]
    return {(name, task["id"]) for name, task in tasks if task["counts"] is not None}


def shown_worker(worker: ConnectWorker) -> str:
    status = ask(worker, "GET", "/connectors/lines0/status").body
    return str(status["connector"]["worker_id"])


def test_every_page_counts_all_tasks_and_asks_members_of_the_group_alone(
    workers: list[ConnectWorker], broker: LocalBroker, tmp_path: Path
) -> None:
    (tmp_path / "in").write_text("one\n")
    names = [f"lines{number}" for number in range(4)]
    for name in names:
        config = {**LINES, "file": str(tmp_path / "in")}
        path = f"/connectors/{name}/config"
        eventually(lambda p=path, c=config: ask(workers[0], "PUT", p, c).status in (200, 201))
    everything = {(name, 0) for name in names}
    for worker in workers:
        eventually(lambda worker=worker: counted(worker) == everything)
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        stranger.settimeout(1)
        port = stranger.getsockname()[1]
        said = {
            "state": "RUNNING",
            "trace": None,
            "worker_id": f"127.0.0.1:{port}/any?x=",
            "generation": 1,
        }
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        for key in ("status-connector-lines0", "status-task-lines0-0"):
            producer.produce("guarded-status", json.dumps(said).encode(), key.encode())
        assert producer.flush(30) == 0
        for worker in workers:
            eventually(lambda worker=worker: "any?x=" in shown_worker(worker))
            assert counted(worker) == everything
        with pytest.raises(TimeoutError):
            stranger.accept()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/admin/loggers/fence?scope=cluster"),
        ("PUT", "/admin/loggers/fence"),
        ("PUT", "/admin//fence"),
        ("POST", "/page/x/tasks"),
        ("POST", "/a/b/tasks"),
        ("PUT", "/connectors/lines0/fence/"),
        ("PUT", "/connectors/lines0/config"),
        ("GET", "/connectors/lines0/tasks"),
    ],
)
def test_only_what_workers_sign_needs_no_password(
    workers: list[ConnectWorker], method: str, path: str
) -> None:
    body = {"level": "DEBUG"} if method != "GET" else None
    for worker in workers:
        assert worker.call(method, path, body).status == 401
        assert worker.call("PUT", "/connectors/lines0/fence").body["message"] == (
            "Internal request missing required signature"
        )


def test_a_worker_that_has_not_read_its_topic_says_so(
    workers: list[ConnectWorker], tmp_path: Path
) -> None:
    """It neither knows that a connector does not exist, nor which there are."""
    (tmp_path / "in").write_text("one\n")
    config = {**LINES, "file": str(tmp_path / "in")}
    eventually(
        lambda: ask(workers[0], "PUT", "/connectors/kept/config", config).status in (200, 201)
    )
    eventually(lambda: ask(workers[0], "GET", "/connectors/kept/status").status == 200)
    known = set(ask(workers[0], "GET", "/connectors").body)
    another = ConnectWorker(workers[0].folder, workers[0].settings, name="another")
    try:
        another.start()
        seen = set()
        while 200 not in seen:
            for path in ("/connectors", "/connectors/kept", "/connectors/kept/status"):
                told = ask(another, "GET", path)
                seen.add(told.status)
                assert told.status in (200, 503), told
                if path == "/connectors" and told.status == 200:
                    assert set(told.body) == known
        assert ask(another, "GET", "/connectors/none").status == 404
    finally:
        another.stop()
