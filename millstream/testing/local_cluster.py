"""A real cluster for tests: several nodes as child processes, and the network between them.

Nodes dial each other through links (`links.py`), so a test can partition any two of them, in one
direction or both. The links lead to the controller listeners and to a listener for brokers only
(REPLICATION). Clients, and controllers that check whether a broker is alive, connect directly.
"""

import re
import shutil
import tempfile
import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from millstream.processes.cluster_layout import (
    REPLICATION_FACTOR,
    free_ports,
    initial_controllers,
    node_settings,
    random_cluster_id,
    replication_settings,
)
from millstream.testing.block import Block
from millstream.testing.broker_clock import BrokerClock
from millstream.testing.broker_control import BrokerControl
from millstream.testing.faults import Faults
from millstream.testing.links import Links
from millstream.testing.local_broker import TEST_SETTINGS
from millstream.testing.looking import Looks
from millstream.testing.node_process import BrokerFailedError, NodeProcess, settings_text
from millstream.testing.requests import Requests
from millstream.testing.security import NOBODY, USER, Client, LocalSecurity, Security
from millstream.testing.situations import Situations
from millstream.testing.topics import create_topic

REPLICATION_LISTENER = "REPLICATION"
FIRST_CONTROLLER_ID = 3001
LEADER_TIMEOUT_SECONDS = 60.0
POLL_SECONDS = 0.01
_LEADER = re.compile(r" leader leader_id=(?P<leader_id>\d+) leader_epoch=(?P<epoch>\d+)")


