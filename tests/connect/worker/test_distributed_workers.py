"""Three workers of one cluster, as processes on a real broker: shared work, kill -9, forwarding."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from millstream.testing import LocalBroker
from mirror.dedicated.whole_topic import whole_topic
from tests.lib.connect_worker import ConnectWorker, eventually

pytestmark = pytest.mark.slow

PLUGINS = '''
import os
import time
from pathlib import Path
from millstream.connect import *

class LockedSource(SourceConnector):
    def task_class(self):
        return LockedTask

    def task_configs(self, max_tasks):
        return [{**self.settings, "number": str(each)} for each in range(max_tasks)]

class LockedTask(SourceTask):
    """Counts, and says so when a task of its name runs in another process meanwhile."""

    def start(self, settings):
        self.settings = dict(settings)
        self.name = f"{settings['name']}-{settings['number']}"
        self.lock = Path(settings["folder"], f"{self.name}.pid")
        if self.lock.exists():
            pid = self.lock.read_text()
            if os.path.exists(f"/proc/{pid}") and pid != str(os.getpid()):
                Path(settings["folder"], f"{self.name}.twice").write_text(pid)
        self.lock.write_text(str(os.getpid()))
        kept = self.context.offset_storage_reader.offset({"of": self.name})
        self.number = kept["last"] if kept else 0

    def poll(self):
        time.sleep(0.05)
        self.number += 1
        return [
            SourceRecord(
                topic="counted", key=self.name, value=str(self.number),
                source_partition={"of": self.name}, source_offset={"last": self.number},
            )
        ]

    def stop(self):
        self.lock.unlink(missing_ok=True)
'''
CONNECTORS = 4
TASKS = 3
ALTERED = "locked3-0"
KEY_TTL_MS = 2000


@pytest.fixture(scope="module")
def broker() -> Iterator[LocalBroker]:
    # For half as long as by itself a member may be silent: two that are killed are waited for.
    with LocalBroker(**{"group.min.session.timeout.ms": "3000"}) as started:
        yield started


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cluster")
    (path / "plugins").mkdir()
    (path / "plugins" / "locked_plugins.py").write_text(PLUGINS)
    return path


@pytest.fixture(scope="module")
def workers(broker: LocalBroker, folder: Path) -> Iterator[list[ConnectWorker]]:
    told = {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": "workers",
        "plugin.path": str(folder / "plugins"),
        "scheduled.rebalance.max.delay.ms": "1000",
        "session.timeout.ms": "3000",
        "heartbeat.interval.ms": "300",
        "exactly.once.source.support": "preparing",
        "inter.worker.key.ttl.ms": str(KEY_TTL_MS),
    }
    for kind in ("config", "offset", "status"):
        told[f"{kind}.storage.topic"] = f"connect-{kind}"
        told[f"{kind}.storage.replication.factor"] = "1"
    made = [ConnectWorker(folder, told, name=f"worker{each}") for each in range(3)]
    try:
        for worker in made:
            worker.start()
        for worker in made:
            eventually(lambda worker=worker: worker.call("GET", "/health/ready").status == 200)
        yield made
        assert [worker.stop() for worker in made] == [0, 0, 0]
    finally:
        for worker in made:
            worker.kill()


def put(worker: ConnectWorker, name: str, folder: Path) -> int:
    config = {"connector.class": "LockedSource", "tasks.max": str(TASKS), "folder": str(folder)}
    return worker.call("PUT", f"/connectors/{name}/config", config).status


def spread(worker: ConnectWorker) -> dict[str, list[str]]:
    """Give the tasks that run, by worker, as one of them sees it."""
    shown = worker.call("GET", "/connectors?expand=status").body
    found: dict[str, list[str]] = {}
    for name, about in shown.items():
        for task in about["status"]["tasks"]:
            if task["state"] == "RUNNING":
                found.setdefault(task["worker_id"], []).append(f"{name}-{task['id']}")
    return found


def sizes(worker: ConnectWorker) -> list[int]:
    return sorted(map(len, spread(worker).values()))


def test_whoever_is_asked_the_work_is_shared_in_equal_parts(
    workers: list[ConnectWorker], folder: Path
) -> None:
    for number in range(CONNECTORS):
        asked = workers[number % len(workers)]
        eventually(lambda asked=asked, n=number: put(asked, f"locked{n}", folder) in (200, 201))
    for worker in workers:
        eventually(lambda worker=worker: sizes(worker) == [4, 4, 4])


def test_a_worker_answers_for_all_and_sends_on_what_it_cannot_do(
    workers: list[ConnectWorker],
) -> None:
    where = {task: worker for worker, tasks in spread(workers[0]).items() for task in tasks}
    for worker in workers:
        assert sorted(worker.call("GET", "/connectors").body) == [
            f"locked{number}" for number in range(CONNECTORS)
        ]
        for number in range(TASKS):
            path = f"/connectors/locked0/tasks/{number}/restart"
            assert worker.call("POST", path).status == 204
        assert worker.call("POST", "/connectors/locked1/restart?includeTasks=true").status == 202
    eventually(lambda: sizes(workers[0]) == [4, 4, 4])
    # A restart moves nothing.
    assert where == {task: w for w, tasks in spread(workers[0]).items() for task in tasks}
    forged = workers[1].call("POST", "/connectors/locked0/tasks", [{"a": "b"}])
    assert forged.status == 400
    told = {
        "X-Connect-Authorization": "AAAA",
        "X-Connect-Request-Signature-Algorithm": "HmacSHA256",
    }
    forged = workers[1].call("POST", "/connectors/locked0/tasks", [{"a": "b"}], told)
    assert forged.status == 403


def test_offsets_are_altered_where_the_leader_is(workers: list[ConnectWorker]) -> None:
    path = "/connectors/locked3"
    assert workers[2].call("PUT", f"{path}/stop").status == 204
    workers[2].wait_for("locked3", connector="STOPPED")
    at = {"of": ALTERED}
    told = {"offsets": [{"partition": at, "offset": {"last": 1_000_000}}]}
    for worker in workers:
        assert worker.call("PATCH", f"{path}/offsets", told).status == 200
    shown = workers[0].call("GET", f"{path}/offsets").body["offsets"]
    assert {"partition": at, "offset": {"last": 1_000_000}} in shown
    assert workers[1].call("PUT", f"{path}/resume").status == 202
    eventually(lambda: sizes(workers[0]) == [4, 4, 4])


def test_a_worker_that_is_killed_is_replaced_and_nothing_runs_twice_or_is_lost(
    workers: list[ConnectWorker], folder: Path, broker: LocalBroker
) -> None:
    for killed in (workers[0], workers[1]):
        others = [each for each in workers if each is not killed]
        eventually(lambda others=others: sizes(others[0]) == [4, 4, 4])
        before = spread(others[0])
        gone = killed.worker_id
        killed.kill()
        eventually(
            lambda others=others, gone=gone: (
                sizes(others[0]) == [6, 6] and gone not in spread(others[0])
            )
        )
        after = spread(others[0])
        # A worker that lives keeps its connectors and tasks.
        assert all(set(before[each]) <= set(after[each]) for each in after)
        killed.start()
        eventually(lambda others=others: sizes(others[0]) == [4, 4, 4])
    assert sorted(each.name for each in folder.glob("*.twice")) == []
    assert_no_gaps(broker)


def test_a_configuration_larger_than_a_record_is_refused(
    workers: list[ConnectWorker],
) -> None:
    config = {"connector.class": "FileStreamSource", "topic": "t", "file": "x" * 3_000_000}
    answered = workers[1].call("PUT", "/connectors/large/config", config)
    assert answered.status == 413
    assert "max.message.bytes" in answered.body["message"]
    eventually(lambda: workers[1].call("GET", "/health/ready").status == 200)
    assert workers[1].call("GET", "/connectors/large").status == 404
    config["file"] = "none"
    eventually(lambda: workers[1].call("PUT", "/connectors/large/config", config).status == 201)
    assert workers[1].call("DELETE", "/connectors/large").status == 204


def test_what_is_removed_stops_everywhere(workers: list[ConnectWorker]) -> None:
    for number in range(CONNECTORS):
        assert workers[2].call("DELETE", f"/connectors/locked{number}").status == 204
    for worker in workers:
        eventually(lambda worker=worker: worker.call("GET", "/connectors").body == [])
        eventually(lambda worker=worker: spread(worker) == {})


def test_a_level_is_set_on_all_workers_or_on_one(workers: list[ConnectWorker]) -> None:
    path = "/admin/loggers/connect.rest.server"

    def levels() -> list[str]:
        return [worker.call("GET", path).body["level"] for worker in workers]

    assert levels() == ["INFO"] * 3
    assert workers[1].call("PUT", path, {"level": "WARN"}).status == 200
    assert levels() == ["INFO", "WARN", "INFO"]
    for asked, level in ((workers[0], "DEBUG"), (workers[2], "INFO")):
        answered = asked.call("PUT", f"{path}?scope=cluster", {"level": level})
        assert (answered.status, answered.body) == (204, "")
        eventually(lambda level=level: levels() == [level] * 3)


def test_session_keys_come_and_go_and_workers_go_on_believing_each_other(
    workers: list[ConnectWorker], broker: LocalBroker, folder: Path
) -> None:
    names = [f"keyed{number}" for number in range(3)]

    def session_keys() -> set[str]:
        client = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "looks"}
        found = [each for each in whole_topic(client, "connect-config") if each.value()]
        return {json.loads(e.value())["key"] for e in found if e.key() == b"session-key"}

    def put_all(topic: str) -> None:
        for worker, name in zip(workers, names, strict=True):
            config = {
                "connector.class": "FileStreamSource",
                "file": f"{folder}/none",
                "topic": topic,
            }
            path = f"/connectors/{name}/config"
            eventually(
                lambda worker=worker, path=path, config=config: (
                    worker.call("PUT", path, config).status in (200, 201)
                )
            )
        # The connector's owner sends tasks to the leader, signed with the key of the moment.
        for name in names:
            eventually(lambda name=name: topic_of_task(workers[0], name) == topic)

    before = session_keys()
    rounds = 0
    while rounds < 3 or len(session_keys() - before) < 3:
        put_all(f"keyed-{rounds}")
        rounds += 1
    shown = workers[0].call("GET", "/connectors?expand=status").body
    owners = {shown[name]["status"]["connector"]["worker_id"] for name in names}
    assert owners == {worker.worker_id for worker in workers}
    for name in names:
        assert workers[0].call("DELETE", f"/connectors/{name}").status == 204


def topic_of_task(worker: ConnectWorker, name: str) -> str | None:
    tasks = worker.call("GET", f"/connectors/{name}/tasks").body
    return tasks[0]["config"]["topic"] if tasks else None


def assert_no_gaps(broker: LocalBroker) -> None:
    """Every task counted on from where it was, or from a little before."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "checks",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["counted"])
    highest: dict[bytes, int] = {}
    seen = 0

    def read() -> bool:
        nonlocal seen
        for message in consumer.consume(2000, 0.2):
            if message.error():
                continue
            seen += 1
            key, number = message.key(), json.loads(message.value())
            last = highest.get(key, 0)
            # The user set the offset of one of them to a million.
            is_altered = (key, number) == (ALTERED.encode(), 1_000_001)
            assert number <= last + 1 or is_altered, (key, last, number)
            highest[key] = max(last, number)
        return len(highest) == CONNECTORS * TASKS and seen > 1000

    try:
        eventually(read)
    finally:
        consumer.close()
