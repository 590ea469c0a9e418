"""`millstream lab failover` as a user runs it."""

import re
import signal
import subprocess
from pathlib import Path

import pytest

from millstream.launch import program_command, program_environment
from tests.lib.process_tree import processes_below
from tests.lib.running_program import running

pytestmark = pytest.mark.slow

WITHOUT_TOOL = 4
"""Three nodes, and what they were forked from."""
# Without replication the killed broker's partitions wait for it, and the walk says so.
REPLICATION_FACTOR = 3
COMMAND = program_command(
    "millstream", "lab", "failover", "--replication-factor", str(REPLICATION_FACTOR)
)


def test_the_walk_shows_each_step_and_comes_true() -> None:
    done = subprocess.run(
        COMMAND, env=program_environment(), capture_output=True, text=True, check=False, timeout=200
    )
    assert done.returncode == 0, done.stdout + done.stderr
    steps = re.findall(r"^done  (.*) \(", done.stdout, re.MULTILINE)
    first_words = "start create every every kill its traffic restart all every every"
    assert " ".join(step.split()[0] for step in steps) == first_words
    assert re.search(r"^ +\d+ records, none lost$", done.stdout, re.MULTILINE)


def test_a_step_that_does_not_come_true_ends_it() -> None:
    command = [*COMMAND[:-1], "4"]  # more replicas than there are brokers
    done = subprocess.run(
        command, env=program_environment(), capture_output=True, text=True, check=False, timeout=200
    )
    assert done.returncode == 1
    assert "The step failed: " in done.stdout


@pytest.mark.parametrize("is_tool_awaited", [False, True])
def test_ctrl_c_ends_it_and_leaves_nothing_behind(is_tool_awaited: bool) -> None:
    with running(COMMAND, env=program_environment()) as walk:
        assert walk.stdout is not None
        assert "start 3 nodes" in walk.stdout.readline()
        # Beside the nodes there is soon a tool, which the next step runs: when it is seen it has
        # most often just been forked, which is when nobody would know it to end it.
        while len(processes := processes_below(walk.pid)) == WITHOUT_TOOL and is_tool_awaited:
            pass
        assert len([pid for pid, command in processes.items() if "start" in command]) == 3
        walk.send_signal(signal.SIGINT)
        assert "stopped" in walk.stdout.read()
        assert walk.wait(60) == 130
    assert not any(Path(f"/proc/{pid}").exists() for pid in processes)
