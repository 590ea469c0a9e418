"""Clusters of three nodes, ours and Apache Kafka's, with the same operations.

Each node is broker and controller, at default settings but for the replication of topics. The nodes
connect to each other without links of ours.
"""

import os
import signal
import subprocess
import tempfile
from abc import abstractmethod
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Protocol, Self

import confluent_kafka
import confluent_kafka.admin
from confluent_kafka.admin import PartitionMetadata

from bench.lib.servers import CLOCK_TICKS, PAGE_BYTES, ROOT
from millstream.processes.cluster_layout import free_ports, initial_controllers, node_settings
from millstream.testing import LocalCluster
from tests.lib.waiting import until

NODE_IDS = (1, 2, 3)
SYSTEMS = ["millstream", "kafka"]
CREATE_SECONDS = 60
KAFKA_CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
READY_SECONDS = 120.0


def admin_client(addresses: str) -> confluent_kafka.admin.AdminClient:
    """Return a stock client that does not log lost connections."""
    return confluent_kafka.admin.AdminClient({"bootstrap.servers": addresses, "log_level": 0})


def settings_for(replication_factor: int) -> dict[str, Any]:
    """Return the settings of a cluster for a replication factor of its topics."""
    return {
        "offsets.topic.replication.factor": str(replication_factor),
        "transaction.state.log.replication.factor": str(replication_factor),
        "transaction.state.log.min.isr": str(min(replication_factor, 2)),
        "min.insync.replicas": str(min(replication_factor, 2)),
    }


class NodeCluster(Protocol):
    """Three nodes in their own folder."""

    name: str
    addresses: list[str]

    @abstractmethod
    def __enter__(self) -> Self:
        """Start the nodes, and wait until all of them serve."""

    @abstractmethod
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the nodes."""

    @abstractmethod
    def pid(self, node_id: int) -> int:
        """Return the process id of a running node."""

    @abstractmethod
    def start(self, node_id: int) -> None:
        """Start a stopped node; it may return before the node serves."""

    @abstractmethod
    def wait_until_down(self, node_id: int) -> None:
        """Wait for the end of a node that got a signal."""

    @property
    def bootstrap(self) -> str:
        """The bootstrap servers."""
        return ",".join(self.addresses)

    def signal(self, node_id: int, which: signal.Signals) -> None:
        """Send a signal to a node, without a wait for its effect."""
        os.kill(self.pid(node_id), which)

    def cpu_seconds(self) -> float:
        """Return the CPU time of all nodes, user and system."""
        return sum(_cpu_seconds(self.pid(node_id)) for node_id in NODE_IDS)

    def resident_bytes(self) -> int:
        """Return the resident memory of its nodes."""
        return sum(_resident_bytes(self.pid(node_id)) for node_id in NODE_IDS)

    def create_topic(self, topic: str, partitions: int, replication_factor: int) -> None:
        """Create a topic, and wait until all its replicas are in the ISR."""
        wanted = confluent_kafka.admin.NewTopic(topic, partitions, replication_factor)
        admin = admin_client(self.bootstrap)
        admin.create_topics([wanted])[topic].result(CREATE_SECONDS)
        self.wait_until_whole(topic)

    def wait_until_whole(self, topic: str) -> None:
        """Wait until every partition has a leader and all its replicas in the ISR."""
        until(lambda: all(is_whole(one) for one in self.partitions(topic)), READY_SECONDS)

    def partitions(self, topic: str) -> list[PartitionMetadata]:
        """Return a topic's partitions; without an answer one that is not whole."""
        try:
            found = admin_client(self.bootstrap).list_topics(topic, timeout=5).topics[topic]
        except confluent_kafka.KafkaException:
            return [PartitionMetadata()]
        return list(found.partitions.values()) or [PartitionMetadata()]


def is_whole(partition: PartitionMetadata) -> bool:
    """Return True if a partition has a leader and all its replicas in the ISR."""
    return partition.leader > 0 and len(partition.isrs) == len(partition.replicas)


