"""The command and the environment with which a program is started.

The programs (broker, schemas, services) are never imported here. In a checkout their folders are
beside `millstream`; in an installed distribution they are inside of it, and only the child process
has that folder on its path. So they do not conflict with a user's packages `broker` or `services`.
"""

import os
import sys
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
