"""Tasks in processes of their own: they do what tasks in threads do, and end with their worker."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from millstream.testing import LocalBroker
from tests.connect.worker.tasks.exactly_once import walk
from tests.lib.connect_worker import ConnectWorker, eventually

pytestmark = pytest.mark.slow

ENDED = re.compile(r"^pid_task_next\{.*\} 100\.0$", re.MULTILINE)
PLUGIN = '''
import os
import time
from millstream.connect import *
from millstream.connect.connectors import TaskMetric

class PidSource(SourceConnector):
    """Writes its process and a number, from 0 to `count`."""

    def task_class(self):
        return PidTask

    def task_configs(self, max_tasks):
        return [{**self.settings, "of": str(number)} for number in range(max_tasks)]

class PidTask(SourceTask):
    def start(self, settings):
        self.settings = settings
        kept = self.context.offset_storage_reader.offset({"of": settings["of"]})
        self.next = kept["next"] if kept else 0

    def metrics(self):
        return [TaskMetric("pid_task_next", {"of": self.settings["of"]}, self.next)]

    def note(self):
        return f"At {self.next}." if self.next == 100 else None

    def poll(self):
        if self.settings.get("fail"):
            raise ConnectException("told to fail")
        if self.settings.get("block"):
            time.sleep(600)
        if self.next == int(self.settings["count"]):
            return None
        number, self.next = self.next, self.next + 1
        return [SourceRecord(
            topic="pids", key=self.settings["of"], value=f"{os.getpid()} {number}",
            source_partition={"of": self.settings["of"]}, source_offset={"next": number + 1},
        )]
'''


@pytest.fixture(scope="module")
def broker() -> Iterator[LocalBroker]:
    with LocalBroker() as started:
        yield started


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("processes")
    (path / "plugins").mkdir()
    (path / "plugins" / "pid_plugin.py").write_text(PLUGIN)
    return path


@pytest.fixture(scope="module")
def worker(broker: LocalBroker, folder: Path) -> Iterator[ConnectWorker]:
    told = {
        "bootstrap.servers": broker.bootstrap_servers,
        "plugin.path": str(folder / "plugins"),
        "tasks.isolation": "process",
        "task.shutdown.graceful.timeout.ms": "1000",
        "offset.storage.file.filename": str(folder / "offsets"),
    }
    with ConnectWorker(folder, told) as started:
        yield started
        assert started.stop() == 0


def children(worker: ConnectWorker) -> set[int]:
    assert worker.process is not None
    found = subprocess.run(
        ["pgrep", "-P", str(worker.process.pid)], capture_output=True, text=True, check=False
    )
    return {int(each) for each in found.stdout.split()}


def lines(path: Path) -> list[tuple[int, int]]:
    found = path.read_text().split("\n") if path.exists() else []
    return [(int(pid), int(number)) for pid, number in map(str.split, filter(None, found))]


def put(worker: ConnectWorker, name: str, **config: str) -> None:
    told = {key.replace("__", "."): value for key, value in config.items()}
    assert worker.call("PUT", f"/connectors/{name}/config", told).status in (200, 201)


def test_sources_and_sinks_run_each_in_its_own_process(worker: ConnectWorker, folder: Path) -> None:
    put(worker, "pids", **{"connector.class": "PidSource", "tasks.max": "2", "count": "100"})
    put(
        worker,
        "out",
        **{"connector.class": "FileStreamSink", "topics": "pids", "file": f"{folder}/out"},
    )
    eventually(lambda: len(lines(folder / "out")) == 200)
    seen = lines(folder / "out")
    assert sorted(number for _, number in seen) == sorted([*range(100), *range(100)])
    # Two sources and the sink.
    writers, running = {pid for pid, _ in seen}, children(worker)
    assert len(running) == 3
    assert len(writers) == 2
    assert writers < running
    eventually(lambda: len(ENDED.findall(worker.call("GET", "/metrics").body)) == 2)
    metrics = worker.call("GET", "/metrics").body
    assert "sink_record_send_total" in metrics
    state = worker.call("GET", "/connectors/pids/topics").body
    assert state == {"pids": {"topics": ["pids"]}}
    status = worker.call("GET", "/connectors/pids/status").body
    assert [task["note"] for task in status["tasks"]] == ["At 100."] * 2


def test_a_connector_is_paused_and_goes_on_where_it_was(
    worker: ConnectWorker, folder: Path
) -> None:
    assert worker.call("PUT", "/connectors/pids/pause").status == 202
    eventually(lambda: worker.states("pids")["0"] == "PAUSED")
    assert worker.call("PUT", "/connectors/pids/resume").status == 202
    eventually(lambda: worker.states("pids")["0"] == "RUNNING")
    eventually(lambda: len(worker.call("GET", "/connectors/pids/offsets").body["offsets"]) == 2)
    before = len(lines(folder / "out"))
    put(worker, "pids", **{"connector.class": "PidSource", "tasks.max": "2", "count": "150"})
    eventually(lambda: len(lines(folder / "out")) == 300)
    assert before == 200


def test_a_process_that_is_killed_is_a_failure_and_is_started_again(
    worker: ConnectWorker, folder: Path
) -> None:
    before = {pid for pid, _ in lines(folder / "out")} & children(worker)
    assert len(before) == 2
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: not before & children(worker))
    eventually(lambda: "killed by signal 9" in worker.log())
    eventually(
        lambda: worker.states("pids") == {"connector": "RUNNING", "0": "RUNNING", "1": "RUNNING"}
    )
    put(worker, "pids", **{"connector.class": "PidSource", "tasks.max": "2", "count": "160"})
    eventually(lambda: {number for _, number in lines(folder / "out")} == set(range(160)))


def test_what_a_task_raises_is_its_status(worker: ConnectWorker) -> None:
    stays = {"errors.task.restart.max.delay.ms": "0"}
    put(worker, "bad", **{"connector.class": "PidSource", "fail": "x", "count": "1", **stays})
    eventually(lambda: worker.states("bad").get("0") == "FAILED")
    trace = worker.call("GET", "/connectors/bad/tasks/0/status").body["trace"]
    assert trace.startswith("Traceback")
    assert trace.rstrip().endswith("ConnectException: told to fail")
    assert "process_work.py" not in trace
    assert worker.call("DELETE", "/connectors/bad").status == 204


def test_a_task_that_does_not_stop_is_killed(worker: ConnectWorker) -> None:
    before = children(worker)
    put(worker, "stuck", **{"connector.class": "PidSource", "block": "x", "count": "1"})
    eventually(lambda: worker.states("stuck").get("0") == "RUNNING")
    (stuck,) = children(worker) - before
    assert worker.call("DELETE", "/connectors/stuck").status == 204
    eventually(lambda: stuck not in children(worker))
    eventually(lambda: "is left behind task=stuck-0" in worker.log())


def test_processes_end_with_a_worker_that_is_killed(broker: LocalBroker, folder: Path) -> None:
    own = folder / "killed"
    own.mkdir()
    told = {
        "bootstrap.servers": broker.bootstrap_servers,
        "plugin.path": str(folder / "plugins"),
        "tasks.isolation": "process",
        "offset.storage.file.filename": str(own / "offsets"),
    }
    with ConnectWorker(own, told) as worker:
        put(worker, "pids", **{"connector.class": "PidSource", "tasks.max": "2", "count": "1"})
        eventually(lambda: len(children(worker)) == 2)
        eventually(lambda: worker.states("pids").get("1") == "RUNNING")
        processes = children(worker)
        worker.kill()
        eventually(lambda: not any(map(is_running, processes)))


def is_running(pid: int) -> bool:
    """Tell whether a process lives; one that has ended and was not waited for does not."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


@pytest.mark.e2e
def test_every_number_is_there_once_though_workers_are_killed_and_frozen(tmp_path: Path) -> None:
    said: list[str] = []
    result = walk(tmp_path, 720, 2, said.append, pause_seconds=0.2, batch=3, isolation="process")
    log = result.pop("log")
    assert result["missing"] == result["twice"] == [], (said, log[-20_000:])
    assert log.count("worker is silent, the task ends") > 0
