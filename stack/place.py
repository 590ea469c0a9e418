"""The folder of a stack: `~/.millstream/stacks/NAME`, or below `MILLSTREAM_HOME`.

The process that runs the stack holds `lock` as long as it lives. `plan.json` has the options of the
stack, `state.json` its current state, `stopped.json` the parts that the user has stopped, `env` the
variables for clients. Logs are in `logs`; data is in `data` unless the user gives another folder.
"""

import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from millstream.launch import user_folder
from millstream.processes.settings_files import naming

_NAME = re.compile(r"[A-Za-z0-9._-]{1,60}")


class Place:
    """The folder of one stack."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.plan_file = folder / "plan.json"
        self.state_file = folder / "state.json"
        self._stopped_file = folder / "stopped.json"
        self.env_file = folder / "env"
        self.log_folder = folder / "logs"
        self.data_folder = folder / "data"
        self._lock_file = folder / "lock"

    @property
    def name(self) -> str:
        return self.folder.name

    def is_taken(self) -> bool:
        """Return whether a process runs this stack."""
        try:
            with self._lock_file.open("r+b") as file:
                return not _locked(file)
        except FileNotFoundError:
            return False

    def take(self) -> IO[bytes] | None:
        """Return the lock, held until it is closed or the process ends; None if it is taken."""
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self._lock_file.open("a+b")
        if _locked(file):
            return file
        file.close()
        return None

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Lock out other commands that may start the stack; wait for them first."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "up.lock").open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def state(self) -> dict[str, Any]:
        """Return the state of the stack; empty before the stack has written it."""
        try:
            found = json.loads(self.state_file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def stopped(self) -> dict[str, bool | str]:
        """Return the parts that the user has stopped, and whether each was killed; or `paused`."""
        try:
            found = json.loads(self._stopped_file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def write_stopped(self, parts: Mapping[str, bool | str]) -> None:
        """Tell the process that runs the stack which parts are stopped. Raise OSError."""
        self.write(self._stopped_file, parts)

    def plan(self) -> dict[str, Any]:
        """Return the plan of the stack. Raise OSError, ValueError."""
        found: dict[str, Any] = json.loads(self.plan_file.read_text(encoding="utf-8"))
        return found

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


def _locked(file: IO[bytes]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def place_of(name: str, environment: Mapping[str, str]) -> Place:
    """Return the place of a stack; raise ValueError for a name that is not valid for a folder."""
    if not _NAME.fullmatch(name) or name.startswith("."):
        raise ValueError(f"a stack cannot be called {name!r}")
    return Place(user_folder(environment) / "stacks" / name)


def places(environment: Mapping[str, str]) -> list[Place]:
    """Return the places of all stacks that have a folder."""
    folder = user_folder(environment) / "stacks"
    return [Place(each) for each in sorted(folder.iterdir())] if folder.is_dir() else []
