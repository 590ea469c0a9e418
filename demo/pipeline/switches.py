"""The switches of the demo's brokers: the console writes what is wanted, the demo does it."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from demo.pipeline.brokers import NODE_IDS
from millstream.processes.child_processes import Child
from millstream.processes.switchboard import Switchboard, state_of, switch

_PAUSE_SECONDS: Final = 0.25


def broker_names() -> list[str]:
    """Return the names of the processes that have switches."""
    return [f"broker-{node_id}" for node_id in NODE_IDS]


async def follow_switches(folder: Path, children: Mapping[str, Child]) -> None:
    """Kill, pause and start brokers as told, and write their states, until cancelled."""
    board = Switchboard(folder)
    written: dict[str, object] = {}
    async with asyncio.TaskGroup() as group:
        while True:
            for child, is_killed in switch(children, board.stopped()):
                group.create_task(child.stop_until_wanted(is_killed=is_killed))
            parts = {
                name: {"state": state_of(child), "pid": child.pid, "address": child.address}
                for name, child in children.items()
            }
            if parts != written:
                # The brokers report a full disk; the console still shows the last state.
                with suppress(OSError):
                    board.write(board.state_file, {"is_ready": True, "parts": parts})
                    written = dict(parts)
            await asyncio.sleep(_PAUSE_SECONDS)
