"""Each lab as a reader does it: every command of the page prints what the page shows.

A lab has its own network and its own processes, where the machine allows that: its addresses are
those of the page, and nothing that it started outlives it.
"""

import os
import subprocess
from pathlib import Path

import pytest

from demo.labs.pages import folder_of_pages, page_names
from millstream.launch import program_command, program_environment

pytestmark = pytest.mark.slow

LAB_SECONDS = 240
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
    if not can_be_alone():
        pytest.skip("this machine gives no process a network of its own")
    (tmp_path / "home").mkdir()
    command = program_command("millstream", "lab", name)
    done = subprocess.run(
        [*ALONE, "bash", "-c", LOOPBACK, "bash", *command],
        cwd=tmp_path,
        env={**os.environ, **program_environment(), "HOME": str(tmp_path / "home")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LAB_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "home/.millstream/labs" / name / ".step").read_text() == "done\n"
