"""One program of the stack as a child process: start, stop and kill it.

On Linux the program is forked: whenever this process ends, even by a kill, the kernel ends the
program, and the fork server removes its folder. On other systems the program is ended if this
process ends normally, and a kill leaves both.
"""

import atexit
import select
import ssl
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import rmtree
from typing import IO, Self
from urllib.error import HTTPError
from urllib.request import urlopen

from millstream.launch import program_command, program_environment
from millstream.processes.forked_process import CAN_FORK, STACK, ForkedProcess
from millstream.processes.program_arguments import (
    CONNECT,
    REGISTRY,
    REST_PROXY,
    connect_properties,
    registry_arguments,
    rest_proxy_arguments,
)
from millstream.testing.block import Block
from millstream.testing.node_process import (
    LOG_TAIL_CHARACTERS,
    READY_TIMEOUT_SECONDS,
    STOP_TIMEOUT_SECONDS,
    BrokerFailedError,
)

_COMMAND_CONFIG = "MILLSTREAM_COMMAND_CONFIG"
"""The variable in which every program looks for a file of client settings."""
_OTHERS = ("KAFKA_", "MILLSTREAM_")
"""Prefixes of variables that are not meant for the processes of a test."""
ANSWER_TIMEOUT_SECONDS = 5
LOOK_SECONDS = 0.02


