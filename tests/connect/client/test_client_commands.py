"""`millstream connect list`, `status`, `restart` and the others, on a real worker."""

import io
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from connect.__main__ import main
from connect.client import tables
from millstream.launch import program_environment
from millstream.processes.cluster_layout import free_ports
from millstream.testing import LocalBroker
from tests.lib.connect_worker import ROOT, ConnectWorker, eventually

pytestmark = pytest.mark.slow


class Ran(NamedTuple):
    status: int
    out: str
    error: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def rows(self) -> list[list[str]]:
        """Give the cells of a table, without its heading."""
        return [[cell.strip() for cell in line.split("\t")] for line in self.out.splitlines()[1:]]


Run = Callable[..., Ran]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("commands")


@pytest.fixture(scope="module")
def worker(folder: Path) -> Iterator[ConnectWorker]:
    (folder / "in").write_text("one\ntwo\n")
    with LocalBroker() as broker:
        told = {
            "bootstrap.servers": broker.bootstrap_servers,
            "offset.storage.file.filename": str(folder / "offsets"),
            "rest.basic.auth.credentials": "ann:pass:word/1",
        }
        with ConnectWorker(folder, told) as started:
            yield started


@pytest.fixture
def run(
    worker: ConnectWorker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    url = f"http://ann:pass%3Aword%2F1@{worker.worker_id}"

    def command(*arguments: str, at: str = url) -> Ran:
        monkeypatch.setattr(sys, "argv", ["connect", *arguments, "--url", at])
        try:
            status = main()
        except SystemExit as ended:
            status = int(ended.code or 0)
        return Ran(status, *capsys.readouterr())

    return command


@pytest.fixture
def made(run: Run, folder: Path) -> Iterator[str]:
    """Give the name of a source that runs."""
    path = folder / "lines.properties"
    path.write_text(
        f"name=lines\nconnector.class=FileStreamSource\nfile={folder}/in\ntopic=lines\n"
    )
    assert run("create", str(path)) == Ran(0, "created lines, a source\n", "")
    eventually(lambda: runs(run, "lines"))
    yield "lines"
    assert run("delete", "lines") == Ran(0, "deleted lines\n", "")


def runs(run: Run, name: str) -> bool:
    said = run("status", name, "--json").json
    return [each["state"] for each in (said["connector"], *said["tasks"])] == ["RUNNING"] * 2


def wait_for(run: Run, name: str, state: str) -> None:
    def is_there() -> bool:
        state_of = run("status", name, "--json").json["connector"]["state"]
        return bool(state_of == state)

    eventually(is_there)


def test_connectors_are_listed_and_looked_at(run: Run, made: str, worker: ConnectWorker) -> None:
    listed = run("list")
    assert listed.out.splitlines()[0].split("\t")[0].strip() == "NAME"
    assert listed.rows == [[made, "source", "RUNNING", "1 RUNNING", worker.worker_id]]
    assert run("list", "--json").json[made]["info"]["config"]["topic"] == "lines"

    status = run("status", made)
    assert status.status == 0
    assert [row[:2] for row in status.rows] == [["connector", "RUNNING"], ["task 0", "RUNNING"]]
    assert ["topic", "lines"] in run("config", made).rows
    assert ["0", "topic", "lines"] in run("tasks", made).rows
    assert run("tasks", made, "--json").json[0]["id"] == {"connector": made, "task": 0}
    eventually(lambda: run("topics", made).rows == [["lines"]])
    assert run("topics", made, "--reset").out == "the topics of lines are forgotten\n"


def test_a_connector_is_paused_resumed_and_restarted(run: Run, made: str) -> None:
    assert run("pause", made) == Ran(0, "paused lines\n", "")
    wait_for(run, made, "PAUSED")
    assert run("resume", made, "--json") == Ran(0, "", "")
    eventually(lambda: runs(run, made))
    assert run("restart", made) == Ran(0, "restarted lines\n", "")
    eventually(lambda: runs(run, made))
    whole = run("restart", made, "--include-tasks")
    assert [row[:2] for row in whole.rows] == [
        ["connector", "RESTARTING"],
        ["task 0", "RESTARTING"],
    ]
    eventually(lambda: runs(run, made))
    nothing = run("restart", made, "--include-tasks", "--only-failed", "--json").json
    assert [each["state"] for each in nothing["tasks"]] == ["RUNNING"]
    assert run("restart", made, "--task", "0").out == "restarted task 0 of lines\n"
    eventually(lambda: runs(run, made))
    assert "goes with neither" in run("restart", made, "--task", "0", "--only-failed").error


def test_a_configuration_is_changed_and_replaced(run: Run, made: str, folder: Path) -> None:
    changed = run("config", made, "--set", "batch.size=7", "--set", "more=a=b")
    assert {("batch.size", "7"), ("more", "a=b")} <= {(row[0], row[1]) for row in changed.rows}
    assert "more" not in run("config", made, "--remove", "more", "--json").json
    path = folder / "other.json"
    told = {"connector.class": "FileStreamSource", "file": f"{folder}/in", "topic": "other"}
    path.write_text(json.dumps({"name": made, "config": told}))
    assert run("config", made, "--file", str(path), "--json").json == {**told, "name": made}
    assert run("config", made, "--set", "topic").error == (
        "millstream connect: --set takes SETTING=VALUE, not topic\n"
    )
    refused = run("config", made, "--remove", "topic")
    assert refused.status == 1
    assert 'Missing required configuration "topic"' in refused.error
    assert run("config", made, "--file", str(path), "--set", "a=b").status == 1


def test_offsets_of_a_stopped_connector_are_changed(
    run: Run, made: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition, offset = {"filename": f"{folder}/in"}, {"position": 8}
    eventually(lambda: len(run("offsets", made).rows) == 1)
    eventually(lambda: [json.loads(row[1]) for row in run("offsets", made).rows] == [offset])
    assert "STOPPED" in run("offsets", made, "--reset").error
    assert run("stop", made).out == "stopped lines\n"
    wait_for(run, made, "STOPPED")

    body = {"offsets": [{"partition": partition, "offset": {"position": 4}}]}
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(body)))
    assert "have been altered" in run("offsets", made, "--alter", "-").out
    assert run("offsets", made, "--json").json == body
    assert "have been reset" in run("offsets", made, "--reset").out
    assert run("offsets", made).rows == []
    (folder / "broken.json").write_text("{")
    assert "is no JSON" in run("offsets", made, "--alter", f"{folder}/broken.json").error
    (folder / "deep.json").write_text("[" * 100_000)
    assert "nested too deeply" in run("offsets", made, "--alter", f"{folder}/deep.json").error
    assert "nested too deeply" in run("validate", f"{folder}/deep.json").error