class LocalCluster(Looks, Block):
    """A cluster for tests; settings have Kafka's names, as with `LocalBroker`.

    With `controllers=None` every node is broker and controller, with ids from 1. Otherwise
    `controllers` nodes are only controllers, with ids from 3001. `with` or `start()` starts the
    cluster; its folder is removed at the end. With `has_links=False` the nodes connect directly,
    and `partition` cannot be used. `environment` has additional environment variables of the
    nodes. `security` is for the listeners of clients. The folder is also removed if this process
    is killed, but only on Linux and without `environment`. `faults` arms at every broker that runs,
    and each counts alone; `node(1).faults` arms at one. With `is_testing=False` there are none.
    """

    def __init__(
        self,
        brokers: int = 3,
        controllers: int | None = None,
        *,
        has_links: bool = True,
        environment: Mapping[str, str] | None = None,
        security: Security | None = None,
        users: Mapping[str, str] = NOBODY,
        is_testing: bool = True,
        **settings: object,
    ) -> None:
        self._is_testing = is_testing
        self.broker_ids = list(range(1, brokers + 1))
        self.controller_ids = (
            list(self.broker_ids)
            if controllers is None
            else list(range(FIRST_CONTROLLER_ID, FIRST_CONTROLLER_ID + controllers))
        )
        self.cluster_id = random_cluster_id()
        self._settings = {
            **TEST_SETTINGS,
            **replication_settings(brokers),
            **settings_text(settings),
        }
        self.has_links = has_links
        self._environment = dict(environment or {})
        self._kind, self._users = security, users
        self._security: LocalSecurity | None = None
        self._folder: Path | None = None
        self._links: Links | None = None
        self._ports: dict[int, int] = {}
        self._replication_ports: dict[int, int] = {}
        self._controller_ports: dict[int, int] = {}
        self._dialled_ports: dict[int, int] = {}
        self._initial_controllers = ""
        self._nodes: dict[int, NodeProcess] = {}
        self._leaders: dict[int, _LeaderLog] = {}
        self.faults = Faults(self._controls)
        """What every running broker does to the calls of its clients."""
        self.clock = BrokerClock(self._node_controls)
        """The time of clients, at all nodes that run."""
        self.requests = Requests(self._controls)
        """The calls that clients have made, at all running brokers."""
        self.situations = Situations(self.faults, self.clock, self.client_settings)
        """A coordinator that moves, a fenced producer, ...: each in one line."""

    def _controls(self) -> list[BrokerControl]:
        assert self._is_testing, "the cluster was made with is_testing=False"
        return [self._nodes[each].control for each in self.broker_ids if self._runs(each)]

    def _node_controls(self) -> list[BrokerControl]:
        assert self._is_testing, "the cluster was made with is_testing=False"
        return [self._nodes[each].control for each in self.node_ids if self._runs(each)]

    def check(self, *, allow_unused: bool = False) -> None:
        """End all faults; raise UnusedFaultError if one has hit nothing."""
        if self._is_testing:
            self.faults.clear(allow_unused=allow_unused)
            for node in self._nodes.values():
                node.faults.clear(allow_unused=allow_unused)

    def __repr__(self) -> str:
        running = [self.address(each) for each in self.broker_ids if self._runs(each)]
        return f"<LocalCluster{' ' + ','.join(running) if running else ', not running'}>"

    def _runs(self, node_id: int) -> bool:
        return node_id in self._nodes and self._nodes[node_id].is_running

    # --- addresses and files ---

    @property
    def node_ids(self) -> list[int]:
        """The ids of all nodes."""
        return sorted({*self.broker_ids, *self.controller_ids})

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all brokers, for clients."""
        return ",".join(self.address(broker_id) for broker_id in self.broker_ids)

    def client_settings(
        self, client: Client = "confluent-kafka", user: str = USER
    ) -> dict[str, Any]:
        """Return the settings of a client: the addresses, and what `security` needs for a user."""
        if self._security is not None:
            return self._security.client_settings(self.bootstrap_servers, client, user)
        has_dots = client in ("confluent-kafka", "java")
        return {"bootstrap.servers" if has_dots else "bootstrap_servers": self.bootstrap_servers}

    def client_file(self, user: str = USER) -> str:
        """Return a file of client settings for `--command-config` of programs and tools.

        Without `security` this is "".
        """
        return "" if self._security is None else str(self._security.client_file(user))

    def address(self, broker_id: int) -> str:
        """Return the address of one broker, as `host:port`."""
        assert self._ports, "the cluster is not started"
        return f"127.0.0.1:{self._ports[broker_id]}"

    def node(self, node_id: int) -> NodeProcess:
        """Return one node's process, which has its folder, its process id and its pages."""
        assert self._nodes, "the cluster is not started"
        return self._nodes[node_id]

    def log(self, node_id: int) -> str:
        """Return a node's log messages so far."""
        return self.node(node_id).log()

    def logs(self) -> dict[int, str]:
        """Return the last log messages of every node, for reports."""
        return {
            node_id: node.log_tail()
            for node_id, node in self._nodes.items()
            if node.log_file.exists()
        }

    def active_controller(self) -> int:
        """Wait until a running node leads the metadata quorum, and return its id."""
        deadline = time.monotonic() + LEADER_TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            _, leader_id = max(log.latest() for log in self._leaders.values())
            leader = self._nodes.get(leader_id)
            if leader is not None and leader.is_running and not leader.is_paused:
                return leader_id
            time.sleep(POLL_SECONDS)
        raise BrokerFailedError(f"no node leads the quorum\n{self._report()}")

    # --- actions ---

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        replication_factor: int | None = None,
        settings: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Create a topic; return when every running broker knows a leader of each partition.

        It has three replicas, or fewer if there are fewer brokers, unless `replication_factor` is
        given. Raise confluent_kafka.KafkaException if the brokers refuse the topic.
        """
        factor = replication_factor or min(REPLICATION_FACTOR, len(self.broker_ids))
        running = [broker for broker in self.broker_ids if self.node(broker).is_running]
        servers = ",".join(map(self.address, running))
        create_topic(
            {**self.client_settings(), "bootstrap.servers": servers},
            name,
            partitions,
            factor,
            settings,
        )

    def start(self, *node_ids: int) -> Self:
        """Start nodes, by default all that do not run; return when they are ready.

        Nodes that need each other for a majority must be started in one call.
        """
        if self._folder is None:
            self._make()
        named = [self._nodes[node_id] for node_id in node_ids]
        nodes = named or [node for node in self._nodes.values() if not node.is_running]
        for node in nodes:
            if not node.is_running:
                node.kill()  # The process may have died by itself: release what is left of it.
            node.launch()
        try:
            for node in nodes:
                node.wait_until_ready()
        except BrokerFailedError as error:
            raise BrokerFailedError(f"{error}\n{self._report()}") from None
        return self

    def add_broker(self) -> int:
        """Add a node that is only a broker, and return its id when it is ready."""
        assert self._folder is not None, "the cluster is not started"
        broker_id = max(self.broker_ids) + 1
        ports = free_ports()
        self._ports[broker_id] = next(ports)
        self._replication_ports[broker_id] = next(ports)
        self._make_node(self._folder, broker_id)
        self.broker_ids.append(broker_id)
        self.start(broker_id)
        return broker_id

    def stop(self, *node_ids: int) -> None:
        """Stop nodes cleanly (SIGTERM), by default all.

        The last nodes of a cluster take a while, because no other node can take their partitions.
        """
        nodes = [self._nodes[node_id] for node_id in node_ids or self._nodes]
        for node in nodes:
            node.send_stop()
        for node in nodes:
            node.stop()

    def kill(self, *node_ids: int) -> None:
        """Kill nodes (SIGKILL) like a crash, by default all."""
        nodes = [self._nodes[node_id] for node_id in node_ids or self._nodes]
        for node in nodes:
            node.send_kill()
        for node in nodes:
            node.kill()

    def pause(self, node_id: int) -> None:
        """Freeze a node (SIGSTOP)."""
        self.node(node_id).pause()

    def resume(self, node_id: int) -> None:
        """Continue a frozen node (SIGCONT)."""
        self.node(node_id).resume()

    def wipe(self, node_id: int) -> None:
        """Remove the partitions of a stopped node from its disk.

        The metadata log stays: a quorum cannot tolerate a voter that loses its log.
        """
        node = self.node(node_id)
        assert not node.is_running, "the node is running"
        for entry in node.data_folder.iterdir():
            if entry.is_dir() and not entry.name.startswith("__cluster_metadata"):
                shutil.rmtree(entry)
            elif entry.name not in {"meta.properties", "bootstrap.checkpoint"} and entry.is_file():
                entry.unlink()

    def partition(self, a: int, b: int) -> None:
        """Partition two nodes: all packets between them are lost, without an error."""
        assert self._links is not None, "the cluster has no links"
        self._links.cut(a, b)

    def partition_one_way(self, source: int, target: int) -> None:
        """Lose all packets from `source` to `target`; the other direction still works."""
        assert self._links is not None, "the cluster has no links"
        self._links.cut_one_way(source, target)

    def partition_ring(self) -> None:
        """Lose all packets from each node to the next one in a ring."""
        for source, target in pairwise([*self.node_ids, self.node_ids[0]]):
            self.partition_one_way(source, target)

    def isolate(self, node_id: int) -> None:
        """Partition a node from all others."""
        for other in self.peers(node_id):
            self.partition(node_id, other)

    def peers(self, node_id: int) -> list[int]:
        """Return the ids of all other nodes."""
        return [other for other in self.node_ids if other != node_id]

    def heal(self) -> None:
        """End all partitions."""
        assert self._links is not None, "the cluster has no links"
        self._links.heal()

    def close(self) -> None:
        """Kill all running nodes, and remove the folder; a clean stop is not needed."""
        self._close_view()
        self.kill()
        if self._links is not None:
            self._links.close()
            self._links = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
            self._nodes = {}
            self._leaders = {}

    # --- internal ---

    def _make(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="millstream-cluster-"))
        if self._kind is not None:
            self._security = LocalSecurity(self._kind, self._folder, self._users)
        ports = free_ports()
        self._ports = {broker_id: next(ports) for broker_id in self.broker_ids}
        self._replication_ports = {broker_id: next(ports) for broker_id in self.broker_ids}
        self._controller_ports = {node_id: next(ports) for node_id in self.controller_ids}
        self._links = Links() if self.has_links else None
        self._dialled_ports = {
            node_id: self._linked(self._links, node_id, port)
            for node_id, port in self._controller_ports.items()
        }
        self._initial_controllers = initial_controllers(self._dialled_ports)
        for node_id in self.node_ids:
            self._make_node(self._folder, node_id)

    def _make_node(self, folder: Path, node_id: int) -> None:
        settings = node_settings(
            node_id,
            client_port=self._ports.get(node_id),
            controller_port=self._controller_ports.get(node_id),
            controllers=self._dialled_ports,
        )
        if self._links is not None:
            settings |= self._linked_listeners(self._links, node_id, settings["listeners"])
        if self._security is not None:
            settings = self._secured(self._security, settings)
        node = NodeProcess(
            folder / f"node-{node_id}",
            {**settings, **self._settings},
            self.cluster_id,
            self._environment,
            self._initial_controllers,
            temporary_folder=folder,
            is_testing=self._is_testing,
        )
        self._nodes[node_id] = node
        self._leaders[node_id] = _LeaderLog(node.log_file)

    def _secured(self, security: LocalSecurity, settings: dict[str, str]) -> dict[str, str]:
        """Set the protocol of the listener for clients, which is also its name."""
        protocol = security.protocol
        inner = [f"{name}:PLAINTEXT" for name in ("CONTROLLER", REPLICATION_LISTENER)]
        listeners = settings["listeners"].replace("PLAINTEXT://", f"{protocol}://")
        return {
            "inter.broker.listener.name": protocol,
            **settings,
            **security.broker_settings(),
            "listeners": listeners,
            "listener.security.protocol.map": ",".join([f"{protocol}:{protocol}", *inner]),
        }

    def _linked_listeners(self, links: Links, node_id: int, listeners: str) -> dict[str, str]:
        """Return the listeners for other nodes, which know only the addresses of their links."""
        names = ["PLAINTEXT", "CONTROLLER"]
        settings, advertised = {}, []
        if node_id in self._dialled_ports:
            advertised.append(f"CONTROLLER://127.0.0.1:{self._dialled_ports[node_id]}")
        if node_id in self._replication_ports:
            port = self._replication_ports[node_id]
            linked = self._linked(links, node_id, port)
            names.append(REPLICATION_LISTENER)
            advertised.append(f"{REPLICATION_LISTENER}://127.0.0.1:{linked}")
            listeners += f",{REPLICATION_LISTENER}://127.0.0.1:{port}"
            settings["inter.broker.listener.name"] = REPLICATION_LISTENER
        return settings | {
            "listeners": listeners,
            "advertised.listeners": ",".join(advertised),
            "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in names),
        }

    def _linked(self, links: Links | None, node_id: int, port: int) -> int:
        """Return the port by which all other nodes reach a port of this node."""
        if links is None:
            return port
        return links.add_shared(self.peers(node_id), node_id, ("127.0.0.1", port))

    def _report(self) -> str:
        return "\n".join(f"--- node {node_id}\n{tail}" for node_id, tail in self.logs().items())


class _LeaderLog:
    """Finds the current leader in a node's log; each search continues where the last ended."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._position = 0
        self._latest = (-1, -1)

    def latest(self) -> tuple[int, int]:
        """Return the highest epoch in the node's log, and its leader."""
        if self._file.exists():
            with self._file.open("rb") as log:
                log.seek(self._position)
                lines = log.read()
            complete = lines[: lines.rfind(b"\n") + 1]
            self._position += len(complete)
            for found in _LEADER.finditer(complete.decode(errors="replace")):
                self._latest = max(self._latest, (int(found["epoch"]), int(found["leader_id"])))
        return self._latest
