"""Nodes of a quorum whose voters change, each a process on a folder of its own."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Self

from broker.log.checkpoints import read_properties
from broker.log.storage import RealStorage
from millstream.processes.cluster_layout import free_ports
from millstream.processes.settings_files import properties_text

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
HOST = "127.0.0.1"
SETTINGS = """controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
offsets.topic.num.partitions=2
transaction.state.log.num.partitions=2
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""


class DynamicQuorum:
    """The nodes by id, with their ports; leaving the block ends all that run."""

    def __init__(self, folder: Path, node_ids: Iterable[int], *settings: str) -> None:
        self.folder = folder
        self._settings = settings
        self.client_properties: dict[str, str] = {}
        """The security settings of clients and tools."""
        ids = list(node_ids)
        ports = list(islice(free_ports(), 2 * len(ids)))
        self.ports = dict(zip(ids, ports, strict=False))
        self.controller_ports = dict(zip(ids, ports[len(ids) :], strict=True))
        self.running: dict[int, subprocess.Popen[str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in self.running.values():
            process.kill()
            process.communicate()

    @property
    def bootstrap_controllers(self) -> str:
        return ",".join(f"{HOST}:{port}" for port in self.controller_ports.values())

    def bootstrap_server(self, node_id: int) -> str:
        return f"{HOST}:{self.ports[node_id]}"

    def home(self, node_id: int) -> Path:
        return self.folder / f"node-{node_id}"

    def data(self, node_id: int) -> Path:
        return self.home(node_id) / "data"

    def directory_id(self, node_id: int) -> str:
        found = read_properties(RealStorage(), f"{self.data(node_id)}/meta.properties")
        return found["directory.id"]

    def configure(self, node_id: int, roles: str = "controller", *settings: str) -> Path:
        """Write the file of a node."""
        listeners = []
        if "broker" in roles:
            listeners.append(f"PLAINTEXT://{HOST}:{self.ports[node_id]}")
        if "controller" in roles:
            listeners.append(f"CONTROLLER://{HOST}:{self.controller_ports[node_id]}")
        lines = [
            f"process.roles={roles}",
            f"node.id={node_id}",
            f"listeners={','.join(listeners)}",
            f"log.dirs={self.data(node_id)}",
            f"controller.quorum.bootstrap.servers={self.bootstrap_controllers}",
            *self._settings,
            *settings,
        ]
        self.home(node_id).mkdir(parents=True, exist_ok=True)
        properties = self.home(node_id) / "server.properties"
        properties.write_text(SETTINGS + "\n".join(lines) + "\n")
        return properties

    def format(self, node_id: int, *flags: str) -> None:
        """Format a configured node with our tool."""
        properties = self.home(node_id) / "server.properties"
        self.run("storage", "format", "-t", CLUSTER_ID, "-c", str(properties), *flags)

    def run(self, *arguments: str) -> str:
        """Run one of our tools; give its output."""
        command = [sys.executable, "-m", "broker", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done.stdout

    def start_together(self, node_ids: Iterable[int], **variables: str) -> None:
        """Start nodes that need each other to be ready."""
        with ThreadPoolExecutor() as threads:
            starts = [threads.submit(self.start, node_id, **variables) for node_id in node_ids]
        for start in starts:
            start.result()

    def start(self, node_id: int, **variables: str) -> None:
        """Start a node, with these variables in its environment; it is ready when this returns."""
        command = [sys.executable, "-m", "broker", "start"]
        with (self.home(node_id) / "ours.log").open("ab") as errors:
            node = subprocess.Popen(
                [*command, str(self.home(node_id) / "server.properties")],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=os.environ | variables,
            )
        self.running[node_id] = node
        assert node.stdout is not None
        assert " ready on " in node.stdout.readline(), self.log(node_id)

    def log(self, node_id: int) -> str:
        return (self.home(node_id) / "ours.log").read_text()

    def stop(self, node_id: int) -> None:
        """Stop a node cleanly."""
        node = self.running.pop(node_id)
        node.send_signal(signal.SIGTERM)
        node.communicate(timeout=60)
        assert node.returncode == 0, self.log(node_id)

    def kill(self, node_id: int) -> None:
        """End a node as a crash does."""
        node = self.running.pop(node_id)
        node.kill()
        node.communicate(timeout=60)

    def delete(self, node_id: int) -> None:
        """Delete all that a node has on its disk."""
        shutil.rmtree(self.data(node_id))

    def voters(self, bootstrap_server: str) -> list[int]:
        """Give the ids of the voters, as our tool describes them."""
        told = self.run(*self._quorum(bootstrap_server), "describe", "--replication")
        rows = [line.split() for line in told.splitlines()[1:]]
        return sorted(int(row[0]) for row in rows if row[-1] in ("Leader", "Follower"))

    def add(self, bootstrap_server: str, node_id: int) -> str:
        """Make a node a voter with our tool."""
        return self.run(*self.addition(bootstrap_server, node_id))

    def addition(self, bootstrap_server: str, node_id: int) -> list[str]:
        """Give the command of our tool that makes a node a voter."""
        tool = ["metadata-quorum", "--bootstrap-server", bootstrap_server]
        return [*tool, "--command-config", str(self.controller_file(node_id)), "add-controller"]

    def removal(self, bootstrap_server: str, node_id: int) -> list[str]:
        """Give the command of our tool that takes a node out of the voters."""
        tool = [*self._quorum(bootstrap_server), "remove-controller"]
        return [*tool, "-i", str(node_id), "-d", self.directory_id(node_id)]

    def controller_file(self, node_id: int) -> Path:
        """Write what describes a controller to `add-controller`, with the client's settings."""
        text = (self.home(node_id) / "server.properties").read_text()
        file = self.home(node_id) / "added.properties"
        file.write_text(text + properties_text(self.client_properties))
        return file

    def client_file(self) -> Path:
        """Write the settings of clients, and return the file."""
        file = self.folder / "client.properties"
        file.write_text(properties_text(self.client_properties))
        return file

    def _quorum(self, bootstrap_server: str) -> list[str]:
        file = str(self.client_file())
        return ["metadata-quorum", "--bootstrap-server", bootstrap_server, "--command-config", file]

    def remove(self, bootstrap_server: str, node_id: int) -> str:
        """Take a node out of the voters with our tool."""
        return self.run(*self.removal(bootstrap_server, node_id))
