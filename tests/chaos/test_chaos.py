"""A minute of chaos on a real cluster; `make chaos` runs longer."""

import subprocess
import sys
from datetime import UTC, datetime

import pytest

from millstream.testing.chaos.schedule import KILL, Fault, Target
from tests.chaos.__main__ import REPLICATION_FACTOR
from tests.chaos.availability import Window, acknowledgements
from tests.chaos.history import Kind, Operation, Outcome, Sent
from tests.chaos.report import Suffered, missing_kinds, row_of

SEED = datetime.now(UTC).toordinal()
"""A different seed every day; a failure names it."""
FAULT = Fault(KILL, Target.LEADER, True, 1_000, 1_000)


def sends(key: str, *times_ms: int) -> list[Operation]:
    return [Operation(1, Kind.SEND, Outcome.OK, at, at + 5, (Sent(key, at),)) for at in times_ms]


def test_a_partition_that_does_not_go_on_is_told() -> None:
    found = acknowledgements([*sends("a", 100, 500, 900), *sends("b", 1_100)])
    suffered = Suffered(FAULT, [1], Window(0, 1_000), 1_200, ["a", "b"])
    row = row_of(suffered, found)
    assert (row.is_good, row.is_silent, row.gap.key) == (False, ["b"], "b")
    only_one = row_of(suffered._replace(expected=["a"]), found)
    assert (only_one.is_good, only_one.acknowledged) == (True, 3)
    # Without expected keys the gap is measured until full recovery.
    nothing = row_of(suffered._replace(expected=[]), found)
    assert (nothing.is_good, nothing.gap.milliseconds) == (True, 1_105)


def test_a_load_that_never_polls_is_told() -> None:
    assert missing_kinds(sends("a", 1)) == ["poll", "assign", "subscribe", "crash"]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_minute_of_chaos_shows_no_anomaly() -> None:
    command = [sys.executable, "-m", "tests.chaos", "--minutes", "1", "--seed", str(SEED)]
    command += ["--replication-factor", str(REPLICATION_FACTOR)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
