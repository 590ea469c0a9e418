"""A real worker as a process, and its REST interface."""

import http.client
import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from millstream.launch import program_environment
from millstream.processes.forked_process import ForkedProcess
from tests.lib.forked import CONNECT

ROOT = Path(__file__).parent.parent.parent
WORKER_SETTINGS = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    "offset.flush.interval.ms": "200",
    "listeners": "http://127.0.0.1:0",
    # Like Apache's worker, with which tests compare; other tests check the allowed directories.
    "file.allowed.directories": "/",
}


class Answer(NamedTuple):
    status: int
    body: Any
    headers: dict[str, str]


def eventually(check: Callable[[], Any], seconds: float = 30, pause_seconds: float = 0.1) -> Any:
    """Repeat a check until its result is true, and return it; a failure shows the last result.

    Use a longer pause for a check that is expensive, here or for the server.
    """
    deadline = time.monotonic() + seconds
    while not (found := check()):
        assert time.monotonic() < deadline, f"still {found!r} after {seconds} s"
        time.sleep(pause_seconds)
    return found


class ConnectWorker:
    """Owns the process. Its files are in `folder`."""

    def __init__(
        self, folder: Path, settings: dict[str, str], *connectors: Path, name: str = "worker"
    ) -> None:
        self.folder = folder
        self._log_path = folder / f"{name}.log"
        properties = folder / f"{name}.properties"
        self.settings = {**WORKER_SETTINGS, **settings}
        lines = [f"{key}={value}\n" for key, value in self.settings.items()]
        properties.write_text("".join(lines))
        self._arguments = ["start", str(properties), *map(str, connectors)]
        self._port = 0
        self.process: ForkedProcess | subprocess.Popen[str] | None = None

    def start(self) -> Self:
        with self._log_path.open("a") as log:
            self.process = CONNECT.start(
                "connect", self._arguments, program_environment(), log, is_bound=True
            )
        self.process.stdin.close()
        for line in self.process.stdout:
            if "ready on" in line:
                self._port = int(line.split("ready on ")[1].split()[0].rpartition(":")[2])
                return self
        raise AssertionError(f"worker did not start:\n{self.log()}")

    __enter__ = start

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def log(self) -> str:
        return self._log_path.read_text()

    def stop(self) -> int:
        """End the worker by SIGTERM; return its exit status."""
        if self.process is None:
            return 0
        self.process.terminate()
        try:
            status = self.process.wait(30)
        finally:
            self.kill()
        return status

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            if self.process.stdout is not None:
                self.process.stdout.close()
            self.process = None

    @property
    def worker_id(self) -> str:
        return f"127.0.0.1:{self._port}"

    def call(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        try:
            data = body if body is None or isinstance(body, bytes) else json.dumps(body)
            told = {"Content-Type": "application/json"} if data is not None else {}
            connection.request(method, path, data, {**told, **(headers or {})})
            answered = connection.getresponse()
            text = answered.read()
            is_json = answered.headers.get_content_type() == "application/json"
            shown = json.loads(text) if text and is_json else text.decode()
            return Answer(answered.status, shown, dict(answered.headers))
        finally:
            connection.close()

    def states(self, name: str) -> dict[str, str]:
        """Return the states of a connector and its tasks, by "connector" and number."""
        status, body, _ = self.call("GET", f"/connectors/{name}/status")
        if status != 200:
            return {}
        tasks = {str(task["id"]): task["state"] for task in body["tasks"]}
        return {"connector": body["connector"]["state"], **tasks}

    def wait_for(self, name: str, **states: str) -> None:
        """Wait until a connector shows these states: `connector="RUNNING", t0="RUNNING"`."""
        wanted = {key.removeprefix("t"): state for key, state in states.items()}
        eventually(lambda: self.states(name) == wanted)
