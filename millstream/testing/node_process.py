"""One node as a child process: start, stop, kill and freeze it.

The node stops when its standard input closes, which happens whenever this process ends, even by a
kill. So no node outlives the tests that started it. On Linux, the temporary folder of its tests
does not outlive them either. It does on other systems if the tests are killed, and also if all
nodes in the folder have additional environment variables: these nodes are not forked.
"""

import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from millstream.launch import program_command, program_environment
from millstream.processes.forked_process import BROKERS, CAN_FORK, ForkedProcess
from millstream.testing.broker_clock import BrokerClock
from millstream.testing.broker_control import RESTART_SECONDS, BrokerControl
from millstream.testing.faults import Faults
from millstream.testing.requests import Requests

READY_TIMEOUT_SECONDS = 60.0
STOP_TIMEOUT_SECONDS = 20.0
LOG_TAIL_CHARACTERS = 20_000
_READY = re.compile(r"millstream (?:broker|controller) \d+ ready on (?P<address>\S+)")
_HTTP = re.compile(r"health and metrics on (?P<url>https?://\S+)")
_PROGRAM = "broker"


class BrokerFailedError(RuntimeError):
    """A node did not start, or died; the message ends with its log."""


class NodeProcess:
    """A node with its own folder, which is kept after the process ends, so the node can restart.

    `settings` have Kafka's names. A new folder is formatted for the cluster `cluster_id`, with
    `initial_controllers` as the first voters, in the form of `storage format`. `environment` has
    additional environment variables of the process. `temporary_folder` is the folder or a parent
    of it that was made for tests: it is removed if it still exists when the tests' process ends.
    With `is_testing` it has `faults` and `requests`.
    """

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, str],
        cluster_id: str | None = None,
        environment: Mapping[str, str] | None = None,
        initial_controllers: str | None = None,
        temporary_folder: Path | None = None,
        *,
        is_testing: bool = False,
    ) -> None:
        self.folder = folder
        self.settings = dict(settings)
        self._cluster = {"CLUSTER_ID": cluster_id, "INITIAL_CONTROLLERS": initial_controllers}
        self._own_environment = dict(environment or {})
        self._temporary_folder = "" if temporary_folder is None else str(temporary_folder)
        self._process: subprocess.Popen[str] | ForkedProcess | None = None
        self._log: IO[str] | None = None
        self._waker: subprocess.Popen[bytes] | None = None
        self._http_url = ""
        self.is_testing = is_testing
        self._has_ended = False
        self.control = BrokerControl(lambda: self.http_url)
        self.faults = Faults(lambda: [self._tested()])
        """The faults of this node; all end when it does."""
        self.requests = Requests(lambda: [self._tested()])
        """The calls of clients since the node was started."""
        self.clock = BrokerClock(lambda: [self._tested()])
        """The time of clients."""

    def _tested(self) -> BrokerControl:
        assert self.is_testing, "the node was made with is_testing=False"
        assert self.is_running, "the node is not running"
        return self.control

    # --- properties ---

    @property
    def is_running(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def is_paused(self) -> bool:
        """Whether the process is frozen."""
        return self._waker is not None

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process is not None, "the node is not running"
        return self._process.pid

    @property
    def data_folder(self) -> Path:
        """The node's log directory."""
        return self.folder / "data"

    @property
    def log_file(self) -> Path:
        """The file of the node's log messages."""
        return self.folder / "broker.log"

    @property
    def http_url(self) -> str:
        """The address of the node's health and metrics pages."""
        if not self._http_url:
            found = _HTTP.findall(self.log())
            assert found, "the node is not started"
            self._http_url = str(found[-1])
        return self._http_url

    def log(self) -> str:
        """Return the log messages so far."""
        return self.log_file.read_text(errors="replace")

    def log_tail(self) -> str:
        """Return the last log messages."""
        return self.log()[-LOG_TAIL_CHARACTERS:]

    # --- actions ---

    def launch(self) -> None:
        """Start the node, without waiting until it is ready."""
        assert self._process is None, "the node is running"
        self._has_ended = False
        self._http_url = ""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._log = self.log_file.open("a")
        environment = _environment(self._cluster) | self._own_environment
        options = ("--exit-with-parent", *(["--testing"] if self.is_testing else []))
        arguments = ("start", *options, *self._overrides())
        if CAN_FORK and not self._own_environment:
            self._process = BROKERS.start(
                _PROGRAM,
                arguments,
                environment,
                self._log,
                temporary_folder=self._temporary_folder,
            )
        else:
            # The environment may contain variables for the interpreter or for its loader.
            self._process = subprocess.Popen(
                program_command(_PROGRAM, *arguments),
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                text=True,
            )

    def wait_until_ready(self) -> int:
        """Wait until the node is ready and return its port; kill it if it is not ready in time."""
        assert self._process is not None, "the node is not running"
        try:
            port = self._ready_port(self._process)
            if self.is_testing and self.control.ahead_ms:
                body = {"advance_ms": self.control.ahead_ms}
                self.control.call("POST", "/clock", body=body)
            return port
        except BaseException:
            self.kill()
            raise

    def snapshot(self) -> None:
        """Keep the node's state for `restore`; it closes all connections."""
        self._tested().call("POST", "/snapshot", seconds=RESTART_SECONDS)

    def restore(self, *, new_port: bool = False) -> int:
        """Bring the node back to its snapshot, and return its port; its faults end.

        It closes all connections; with `new_port` old clients do not find it again.
        """
        if self.is_paused:
            self.resume()
        control = self._tested()
        control.end_run(can_ask=True)
        body = {"new_ports": new_port}
        assert self.http_url, "it is in the log, which begins anew"
        os.truncate(self.log_file, 0)  # The node appends to it.
        answer = control.call("POST", "/restore", body=body, seconds=RESTART_SECONDS)
        control.ahead_ms = answer["ahead_ms"]
        address: str = next(iter(answer["listeners"].values()))
        return int(address.rpartition(":")[2])

    def send_stop(self) -> None:
        """Send SIGTERM, without waiting for the end; `stop` waits."""
        if self._process is not None:
            self._end_run()
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()

    def stop(self) -> None:
        """Stop the node cleanly (SIGTERM) and wait."""
        if self._process is None:
            return
        self.send_stop()
        try:
            self._process.wait(STOP_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise BrokerFailedError(f"the broker did not stop\n{self.log_tail()}") from None
        self._release()

    def wait_until_ended(self, seconds: float) -> int:
        """Wait until the node has ended by itself, and return its exit status."""
        assert self._process is not None, "the node is not running"
        try:
            status = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise BrokerFailedError(f"the node did not end\n{self.log_tail()}") from None
        self._release()
        return status

    def send_kill(self) -> None:
        """Send SIGKILL, without waiting for the end; `kill` waits."""
        if self._process is not None:
            self._end_run()
            self._process.kill()

    def kill(self) -> None:
        """Kill the node (SIGKILL) like a crash, and wait for its end."""
        if self._process is not None:
            self.send_kill()
            self._process.wait()
            self._release()

    def pause(self) -> None:
        """Freeze the node (SIGSTOP)."""
        if self._waker is None:
            # A frozen node cannot notice the end of this process: a shell does, and wakes it.
            wake = ["/bin/sh", "-c", 'read _; kill -CONT "$0"', str(self.pid)]
            self._waker = subprocess.Popen(wake, stdin=subprocess.PIPE)
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Continue the frozen node (SIGCONT)."""
        os.kill(self.pid, signal.SIGCONT)
        self._dismiss_waker()

    # --- internal ---

    def _end_run(self) -> None:
        """Keep what the rules have hit: they end with the process."""
        if self.is_testing and not self._has_ended:
            self._has_ended = True
            self.control.end_run(can_ask=self.is_running and not self.is_paused)

    def _overrides(self) -> list[str]:
        settings = {"log.dirs": str(self.data_folder), **self.settings}
        return [
            part for name, value in settings.items() for part in ("--override", f"{name}={value}")
        ]

    def _ready_port(self, process: subprocess.Popen[str] | ForkedProcess) -> int:
        assert process.stdout is not None
        deadline = time.monotonic() + READY_TIMEOUT_SECONDS
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([process.stdout], [], [], left)[0]:
                break
            line = process.stdout.readline()
            if not line:
                raise BrokerFailedError(f"the broker did not start\n{self.log_tail()}")
            found = _READY.search(line)
            if found:
                return int(found["address"].rpartition(":")[2])
        raise BrokerFailedError(f"the broker was not ready in time\n{self.log_tail()}")

    def _dismiss_waker(self) -> None:
        if self._waker is not None:
            self._waker.kill()
            self._waker.communicate()
            self._waker = None

    def _release(self) -> None:
        assert self._process is not None
        self._end_run()
        self._dismiss_waker()
        for stream in (self._process.stdin, self._process.stdout, self._log):
            if stream is not None:
                stream.close()
        self._process = None


def settings_text(settings: Mapping[str, object]) -> dict[str, str]:
    """Return settings with Kafka's names and text values: `num_partitions=3`, `num.partitions`.

    A name with a dot is Kafka's already: `listener.name.sasl_ssl.ssl.client.auth`.
    """
    return {
        name if "." in name else name.replace("_", "."): _text(value)
        for name, value in settings.items()
    }


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _environment(cluster: Mapping[str, str | None]) -> dict[str, str]:
    """Return the environment without KAFKA_ variables: only the test configures its node."""
    environment = {
        name: value
        for name, value in program_environment().items()
        if not name.startswith("KAFKA_") and name not in cluster
    }
    return environment | {name: value for name, value in cluster.items() if value is not None}
