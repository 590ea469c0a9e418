"""A folder by which people switch the programs of a stack or of a demo: two files of JSON.

The process that runs the programs writes `state.json`. Commands and the console read it, and write
`stopped.json`: the parts that are to be stopped, whether each was killed, or that it is paused.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.processes.settings_files import naming

if TYPE_CHECKING:
    # A command that only writes a file starts without an event loop.
    from millstream.processes.child_processes import Child

READY, STARTING, ENDED = "ready", "starting", "ended: see millstream logs"
STOPPED, PAUSED = "stopped", "paused"


class Switchboard:
    """Owns the two files in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state_file = folder / "state.json"
        self._stopped_file = folder / "stopped.json"

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Lock out others that may start or stop something; wait for them first."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "up.lock").open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def state(self) -> dict[str, Any]:
        """Return the state of the programs; empty before it was written."""
        return _read(self.state_file)

    def stopped(self) -> dict[str, bool | str]:
        """Return the parts that the user has stopped, and whether each was killed; or `paused`."""
        return _read(self._stopped_file)

    def write_stopped(self, parts: Mapping[str, bool | str]) -> None:
        """Tell the process that runs the programs which of them are stopped. Raise OSError."""
        self.write(self._stopped_file, parts)

    def write(self, file: Path, content: Mapping[str, Any]) -> None:
        """Write JSON atomically: a reader sees the old or the new content. Raise OSError."""
        write_whole(file, json.dumps(content, indent=2) + "\n")


def write_whole(file: Path, text: str) -> None:
    """Replace a file atomically; raise OSError, which names the file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        with naming(file):
            beside.write_text(text, encoding="utf-8")
            beside.replace(file)
    except OSError:
        with suppress(OSError):
            beside.unlink()
        raise


def _read(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def switch(
    children: Mapping[str, "Child"], stopped: Mapping[str, bool | str]
) -> Iterator[tuple["Child", bool]]:
    """Pause, resume and start children as told; yield those to be stopped, and if by a kill."""
    for name, child in children.items():
        is_paused = stopped.get(name) == PAUSED
        if child.is_paused != is_paused and not child.is_stopped:
            child.pause(is_paused=is_paused)
        if is_paused:
            continue
        if child.is_stopped and name not in stopped:
            child.start_again()
        elif name in stopped and not child.is_stopped:
            yield child, bool(stopped[name])


def state_of(child: "Child") -> str:
    """Return the state of a program for people."""
    if child.is_stopped:
        return STOPPED
    if child.is_paused:
        return PAUSED
    if child.is_ready:
        return READY
    return STARTING if child.is_running or not child.has_started else ENDED
