"""Sixty tasks through one fault of each kind; `many_tasks` takes them through as many as asked."""

from pathlib import Path

import pytest

from tests.connect.worker.many_tasks import walk

pytestmark = pytest.mark.slow


@pytest.mark.e2e
def test_sixty_tasks_go_on_though_workers_are_killed_frozen_and_cut_off(tmp_path: Path) -> None:
    said: list[str] = []
    result = walk(tmp_path, 3, said.append)
    log = result.pop("log")
    assert result["problems"] == [], (said, log[-20_000:])
