"""Apache Kafka in place of `LocalBroker`, to show that a test does not depend on Millstream.

    pytest --kafka=apache

`MILLSTREAM_KAFKA_LIBS` names the folder with Kafka's jars: `libs` of a Kafka download, or what
Maven copies. Java must be installed. `faults` and `requests` are those of a proxy before it. What
only Millstream has (faults of disks, `clock`, `snapshot`, `restore`) raises OnlyMillstreamError
here, and the pytest plugin skips the test.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn, Self

from millstream.processes.cluster_layout import free_ports, random_cluster_id
from millstream.processes.settings_files import properties_text
from millstream.testing.block import Block
from millstream.testing.faults import Faults
from millstream.testing.local_broker import TEST_SETTINGS
from millstream.testing.local_fault_proxy import LocalFaultProxy
from millstream.testing.looking import Looks
from millstream.testing.node_process import (
    LOG_TAIL_CHARACTERS,
    READY_TIMEOUT_SECONDS,
    STOP_TIMEOUT_SECONDS,
    BrokerFailedError,
    settings_text,
)
from millstream.testing.requests import Requests
from millstream.testing.security import Client
from millstream.testing.topics import ADMIN_SETTINGS, POLL_SECONDS, create_topic

VARIABLE = "MILLSTREAM_KAFKA_LIBS"
_JAVA = ("java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""A test ends before the second compiler is worth its time: without it a start takes two thirds of
the processor time."""
_ONE = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


class OnlyMillstreamError(RuntimeError):
    """A test uses what Apache Kafka does not have."""


def kafka_libraries() -> Path:
    """Return the folder with Kafka's jars; raise LookupError that says what is missing."""
    folder = os.environ.get(VARIABLE, "")
    if not folder:
        raise LookupError(f"{VARIABLE} has to name the folder with the jars of Apache Kafka")
    if not list(Path(folder).glob("kafka_2*.jar")):
        raise LookupError(f"{VARIABLE}={folder}: there is no kafka_2*.jar in this folder")
    if shutil.which("java") is None:
        raise LookupError("Apache Kafka needs Java, and there is no `java` on the PATH")
    return Path(folder)


class _WithoutDisks(Faults):
    """The faults of a proxy."""

    def disk(self, *_: object, **__: object) -> NoReturn:
        """Raise OnlyMillstreamError."""
        raise OnlyMillstreamError("the disk of Apache Kafka does not fail on demand")


