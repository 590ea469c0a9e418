"""How a program is started: by which command, in which environment.

The programs (broker, schemas, services) are never imported here. In a checkout they are the folders
beside `millrace`; in an installed distribution they lie inside it, so that a user's own packages
called `broker` or `services` and ours never meet: the child alone has our folder on its path.
"""

import os
import sys
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def programs_folder() -> Path:
    """Return the folder that holds the programs' packages."""
    installed = _PACKAGE / "programs"
    return installed if installed.is_dir() else _PACKAGE.parent


def service_names() -> tuple[str, ...]:
    """Return the names of the services there are, as their folders are named.

    The orders service is the first: it has the address that people are told.
    """
    found = (path.parent.name for path in programs_folder().glob("services/*/__main__.py"))
    return tuple(sorted(found, key=lambda name: (name != "orders", name)))


def program_command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a program's module in a process of its own."""
    return [sys.executable, "-P", "-m", module, *arguments]


def program_environment() -> dict[str, str]:
    """Return this process's environment with the programs first on the child's path."""
    environment = dict(os.environ)
    behind = environment.get("PYTHONPATH")
    paths = [str(programs_folder()), *([behind] if behind else [])]
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    return environment
