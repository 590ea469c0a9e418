"""The demo's children are started again when they die, wherever in their lives that is."""

import asyncio
import fcntl
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from millstream.processes import child_processes
from millstream.processes.child_processes import Child, ChildDiedError, Children
from tests.lib import waiting
from tests.lib.quorum_nodes import until

pytestmark = pytest.mark.slow


class Mortal:
    """A child that writes down each of its lives, and is ready when nobody locks its gate."""

    def __init__(self, folder: Path) -> None:
        self.lives, self.gate = folder / "lives", folder / "gate"
        self.log = folder / "mortal.log"
        self.child = Child("mortal", self.log, is_revived=True)

    async def start(self) -> None:
        self.gate.touch()
        await self.child.start("tests.lib.mortal_program", str(self.lives), str(self.gate))

    def pids(self) -> list[int]:
        return [int(line) for line in self.lives.read_text().split()]

    async def kill(self, life: int) -> None:
        """Kill it when it lives for the n-th time."""
        await until(lambda: len(self.pids()) >= life)
        os.kill(self.pids()[life - 1], signal.SIGKILL)

    async def wait_ready(self, life: int) -> None:
        await until(lambda: self.log.read_text().count(" ready on ") >= life)


def while_watched(mortal: Mortal, act: Callable[[], Awaitable[None]]) -> None:
    """Start it, watch it and act; raises what the watching raises."""

    async def run() -> None:
        await mortal.start()
        try:
            async with asyncio.TaskGroup() as group:
                watching = group.create_task(mortal.child.watch())
                await act()
                watching.cancel()
        finally:
            await mortal.child.stop()

    asyncio.run(run())


def test_one_that_dies_while_it_is_started_again_is_started_once_more(tmp_path: Path) -> None:
    mortal = Mortal(tmp_path)

    async def act() -> None:
        with mortal.gate.open() as gate:
            fcntl.flock(gate, fcntl.LOCK_EX)
            await mortal.kill(1)
            await mortal.kill(2)
        await mortal.wait_ready(2)

    while_watched(mortal, act)
    assert len(mortal.pids()) == 3


def test_one_that_dies_over_and_over_is_given_up_with_its_log(tmp_path: Path) -> None:
    mortal = Mortal(tmp_path)

    async def act() -> None:
        for life in range(1, 20):
            await mortal.kill(life)

    with pytest.raises(BaseExceptionGroup) as caught:
        while_watched(mortal, act)
    died, _ = caught.value.split(ChildDiedError)
    assert died is not None
    assert "mortal ended with status -9" in str(died.exceptions[0])
    assert "started again" in str(died.exceptions[0])
    assert len(mortal.pids()) == 1 + child_processes._MAX_REVIVALS


def test_having_served_once_does_not_help_one_that_is_never_ready_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_processes, "_SERVED_SECONDS", 0.0)
    mortal = Mortal(tmp_path)

    async def act() -> None:
        with mortal.gate.open() as gate:
            fcntl.flock(gate, fcntl.LOCK_EX)
            for life in range(1, 20):
                await mortal.kill(life)

    with pytest.raises(BaseExceptionGroup):
        while_watched(mortal, act)
    assert len(mortal.pids()) == 1 + child_processes._MAX_REVIVALS


def test_one_that_serves_before_it_dies_is_started_again_however_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_processes, "_SERVED_SECONDS", 0.0)
    mortal = Mortal(tmp_path)

    async def act() -> None:
        for life in range(1, 10):
            await mortal.wait_ready(life)
            await mortal.kill(life)
        await mortal.wait_ready(10)

    while_watched(mortal, act)
    assert len(mortal.pids()) == 10


def kill_unheard(pid: int) -> None:
    """Kill a process, and return when it is gone: the loop hears nothing meanwhile."""
    os.kill(pid, signal.SIGKILL)
    waiting.until(lambda: not Path(f"/proc/{pid}").exists())


@pytest.mark.parametrize("is_dead", [False, True])
def test_one_that_is_wanted_again_before_its_end_is_seen_is_started(
    tmp_path: Path, is_dead: bool
) -> None:
    mortal = Mortal(tmp_path)
    mortal.child = Child("mortal", mortal.log)

    async def run() -> None:
        await mortal.start()
        (pid,) = mortal.pids()
        if is_dead:
            kill_unheard(pid)
        await mortal.child.stop_until_wanted(is_killed=True)
        mortal.child.start_again()
        watching = asyncio.create_task(mortal.child.watch())
        await asyncio.wait_for(mortal.wait_ready(2), 60)
        watching.cancel()
        await mortal.child.stop()

    asyncio.run(run())


def test_the_death_of_a_child_that_is_started_while_they_are_watched_is_seen(
    tmp_path: Path,
) -> None:
    def mortal(number: int) -> tuple[str, ...]:
        (tmp_path / f"gate-{number}").touch()
        return (str(tmp_path / f"lives-{number}"), str(tmp_path / f"gate-{number}"))

    async def run() -> None:
        children = Children(tmp_path / "logs")
        try:
            await children.start("first", "tests.lib.mortal_program", *mortal(1))
            watching = asyncio.ensure_future(children.watch())
            await asyncio.wait([watching], timeout=0)
            late = await children.start("late", "tests.lib.mortal_program", *mortal(2))
            assert late.pid is not None
            os.kill(late.pid, signal.SIGKILL)
            async with asyncio.timeout(60):
                with pytest.raises(ChildDiedError, match="late ended with status -9"):
                    await watching
        finally:
            await children.stop()

    asyncio.run(run())