class ApacheBroker(Looks, Block):
    """One node of Apache Kafka, broker and controller, with the calls of `LocalBroker`."""

    def __init__(self, *, is_testing: bool = True, **settings: object) -> None:
        """Raise LookupError without Apache Kafka or Java. Not `is_testing` means no proxy."""
        self._is_testing = is_testing
        self._libraries = kafka_libraries()
        self._settings = {**TEST_SETTINGS, **_ONE, **settings_text(settings)}
        self._folder: Path | None = None
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._killer: subprocess.Popen[bytes] | None = None
        self._proxy: LocalFaultProxy | None = None
        self._faults = _WithoutDisks(lambda: [self._started_proxy().control])

    def __repr__(self) -> str:
        where = f" {self.bootstrap_servers}" if self._process else ", not running"
        return f"<ApacheBroker{where}>"

    # --- addresses and files ---

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients, as `host:port`: that of the proxy if there is one."""
        assert self._port, "the broker is not started"
        return f"127.0.0.1:{self._port}" if self._proxy is None else self._proxy.bootstrap_servers

    def client_settings(self, client: Client = "confluent-kafka") -> dict[str, Any]:
        """Return the settings of a client: the address."""
        has_dots = client in ("confluent-kafka", "java")
        return {"bootstrap.servers" if has_dots else "bootstrap_servers": self.bootstrap_servers}

    def client_file(self) -> str:
        """Return "": its clients need no settings."""
        return ""

    @property
    def data_folder(self) -> Path:
        """The broker's log directory."""
        return self._started() / "data"

    @property
    def pid(self) -> int:
        """The broker's process id."""
        assert self._process is not None, "the broker is not running"
        return self._process.pid

    def log(self) -> str:
        """Return the broker's log messages so far."""
        return (self._started() / "broker.log").read_text(errors="replace")

    def log_tail(self) -> str:
        """Return the last log messages; empty after `close`."""
        return "" if self._folder is None else self.log()[-LOG_TAIL_CHARACTERS:]

    # --- actions ---

    def create_topic(
        self, name: str, partitions: int = 1, *, settings: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Create a topic; return when every partition has a leader."""
        create_topic(self.client_settings(), name, partitions, 1, settings)

    def start(self) -> Self:
        """Start the broker, or restart it with its port and data; return when it is ready."""
        assert self._process is None, "the broker is running"
        if self._folder is None:
            self._format()
        self._process = self._java("kafka.Kafka", str(self._started() / "server.properties"))
        # Kafka does not notice the end of this process: a shell does.
        kill = ["/bin/sh", "-c", 'read _; kill -KILL "$0"', str(self._process.pid)]
        self._killer = subprocess.Popen(kill, stdin=subprocess.PIPE)
        try:
            self._wait_until_ready()
            if self._is_testing and self._proxy is None:
                self._proxy = LocalFaultProxy(self.bootstrap_servers).start()
        except BaseException:
            self.kill()
            raise
        return self

    def stop(self) -> None:
        """Stop the broker cleanly (SIGTERM) and wait."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
                raise BrokerFailedError(f"Kafka did not stop\n{self.log_tail()}") from None
            self._release()

    def kill(self) -> None:
        """Kill the broker (SIGKILL) like a crash; `start()` restarts it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._release()

    def check(self, *, allow_unused: bool = False) -> None:
        """End all faults; raise UnusedFaultError if one has hit nothing."""
        if self._proxy is not None:
            self._faults.clear(allow_unused=allow_unused)

    def close(self) -> None:
        """Kill the broker and remove its folder."""
        self._close_view()
        self.kill()
        if self._proxy is not None:
            self._proxy.close()
            self._proxy = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    # --- what the proxy has ---

    @property
    def faults(self) -> Faults:
        """What happens to the calls of clients: errors, delays, lost answers, ..."""
        return self._faults

    @property
    def requests(self) -> Requests:
        """The calls that clients have made."""
        return self._started_proxy().requests

    # --- what it lacks ---

    @property
    def clock(self) -> NoReturn:
        """Raise OnlyMillstreamError."""
        raise OnlyMillstreamError("the clock of Apache Kafka cannot be moved")

    def snapshot(self) -> NoReturn:
        """Raise OnlyMillstreamError."""
        raise OnlyMillstreamError("Apache Kafka has no snapshots of its state")

    restore = snapshot

    # --- internal ---

    def _format(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="millstream-apache-"))
        ports = free_ports()
        self._port, controller = next(ports), next(ports)
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": f"PLAINTEXT://127.0.0.1:{self._port},CONTROLLER://127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "log.dirs": str(self._folder / "data"),
            **self._settings,
        }
        file = self._folder / "server.properties"
        file.write_text(properties_text(settings))
        formatting = ("format", "-t", random_cluster_id(), "-c", str(file))
        if self._java("kafka.tools.StorageTool", *formatting).wait(READY_TIMEOUT_SECONDS):
            raise BrokerFailedError(f"Kafka's folder is not formatted\n{self.log_tail()}")

    def _java(self, main_class: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [*_JAVA, "-cp", f"{self._libraries}/*", main_class, *arguments]
        with (self._started() / "broker.log").open("ab") as log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def _wait_until_ready(self) -> None:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        assert self._process is not None
        deadline = time.monotonic() + READY_TIMEOUT_SECONDS
        admin = AdminClient({**ADMIN_SETTINGS, **self.client_settings(), "log_level": 2})
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                if admin.list_topics(timeout=1).brokers:
                    return
            except KafkaException:
                time.sleep(POLL_SECONDS)
        raise BrokerFailedError(f"Kafka is not ready\n{self.log_tail()}")

    def _started(self) -> Path:
        assert self._folder is not None, "the broker is not started"
        return self._folder

    def _started_proxy(self) -> LocalFaultProxy:
        assert self._proxy is not None, "the broker is not started, or has is_testing=False"
        return self._proxy

    def _release(self) -> None:
        self._process = None
        if self._killer is not None:
            self._killer.kill()
            self._killer.communicate()
            self._killer = None
