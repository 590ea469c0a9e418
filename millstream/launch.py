"""The command and the environment with which a program is started, and the user's folder.

The programs (broker, schemas, services) are never imported here. In a checkout their folders are
beside `millstream`; in an installed distribution they are inside of it, and only the child process
has that folder on its path. So they do not conflict with a user's packages `broker` or `services`.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def programs_folder() -> Path:
    """Return the folder of the programs' packages."""
    installed = _PACKAGE / "programs"
    return installed if installed.is_dir() else _PACKAGE.parent


def service_names() -> tuple[str, ...]:
    """Return the names of the services, which are the names of their folders.

    The orders service is the first, because users call it.
    """
    found = (path.parent.name for path in programs_folder().glob("services/*/__main__.py"))
    return tuple(sorted(found, key=lambda name: (name != "orders", name)))


def user_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder in which Millstream stores this user's files."""
    named = environment.get("MILLSTREAM_HOME")
    return Path(named) if named else Path.home() / ".millstream"


def program_command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a program's module as a process."""
    return [sys.executable, "-P", "-m", module, *arguments]


def program_environment() -> dict[str, str]:
    """Return this process's environment, with the folder of the programs first on the path."""
    environment = dict(os.environ)
    behind = environment.get("PYTHONPATH")
    paths = [str(programs_folder()), *([behind] if behind else [])]
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    return environment
