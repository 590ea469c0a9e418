"""The folder of a stack: `~/.millstream/stacks/NAME`, or below `MILLSTREAM_HOME`.

The process that runs the stack holds `lock` as long as it lives. `plan.json` has the options of the
stack, `state.json` its current state, `stopped.json` the parts that the user has stopped, `env` the
variables for clients. Logs are in `logs`; data is in `data` unless the user gives another folder.
"""

import fcntl
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from millstream.launch import user_folder
from millstream.processes.switchboard import Switchboard

_NAME = re.compile(r"[A-Za-z0-9._-]{1,60}")


class Place(Switchboard):
    """The folder of one stack."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.plan_file = folder / "plan.json"
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

    def plan(self) -> dict[str, Any]:
        """Return the plan of the stack. Raise OSError, ValueError."""
        found: dict[str, Any] = json.loads(self.plan_file.read_text(encoding="utf-8"))
        return found


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
