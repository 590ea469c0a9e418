"""A program that runs while a test looks at it."""

import os
import signal

import pytest

from tests.lib.running_program import running


def test_a_check_that_fails_ends_the_program_and_is_what_is_reported() -> None:
    with (
        pytest.raises(AssertionError, match="the check"),
        running(["sleep", "20"], env=os.environ) as process,
    ):
        raise AssertionError("the check")
    assert process.returncode == -signal.SIGKILL


def test_what_has_ended_keeps_its_status() -> None:
    with running(["sh", "-c", "echo word; exit 3"], env=os.environ) as process:
        assert process.stdout is not None
        assert process.stdout.read() == "word\n"
        assert process.wait(20) == 3
    assert process.returncode == 3
