"""The walks of the mirror as a user runs them."""

import re
import subprocess
from pathlib import Path

import pytest

from millstream.launch import program_command, program_environment
from tests.lib.apache_kafka import kafka_libs, running_node
from tests.lib.mirror_process import topic_names

pytestmark = pytest.mark.slow


def walk(name: str, *arguments: str) -> str:
    done = subprocess.run(
        program_command("millstream", "lab", name, *arguments),
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
    assert "returns to primary, and skips no order" in shown
    read_again = re.findall(r"read in total, (\d+) of them read again", shown)
    assert read_again == ["0"] * 4


def test_both_ways() -> None:
    shown = walk("mirror-both-ways")
    assert "primary has backup.orders and orders" in shown
    assert "backup has orders and primary.orders" in shown


def test_hub_and_spoke() -> None:
    shown = walk("mirror-hub-and-spoke")
    assert "250 different orders read in total" in shown
    assert "hub has north.orders and prices and south.orders" in shown
    assert "south has hub.prices and orders" in shown


def check_migration(shown: str) -> None:
    """That none was lost or came twice, and how many the group read again, the walk itself sees."""
    (total,) = re.findall(r"(\d+) orders in total", shown)
    assert int(total) > 600
    assert f"{total} different orders read in total" in shown


def test_migration_while_orders_come_in() -> None:
    check_migration(walk("mirror-migration"))


@pytest.mark.interop
def test_migration_from_apache_kafka(tmp_path: Path) -> None:
    with running_node(kafka_libs(), tmp_path) as source:
        check_migration(walk("mirror-migration", "--from", source))
        assert {name for name in topic_names(source) if not name.startswith("__")} == set()
