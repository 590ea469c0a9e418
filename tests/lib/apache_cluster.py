"""Three nodes of Apache Kafka with two directories each, all brokers and voters of the quorum."""

import os
import shutil
import signal
import subprocess
from base64 import urlsafe_b64encode
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Self

from millstream.processes.cluster_layout import free_ports
from tests.lib.apache_kafka import formatted_folder, wait_for_port
from tests.lib.java import java

NODE_IDS = (1, 2, 3)
_START_SECONDS = 180
"""Three at once on a machine that has other work."""


class ApacheCluster:
    """The nodes by id; leaving the block ends all that run."""

    def __init__(self, libs: str, folder: Path, **settings: str) -> None:
        """Names of settings have underscores for dots."""
        self._libs, self._folder = libs, folder
        ports = list(islice(free_ports(), 2 * len(NODE_IDS)))
        self._ports = dict(zip(NODE_IDS, ports[: len(NODE_IDS)], strict=True))
        self._voters = dict(zip(NODE_IDS, ports[len(NODE_IDS) :], strict=True))
        self._settings = {name.replace("_", "."): value for name, value in settings.items()}
        self._running: dict[int, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        for node_id in NODE_IDS:
            self._prepare(node_id)
        try:
            self._start()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def _end(self) -> None:
        for process in self._running.values():
            process.kill()
            process.wait()

    def address(self, node_id: int) -> str:
        return f"127.0.0.1:{self._ports[node_id]}"

    def _start(self) -> None:
        """Start all nodes at the same time; return when they take connections."""
        for node_id in NODE_IDS:
            command = [*java(self._libs, "-Xmx384m"), "kafka.Kafka", str(self._file(node_id))]
            with (self._folder / f"{node_id}.log").open("ab") as output:
                self._running[node_id] = subprocess.Popen(command, stdout=output, stderr=output)
        for node_id, process in self._running.items():
            wait_for_port(self._ports[node_id], process, _START_SECONDS)

    def pause(self, node_id: int) -> None:
        """Freeze a node, which is soon as good as dead: to go on takes it less than a start."""
        self._running[node_id].send_signal(signal.SIGSTOP)

    def resume(self, node_id: int) -> None:
        self._running[node_id].send_signal(signal.SIGCONT)

    def break_directory(self, node_id: int) -> None:
        """Take a node's second directory away: the node notices when it creates a replica there."""
        self._directory("more", node_id).rename(self._directory("broken", node_id))

    def _directory(self, name: str, node_id: int) -> Path:
        return self._folder / f"{name}-{node_id}"

    def _file(self, node_id: int) -> Path:
        return self._folder / f"{node_id}.properties"

    def _prepare(self, node_id: int) -> None:
        """Write a node's settings, and its directories as Kafka's tool would format them."""
        data, more = self._directory("data", node_id), self._directory("more", node_id)
        shutil.copytree(formatted_folder(self._libs), data)
        lines = (data / "meta.properties").read_text().splitlines()
        told = dict(line.split("=", 1) for line in lines if not line.startswith("#"))
        more.mkdir()
        for each in (data, more):
            directory_id = urlsafe_b64encode(os.urandom(16)).decode().rstrip("=").replace("-", "A")
            own = told | {"node.id": str(node_id), "directory.id": directory_id}
            (each / "meta.properties").write_text("".join(f"{k}={v}\n" for k, v in own.items()))
        listeners = f"PLAINTEXT://127.0.0.1:{self._ports[node_id]}"
        voters = [f"{each}@127.0.0.1:{port}" for each, port in self._voters.items()]
        settings = {
            "process.roles": "broker,controller",
            "node.id": str(node_id),
            "listeners": f"{listeners},CONTROLLER://127.0.0.1:{self._voters[node_id]}",
            "advertised.listeners": listeners,
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.quorum.voters": ",".join(voters),
            "log.dirs": f"{data},{more}",
            "metadata.log.dir": str(data),
            "group.initial.rebalance.delay.ms": "0",
            **self._settings,
        }
        self._file(node_id).write_text("".join(f"{k}={v}\n" for k, v in settings.items()))
