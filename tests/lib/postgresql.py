"""A private PostgreSQL server, in a folder that is removed with it."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from millstream.processes.cluster_layout import free_ports


class PostgreSql:
    """Owns the server's process. PostgreSQL refuses root, who runs it as user `postgres`."""

    def __init__(self) -> None:
        self._bin = _binaries()
        self._folder = Path(tempfile.mkdtemp(prefix="millstream-postgresql-"))
        if os.getuid() == 0:
            shutil.chown(self._folder, "postgres", "postgres")
        self.port = next(free_ports())
        self.url = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def __enter__(self) -> Self:
        data = self._folder / "data"
        self._run("initdb", "-D", str(data), "-A", "trust", "--no-sync", "-U", "postgres")
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if (self._folder / "data" / "postmaster.pid").exists():
            self.stop("fast")
        shutil.rmtree(self._folder)

    def start(self) -> None:
        options = (
            f"-p {self.port} -c listen_addresses=127.0.0.1 -c wal_level=logical "
            f"-c fsync=off -k {self._folder}"
        )
        data, log = self._folder / "data", self._folder / "log"
        self._run("pg_ctl", "-D", str(data), "-w", "-l", str(log), "-o", options, "start")

    def stop(self, mode: str = "immediate") -> None:
        """Stop the server; `immediate` is like a crash."""
        self._run("pg_ctl", "-D", str(self._folder / "data"), "-w", "-m", mode, "stop")

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._bin / program), *arguments]
        if os.getuid() == 0:
            command = [
                "setpriv",
                "--reuid=postgres",
                "--regid=postgres",
                "--clear-groups",
                *command,
            ]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=False, cwd=self._folder
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)


def _binaries() -> Path:
    told = shutil.which("pg_ctl")
    if told is not None:
        return Path(told).parent
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))
    if not found:
        pytest.skip("PostgreSQL is not installed")
    return found[-1].parent