class LocalProgram(Block):
    """A program with its own folder, which `close` removes."""

    module = ""
    tells_its_address_early = False
    """True if the program says its address before it is ready."""

    def __init__(
        self, environment: Mapping[str, str] | None = None, *, command_config: str = ""
    ) -> None:
        """`command_config` is a file of client settings, for a cluster with security."""
        self._own_environment = dict(environment or {})
        if command_config:
            self._own_environment[_COMMAND_CONFIG] = command_config
        self._folder: Path | None = None
        self._process: subprocess.Popen[str] | ForkedProcess | None = None
        self._log: IO[str] | None = None
        self._url = ""

    def arguments(self, folder: Path) -> Sequence[str]:
        """Return the arguments of the program."""
        raise NotImplementedError

    # --- addresses and files ---

    @property
    def url(self) -> str:
        """The program's address, as `http://host:port`."""
        assert self._url, f"{self.module} is not started"
        return self._url

    @property
    def port(self) -> int:
        """The program's port."""
        return int(self.url.rpartition(":")[2])

    @property
    def pid(self) -> int:
        """The program's process id."""
        assert self._process is not None, f"{self.module} is not running"
        return self._process.pid

    @property
    def folder(self) -> Path:
        """The program's folder."""
        assert self._folder is not None, f"{self.module} is not started"
        return self._folder

    def log_tail(self) -> str:
        """Return the last log messages; empty after `close`."""
        if self._folder is None:
            return ""
        return (self._folder / "log").read_text(errors="replace")[-LOG_TAIL_CHARACTERS:]

    # --- actions ---

    def start(self) -> Self:
        """Start or restart the program; return when it is ready. Raise BrokerFailedError."""
        assert self._process is None, f"{self.module} is running"
        if self._folder is None:
            name = self.module.replace(".", "-")
            self._folder = Path(tempfile.mkdtemp(prefix=f"millstream-{name}-"))
        self._log = (self._folder / "log").open("a")
        try:
            self._process = self._launched(self._folder, self._log)
            deadline = time.monotonic() + READY_TIMEOUT_SECONDS
            self._url = self._told_url(deadline)
            if self.tells_its_address_early:
                self._wait_until_ready(deadline)
        except BaseException:
            self.kill()
            raise
        return self

    def stop(self) -> None:
        """Stop the program (SIGTERM) and wait; raise BrokerFailedError if it does not end."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise BrokerFailedError(f"{self.module} did not stop\n{self.log_tail()}") from None
        self._release()

    def kill(self) -> None:
        """Kill the program (SIGKILL) and wait for its end; `start` restarts it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._release()

    def close(self) -> None:
        """Stop the program and remove its folder."""
        try:
            self.stop()
        finally:
            if self._folder is not None:
                rmtree(self._folder, ignore_errors=True)
                self._folder = None

    # --- internal ---

    def _launched(self, folder: Path, log: IO[str]) -> "subprocess.Popen[str] | ForkedProcess":
        environment = {
            name: value
            for name, value in program_environment().items()
            if not name.startswith(_OTHERS)
        } | self._own_environment
        arguments = self.arguments(folder)
        if CAN_FORK:
            return STACK.start(
                self.module,
                arguments,
                environment,
                log,
                is_bound=True,
                temporary_folder=str(folder),
            )
        process = subprocess.Popen(
            program_command(self.module, *arguments),
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        atexit.register(process.kill)
        return process

    def _told_url(self, deadline: float) -> str:
        assert self._process is not None
        stdout = self._process.stdout
        assert stdout is not None
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([stdout], [], [], left)[0]:
                break
            line = stdout.readline()
            if not line:
                raise BrokerFailedError(f"{self.module} did not start\n{self.log_tail()}")
            _, found, address = line.partition(" ready on ")
            if found:
                return address.split()[0]
        raise BrokerFailedError(f"{self.module} was not ready in time\n{self.log_tail()}")

    def _wait_until_ready(self, deadline: float) -> None:
        assert self._process is not None
        own_server = ssl.create_default_context()
        own_server.check_hostname = False
        own_server.verify_mode = ssl.CERT_NONE
        ready = f"{self._url}/health/ready"
        while time.monotonic() < deadline:
            try:
                with urlopen(ready, timeout=ANSWER_TIMEOUT_SECONDS, context=own_server):
                    return
            except OSError as error:
                if isinstance(error, HTTPError):
                    error.close()
                if self._process.poll() is not None:
                    break
            time.sleep(LOOK_SECONDS)
        raise BrokerFailedError(f"{self.module} was not ready in time\n{self.log_tail()}")

    def _release(self) -> None:
        streams: list[IO[str] | None] = [self._log]
        if self._process is not None:
            streams += [self._process.stdin, self._process.stdout]
        for stream in streams:
            if stream is not None:
                stream.close()
        self._process = self._log = None


class LocalRegistry(LocalProgram):
    """A schema registry for tests, on the topic `_schemas` of a cluster."""

    module = REGISTRY

    def __init__(
        self,
        bootstrap_servers: str,
        *,
        port: int = 0,
        replicas: int = 1,
        command_config: str = "",
    ) -> None:
        super().__init__(command_config=command_config)
        self._arguments = registry_arguments(bootstrap_servers, port, replicas)

    def arguments(self, folder: Path) -> Sequence[str]:
        return self._arguments


class LocalRestProxy(LocalProgram):
    """A REST proxy for tests; `settings` is a dict with the proxy's names."""

    module = REST_PROXY

    def __init__(
        self,
        bootstrap_servers: str,
        registry_url: str = "",
        settings: Mapping[str, str] | None = None,
        *,
        port: int = 0,
        command_config: str = "",
    ) -> None:
        super().__init__(command_config=command_config)
        self._arguments = rest_proxy_arguments(bootstrap_servers, registry_url, port, settings)

    def arguments(self, folder: Path) -> Sequence[str]:
        return self._arguments


class LocalConnect(LocalProgram):
    """A Connect worker for tests; `settings` is a dict with Kafka Connect's names.

    Its connectors may read and write files in `folder`, unless settings say otherwise.
    """

    module = CONNECT
    tells_its_address_early = True  # Its group comes later.

    def __init__(
        self,
        bootstrap_servers: str,
        registry_url: str = "",
        settings: Mapping[str, str] | None = None,
        *,
        port: int = 0,
        replicas: int = 1,
        command_config: str = "",
    ) -> None:
        super().__init__(command_config=command_config)
        self._where = (bootstrap_servers, registry_url, port, replicas)
        self._settings = dict(settings or {})

    def arguments(self, folder: Path) -> Sequence[str]:
        settings = {"file.allowed.directories": str(folder), **self._settings}
        file = folder / "worker.properties"
        file.write_text(connect_properties(*self._where, settings))
        return ["start", str(file)]
