"""Tests that are killed leave neither processes nor temporary folders."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from millstream.processes.forked_process import CAN_FORK
from tests.lib.connect_worker import eventually

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CAN_FORK, reason="only Linux forks"),
]
KILLED = """
import os, shutil
from pathlib import Path
from millstream.testing import LocalBroker, LocalCluster, LocalStack
from millstream.testing.node_process import NodeProcess
with {made} as started:
    {use}
    print(*pids, flush=True)
    os.kill(os.getpid(), 9)
"""
FIXTURES = """
import os
def test_it(kafka_broker, schema_registry, connect_worker):
    pids = kafka_broker.pid, schema_registry.pid, connect_worker.pid
    with open("pids", "w") as file:
        print(*pids, file=file)
    os.kill(os.getpid(), 9)
"""
NODE = (
    'node = NodeProcess(Path("given"), {"listeners": "PLAINTEXT://127.0.0.1:0"}); '
    "node.launch(); node.wait_until_ready(); pids = [started.pid, node.pid]"
)


def kill_itself(folder: Path, *arguments: str) -> str:
    """Run Python, which kills itself, with temporary files in `folder`; return its output."""
    temporary = folder / "temporary"
    temporary.mkdir()
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr
    eventually(lambda: not [each for each in temporary.iterdir() if each.is_dir()])
    return done.stdout


def has_ended(pid: int) -> bool:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    with os.fdopen(descriptor) as process:
        return bool(select.select([process], [], [], 0)[0])


@pytest.mark.parametrize(
    ("made", "use"),
    [
        ("LocalBroker()", "pids = [started.pid]"),
        ("LocalBroker()", "pids = [started.pid]; started.pause()"),
        ("LocalBroker()", "pids = [started.pid]; started.kill()"),
        (
            "LocalBroker()",
            "pids = [started.pid]; shutil.rmtree(started.data_folder.parent); os.kill(pids[0], 19)",
        ),
        (
            "LocalCluster(brokers=2)",
            "pids = [started.node(each).pid for each in started.node_ids]; started.pause(1)",
        ),
        (
            'LocalStack(parts=("rest-proxy", "connect"))',
            "pids = [started.brokers.pid, *(each.pid for each in started.programs.values())]",
        ),
    ],
)
def test_a_killed_script_leaves_nothing(tmp_path: Path, made: str, use: str) -> None:
    pids = kill_itself(tmp_path, "-c", KILLED.format(made=made, use=use)).split()
    assert pids
    eventually(lambda: all(has_ended(int(pid)) for pid in pids))


def test_a_killed_test_run_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(FIXTURES)
    kill_itself(tmp_path, "-m", "pytest", "-q", "test_it.py")
    pids = (tmp_path / "pids").read_text().split()
    assert len(pids) == 3
    assert [pid for pid in pids if not has_ended(int(pid))] == []


def test_a_node_in_a_folder_that_was_given_stops_cleanly_and_keeps_it(tmp_path: Path) -> None:
    code = KILLED.format(made="LocalBroker()", use=NODE)
    _, pid = kill_itself(tmp_path, "-c", code).split()
    eventually(lambda: has_ended(int(pid)))
    assert (tmp_path / "given" / "data" / "meta.properties").exists()
    assert (tmp_path / "given" / "data" / ".kafka_cleanshutdown").exists()