class MillstreamCluster(NodeCluster):
    """Our nodes."""

    name = "millstream"

    def __init__(self, replication_factor: int) -> None:
        settings = settings_for(replication_factor)
        self._cluster = LocalCluster(
            brokers=len(NODE_IDS), has_links=False, is_testing=False, **settings
        )

    def __enter__(self) -> Self:
        self._cluster.__enter__()
        self.addresses = [self._cluster.address(node_id) for node_id in NODE_IDS]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._cluster.close()

    def pid(self, node_id: int) -> int:
        """Return the process id of a running node."""
        return self._cluster.node(node_id).pid

    def start(self, node_id: int) -> None:
        """Start a stopped node."""
        self._cluster.start(node_id)

    def wait_until_down(self, node_id: int) -> None:
        """Wait for the end of a node that got a signal."""
        until(lambda: not self._cluster.node(node_id).is_running)


class KafkaCluster(NodeCluster):
    """Apache Kafka's nodes, from its jars."""

    name = "kafka"

    def __init__(self, libraries: Path, replication_factor: int = 1, heap: str = "512m") -> None:
        self._java = ["java", f"-Xms{heap}", f"-Xmx{heap}", "-cp", f"{libraries}/*"]
        self._settings = settings_for(replication_factor)
        self._stack = ExitStack()
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._files: dict[int, Path] = {}
        self._logs: dict[int, IO[bytes]] = {}

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            (ROOT / "build").mkdir(exist_ok=True)
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=ROOT / "build")))
            stack.callback(self._end)
            self._prepare(folder, stack)
            for node_id in NODE_IDS:
                self.start(node_id)
            until(self._is_complete, READY_SECONDS)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def pid(self, node_id: int) -> int:
        """Return the process id of a running node."""
        return self._processes[node_id].pid

    def start(self, node_id: int) -> None:
        """Start a stopped node, and do not wait until it serves."""
        self._processes[node_id] = subprocess.Popen(
            [*self._java, "kafka.Kafka", str(self._files[node_id])],
            stdout=self._logs[node_id],
            stderr=self._logs[node_id],
        )

    def wait_until_down(self, node_id: int) -> None:
        """Wait for the end of a node that got a signal."""
        self._processes[node_id].wait(READY_SECONDS)

    def _prepare(self, folder: Path, stack: ExitStack) -> None:
        """Write every node's configuration, and format its folder."""
        ports = free_ports()
        clients = {node_id: next(ports) for node_id in NODE_IDS}
        controllers = {node_id: next(ports) for node_id in NODE_IDS}
        first = initial_controllers(controllers)
        self.addresses = [f"127.0.0.1:{port}" for port in clients.values()]
        for node_id in NODE_IDS:
            settings = {
                **node_settings(
                    node_id,
                    client_port=clients[node_id],
                    controller_port=controllers[node_id],
                    controllers=controllers,
                ),
                **self._settings,
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
                "log.dirs": str(folder / f"data-{node_id}"),
            }
            file = self._files[node_id] = folder / f"{node_id}.properties"
            file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
            tool = ["kafka.tools.StorageTool", "format", "-t", KAFKA_CLUSTER_ID, "-c", str(file)]
            voters = ["--initial-controllers", first]
            subprocess.run([*self._java, *tool, *voters], check=True, capture_output=True)
            log = (folder / f"{node_id}.log").open("wb")
            self._logs[node_id] = stack.enter_context(log)

    def _is_complete(self) -> bool:
        for node_id, process in self._processes.items():
            assert process.poll() is None, Path(self._logs[node_id].name).read_text()[-2000:]
        try:
            found = admin_client(self.bootstrap).list_topics(timeout=5)
        except confluent_kafka.KafkaException:
            return False
        return len(found.brokers) == len(NODE_IDS)

    def _end(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()


def makers(
    libraries: Path | None, replication_factor: int, systems: Iterable[str]
) -> list[Callable[[], NodeCluster]]:
    """Return the constructors of the clusters to measure, without those not installed."""
    found: list[Callable[[], NodeCluster]] = []
    if "millstream" in systems:
        found.append(lambda: MillstreamCluster(replication_factor))
    if "kafka" in systems and libraries is not None:
        kafka = libraries
        found.append(lambda: KafkaCluster(kafka, replication_factor))
    elif "kafka" in systems:
        print("Apache Kafka is not measured: there is no Java here, or no Maven for its jars.")
    return found


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS


def _resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES
