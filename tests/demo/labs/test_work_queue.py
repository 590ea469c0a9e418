"""`millstream lab work-queue` as a user runs it."""

import re
import signal
import subprocess
from pathlib import Path

import pytest

from millstream.launch import program_command, program_environment
from tests.lib.process_tree import processes_below
from tests.lib.running_program import running
from tests.lib.waiting import until

pytestmark = pytest.mark.slow

COMMAND = program_command("millstream", "lab", "work-queue")
WORKERS = 5


def test_killed_workers_give_their_orders_back_and_a_broken_order_is_set_aside() -> None:
    done = subprocess.run(
        COMMAND, env=program_environment(), capture_output=True, text=True, check=False, timeout=200
    )
    shown = done.stdout
    assert done.returncode == 0, shown + done.stderr
    packed = re.findall(r"worker \d has packed (\d+) orders", shown)
    assert len(packed) == WORKERS
    assert sum(map(int, packed)) == 60
    (killed,) = re.findall(r"kill worker (\d), which has it", shown)
    ((heir, delivery),) = re.findall(r"worker (\d) has packed it: it was delivery (\d)", shown)
    assert (killed != heir, delivery) == (True, "2")
    assert "81 orders packed, 1 set aside, none lost" in shown
    lags = [line.split()[-1] for line in shown.splitlines() if line.startswith("packing ")]
    assert lags == ["0", "0"]


def test_ctrl_c_ends_it_and_leaves_no_worker_behind() -> None:
    with running(COMMAND, env=program_environment()) as walk:

        def workers() -> list[int]:
            found = processes_below(walk.pid).items()
            return [pid for pid, command in found if "demo.labs.packing_worker" in command]

        until(lambda: len(workers()) == WORKERS)
        left = processes_below(walk.pid)
        walk.send_signal(signal.SIGINT)
        assert walk.stdout is not None
        assert "stopped" in walk.stdout.read()
        assert walk.wait(60) == 130
    assert not any(Path(f"/proc/{pid}").exists() for pid in left)
