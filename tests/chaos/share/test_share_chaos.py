"""Half a minute of `make chaos SHARE=1`; longer runs use the command."""

import subprocess
import sys

import pytest


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_half_a_minute_of_chaos_with_a_share_group_shows_no_anomaly() -> None:
    command = [sys.executable, "-m", "tests.chaos.share", "--minutes", "0.5"]
    command += ["--seed", "1", "--records", "4000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