def test_a_configuration_is_validated(run: Run, folder: Path) -> None:
    path = folder / "bad.json"
    path.write_text(json.dumps({"name": "bad", "connector.class": "FileStreamSink", "topics": ""}))
    wrong = run("validate", str(path))
    assert wrong.status == 1
    neither = "Must configure one of topics or topics.regex"
    assert [(row[0], row[2]) for row in wrong.rows] == [
        ("topics", neither),
        ("topics.regex", neither),
    ]
    refused = run("create", str(path))
    assert refused.status == 1
    assert "2 error(s)" in refused.error
    path.write_text(json.dumps({"name": "bad", "connector.class": "FileStreamSink", "topics": "a"}))
    assert run("validate", str(path)) == Ran(0, "bad: nothing is wrong\n", "")
    assert run("create", str(path), "--state", "stopped").status == 0
    wait_for(run, "bad", "STOPPED")
    assert run("delete", "bad").status == 0
    path.write_text(json.dumps({"name": "bad", "topics": "a"}))
    assert "does not say `connector.class`" in run("validate", str(path)).error


def test_a_configuration_is_previewed(run: Run, folder: Path) -> None:
    path = folder / "tried.json"
    config = {"connector.class": "FileStreamSource", "topic": "tried", "file": f"{folder}/in"}
    path.write_text(json.dumps({"name": "tried", "config": config}))
    shown = run("preview", str(path))
    assert shown.status == 0
    assert shown.out.splitlines()[0] == "record 1: would be written"
    assert shown.out.splitlines()[-1] == "2 records, nothing written: no more came for 3 s"
    cast = {
        "transforms": "cast",
        "transforms.cast.type": "Cast$Value",
        "transforms.cast.spec": "int32",
    }
    path.write_text(json.dumps({"name": "tried", "config": {**config, **cast}}))
    failed = run("preview", str(path), "--json")
    assert failed.status == 1
    assert [each["outcome"] for each in failed.json["records"]] == ["failed", "failed"]
    assert run("list", "--json").json == {}


