"""One real broker in a process of its own, on a free port, in a temporary folder.

The child stops when its standard input closes, and that happens whenever this process ends, however
it ends: no broker outlives the tests that started it.
"""

import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from millrace.launch import program_command, program_environment

READY_TIMEOUT_SECONDS = 30.0
STOP_TIMEOUT_SECONDS = 20.0
LOG_TAIL_CHARACTERS = 20_000
_READY = re.compile(r"millrace broker \d+ ready on (?P<address>\S+)")
_HTTP = re.compile(r"health and metrics on (?P<url>http://\S+)")

# What a test wants and Kafka's defaults do not give.
TEST_SETTINGS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "5"}


class BrokerFailedError(RuntimeError):
    """The broker did not start, or died; the message ends with its log."""


class LocalBroker:
    """A broker for tests. Settings have Kafka's names, as keywords with underscores or in a dict:

    `LocalBroker(num_partitions=3, **{"log.retention.ms": 1000})`. It is started by `with` or
    `start()`, and its folder is removed at the end.
    """

    def __init__(self, **settings: object) -> None:
        self._settings = {
            **TEST_SETTINGS,
            **{name.replace("_", "."): _text(value) for name, value in settings.items()},
        }
        self._process: subprocess.Popen[str] | None = None
        self._folder: Path | None = None
        self._log: IO[str] | None = None
        self._waker: subprocess.Popen[bytes] | None = None
        self._port = 0

    # --- where it is ---

    @property
    def bootstrap_servers(self) -> str:
        """The address clients connect to, as `host:port`."""
        assert self._port, "the broker is not started"
        return f"127.0.0.1:{self._port}"

    @property
    def http_url(self) -> str:
        """The address of its health and metrics pages."""
        found = _HTTP.findall(self.log())
        assert found, "the broker is not started"
        return str(found[-1])

    @property
    def data_folder(self) -> Path:
        """The log directory it writes to."""
        assert self._folder is not None, "the broker is not started"
        return self._folder / "data"

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None, "the broker is not running"
        return self._process.pid

    def log(self) -> str:
        """What it has logged so far."""
        assert self._folder is not None, "the broker is not started"
        return (self._folder / "broker.log").read_text(errors="replace")

    # --- what one can do to it ---

    def start(self) -> Self:
        """Start it, or start it again on the same port and data; return when it serves."""
        assert self._process is None, "the broker is running"
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="millrace-broker-"))
        self._log = (self._folder / "broker.log").open("a")
        self._process = subprocess.Popen(
            program_command("broker", "start", "--exit-with-parent", *self._overrides()),
            env=_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        try:
            self._port = self._wait_until_ready(self._process)
        except BaseException:
            self.kill()
            raise
        return self

    def stop(self) -> None:
        """Stop it cleanly (SIGTERM) and wait."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGCONT)
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise BrokerFailedError(f"the broker did not stop\n{self._tail()}") from None
        self._release()

    def kill(self) -> None:
        """Kill it (SIGKILL), as a crash would; `start()` starts it again."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._release()

    def pause(self) -> None:
        """Freeze it (SIGSTOP)."""
        if self._waker is None:
            # A frozen process cannot see that this one has ended; a shell sees it and wakes it.
            wake = ["/bin/sh", "-c", 'read _; kill -CONT "$0"', str(self.pid)]
            self._waker = subprocess.Popen(wake, stdin=subprocess.PIPE)
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on (SIGCONT)."""
        os.kill(self.pid, signal.SIGCONT)
        self._dismiss_waker()

    def close(self) -> None:
        """Stop it and remove its folder."""
        try:
            self.stop()
        finally:
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
                self._folder = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # --- within ---

    def _overrides(self) -> list[str]:
        settings = {
            "listeners": f"PLAINTEXT://127.0.0.1:{self._port}",
            "log.dirs": str(self.data_folder),
            **self._settings,
        }
        return [
            part for name, value in settings.items() for part in ("--override", f"{name}={value}")
        ]

    def _wait_until_ready(self, process: subprocess.Popen[str]) -> int:
        assert process.stdout is not None
        deadline = time.monotonic() + READY_TIMEOUT_SECONDS
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([process.stdout], [], [], left)[0]:
                break
            line = process.stdout.readline()
            if not line:
                raise BrokerFailedError(f"the broker did not start\n{self._tail()}")
            found = _READY.search(line)
            if found:
                return int(found["address"].rpartition(":")[2])
        raise BrokerFailedError(f"the broker was not ready in time\n{self._tail()}")

    def _tail(self) -> str:
        return self.log()[-LOG_TAIL_CHARACTERS:]

    def _dismiss_waker(self) -> None:
        if self._waker is not None:
            self._waker.kill()
            self._waker.communicate()
            self._waker = None

    def _release(self) -> None:
        assert self._process is not None
        self._dismiss_waker()
        for stream in (self._process.stdin, self._process.stdout, self._log):
            if stream is not None:
                stream.close()
        self._process = None


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _environment() -> dict[str, str]:
    """A test's broker is what the test says it is: no KAFKA_ variable of the outside counts."""
    return {
        name: value
        for name, value in program_environment().items()
        if not name.startswith("KAFKA_") and name != "CLUSTER_ID"
    }
