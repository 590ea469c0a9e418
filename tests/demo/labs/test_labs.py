"""Each lab and each runbook as a reader does it: every command prints what the page shows.

A page has its own network and its own processes, where the machine allows that: its addresses are
those of the page, and nothing that it started outlives it.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from demo.labs.pages import folder_of_pages, page_names
from millstream.launch import program_command, program_environment
from tests.lib.quick_spark import quick_spark

pytestmark = pytest.mark.slow

LAB_SECONDS = 600
RUNBOOKS = Path(__file__).parents[3] / "docs/runbooks"
ALONE = ["unshare", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
LOOPBACK = 'ip link set lo up && exec "$@"'


def can_be_alone() -> bool:
    """Tell whether this machine gives a process a network of its own."""
    try:
        done = subprocess.run(
            [*ALONE, "bash", "-c", LOOPBACK, "bash", "true"], capture_output=True, check=False
        )
    except FileNotFoundError:
        return False
    return done.returncode == 0


@pytest.mark.parametrize("name", page_names(folder_of_pages()))
def test_the_lab_is_as_its_page_shows(name: str, tmp_path: Path) -> None:
    run_alone(name, program_command("millstream", "lab", name), tmp_path)


@pytest.mark.parametrize("name", page_names(RUNBOOKS))
def test_the_runbook_is_as_its_page_shows(name: str, tmp_path: Path) -> None:
    page = RUNBOOKS / f"{name}.md"
    run_alone(name, [sys.executable, "-m", "tests.lib.page_runner", str(page)], tmp_path)


def run_alone(name: str, command: Sequence[str], tmp_path: Path) -> None:
    """Run the commands of a page in a network of its own."""
    if not can_be_alone():
        pytest.skip("this machine gives no process a network of its own")
    (tmp_path / "home").mkdir()
    done = subprocess.run(
        [*ALONE, "bash", "-c", LOOPBACK, "bash", *command],
        cwd=tmp_path,
        env={
            **os.environ,
            **program_environment(),
            **quick_spark(),
            "HOME": str(tmp_path / "home"),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LAB_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "home/.millstream/labs" / name / ".step").read_text() == "done\n"