def test_a_failed_task_is_shown_with_its_reason(run: Run, folder: Path) -> None:
    path = folder / "failing.json"
    config = {"connector.class": "FileStreamSink", "topics": "lines", "file": f"{folder}/no/file"}
    path.write_text(json.dumps({"name": "failing", "config": config}))
    assert run("create", str(path)).status == 0
    eventually(lambda: run("status", "failing").status == 1)
    shown = run("status", "failing")
    assert "FAILED" in shown.out
    assert "no/file" in shown.out
    assert run("delete", "failing").status == 0


def test_the_worker_its_plugins_and_its_loggers_are_shown(run: Run) -> None:
    assert ["status", "healthy"] in run("worker").rows
    assert run("worker", "--json").json["kafka_cluster_id"]
    classes = [row[0] for row in run("plugins").rows]
    assert "org.apache.kafka.connect.file.FileStreamSinkConnector" in classes
    assert len(run("plugins", "--all").rows) > len(classes)
    assert ["topic", "string", "required"] in [
        row[:3] for row in run("plugins", "FileStreamSource").rows
    ]
    assert ["root", "INFO"] in run("loggers").rows
    assert ["connect.tried", "DEBUG"] in run("loggers", "connect.tried", "--level", "debug").rows
    assert run("loggers", "connect.tried").rows == [["connect.tried", "DEBUG"]]
    everywhere = run("loggers", "connect.tried", "--level", "warn", "--scope", "cluster")
    assert everywhere.out == "connect.tried is set to WARN at every worker\n"


def test_what_cannot_be_done_says_why(run: Run, worker: ConnectWorker) -> None:
    assert run("status", "none") == Ran(
        1, "", "millstream connect: No status found for connector none\n"
    )
    assert run("pause", "a/b c\0").status == 1
    assert run("create", "/no/such/file").error.endswith(
        "No such file or directory: '/no/such/file'\n"
    )
    assert run("list", at="ftp://here").error == (
        "millstream connect: --url has to be http://host:port, not ftp://here\n"
    )
    refused = run("list", at=worker.worker_id)
    assert refused == Ran(1, "", "millstream connect: User cannot access the resource.\n")
    nobody = f"127.0.0.1:{next(free_ports())}"
    assert run("list", at=nobody).error == (
        f"millstream connect: no answer from a worker at http://{nobody}: Connection refused; "
        "start one with millstream connect start, or name it with --url\n"
    )
    assert run("list", "--loud").status == 2


def test_the_installed_command_asks_a_worker(worker: ConnectWorker) -> None:
    command = [sys.executable, "-m", "millstream", "connect", "worker", "--json"]
    url = f"http://ann:pass%3Aword%2F1@{worker.worker_id}"
    done = subprocess.run(
        [*command, "--url", url],
        capture_output=True,
        check=True,
        env=program_environment(),
        cwd=ROOT,
    )
    assert json.loads(done.stdout)["status"] == "healthy"


def test_what_a_terminal_would_obey_is_told_by_its_number() -> None:
    assert tables.table(("A", "B"), [("x\x1b[2J", {"é": 1}), ("", None)]) == (
        'A       \tB\nx\\x1b[2J\t{"é": 1}\n""      \t-'
    )
    assert tables.block("a\tb\n\x07c") == "a\tb\n\\x07c"
