"""The `millstream` command, whose stack is stopped after each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lib.stack_command import Command


@pytest.fixture
def millstream(tmp_path: Path) -> Iterator[Command]:
    command = Command(tmp_path / "home")
    yield command
    command("down")
