"""The walks of the mirror as a user runs them."""

import re
import subprocess

import pytest

from millrace.launch import program_command, program_environment

pytestmark = pytest.mark.slow


def walk(name: str) -> str:
    done = subprocess.run(
        program_command("millrace", "lab", name),
        env=program_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_fail_over_and_back() -> None:
    shown = walk("mirror-failover")
    assert "goes back to primary, and skips none" in shown
    read_again = re.findall(r"read in all, (\d+) of them again now", shown)
    assert read_again == ["0"] * 4


def test_both_ways() -> None:
    shown = walk("mirror-both-ways")
    assert "primary has backup.orders and orders" in shown
    assert "backup has orders and primary.orders" in shown


def test_migration() -> None:
    shown = walk("mirror-migration")
    assert re.search(r"1000 different orders read in all, \d+ of them again now", shown)
