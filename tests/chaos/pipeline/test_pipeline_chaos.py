"""Half a minute of chaos on the whole pipeline; `make chaos PIPELINE=1` runs longer."""

import subprocess
import sys

import pytest


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_half_a_minute_of_chaos_leaves_every_sum_right() -> None:
    command = [sys.executable, "-m", "tests.chaos.pipeline", "--minutes", "0.5", "--orders", "125"]
    done = subprocess.run([*command, "--seed", "3"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
