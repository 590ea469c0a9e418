"""The `millstream` command, for stacks of one folder."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


class Command:
    """The `millstream` command, for stacks of one folder."""

    def __init__(self, home: Path) -> None:
        self._environment = {**os.environ, "MILLSTREAM_HOME": str(home)}

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "millstream", *arguments]
        return subprocess.run(
            command, env=self._environment, capture_output=True, text=True, check=False, timeout=200
        )

    def begin(self, *arguments: str) -> "subprocess.Popen[bytes]":
        """Start the command, and do not wait for it."""
        command = [sys.executable, "-m", "millstream", *arguments]
        quiet = subprocess.DEVNULL
        return subprocess.Popen(command, env=self._environment, stdout=quiet, stderr=quiet)

    def up(self, *arguments: str) -> dict[str, Any]:
        """Start a stack on free ports; return what is printed for programs."""
        done = self("up", "--any-port", "--json", *arguments)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        assert found["is_ready"]
        return found

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self("status", "--json").stdout)
        return found
