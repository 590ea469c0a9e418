"""The settings of a cluster on one machine: controllers, listeners and ports."""

import base64
import fcntl
import os
import random
import socket
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import cycle, islice

# Below the ports that a system gives to outgoing connections, so that a node that was down finds
# its own free when it comes back.
_PORTS = range(15_000, 32_000)
_SHARES = 16

REPLICATION_FACTOR = 3
"""The replication factor of topics in local clusters; less if there are fewer brokers."""


COORDINATOR_SEGMENT_BYTES = 4 << 20
"""Of the internal topics: a new coordinator reads its partition before it serves, and what is in
a full segment is compacted. With Kafka's 100 MB an hour of orders takes seconds to read."""


def replication_settings(broker_count: int) -> dict[str, str]:
    """Return settings for this number of replicas, with a fast failover after a lost broker."""
    factor = min(REPLICATION_FACTOR, broker_count)
    min_isr = max(1, factor - 1)
    return {
        "default.replication.factor": str(factor),
        "min.insync.replicas": str(min_isr),
        "offsets.topic.replication.factor": str(factor),
        "offsets.topic.segment.bytes": str(COORDINATOR_SEGMENT_BYTES),
        "transaction.state.log.replication.factor": str(factor),
        "transaction.state.log.min.isr": str(min_isr),
        "transaction.state.log.segment.bytes": str(COORDINATOR_SEGMENT_BYTES),
        "share.coordinator.state.topic.replication.factor": str(factor),
        "share.coordinator.state.topic.min.isr": str(min_isr),
        "share.coordinator.state.topic.segment.bytes": str(COORDINATOR_SEGMENT_BYTES),
    }


def node_settings(
    node_id: int,
    *,
    client_port: int | None,
    controller_port: int | None,
    controllers: Mapping[int, int],
) -> dict[str, str]:
    """Return the settings of one node; without a port it does not have the role of that port.

    `controllers` has the ports by which all nodes reach the controllers, by their ids.
    """
    roles, listeners = [], []
    if client_port is not None:
        roles.append("broker")
        listeners.append(f"PLAINTEXT://127.0.0.1:{client_port}")
    if controller_port is not None:
        roles.append("controller")
        listeners.append(f"CONTROLLER://127.0.0.1:{controller_port}")
    return {
        "node.id": str(node_id),
        "process.roles": ",".join(roles),
        "listeners": ",".join(listeners),
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": ",".join(
            f"127.0.0.1:{port}" for port in controllers.values()
        ),
    }


def initial_controllers(controllers: Mapping[int, int]) -> str:
    """Return the first voters of a new cluster, each with the id of a new directory.

    All nodes are formatted with this text: it is the value of the environment variable
    `INITIAL_CONTROLLERS`, and of `storage format --initial-controllers`.
    """
    return ",".join(
        f"{node_id}@127.0.0.1:{port}:{random_cluster_id()}" for node_id, port in controllers.items()
    )


def random_cluster_id() -> str:
    """Return the id of a new cluster; as in Kafka, it never begins with a dash."""
    return base64.urlsafe_b64encode(b"\0" + uuid.uuid4().bytes[1:]).rstrip(b"=").decode()


def free_ports() -> Iterator[int]:
    """Yield ports that are not in use.

    A port is repeated only after all others, because its user may not listen on it yet.
    """
    for port in islice(_own_ports(), len(_PORTS) // _SHARES):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        yield port


@cache
def _own_ports() -> Iterator[int]:
    """Yield the ports of this process's share in a random order, again and again."""
    ports = _PORTS[_own_share() :: _SHARES]
    return cycle(random.Random().sample(ports, len(ports)))


def _own_share() -> int:
    """Reserve a share of the ports for this process until it ends.

    A node that is starting, or restarting after a kill, does not hold its port. During that time no
    other process that runs clusters on this machine may get the port.
    """
    for share in range(_SHARES):
        path = os.path.join(tempfile.gettempdir(), f"millstream-ports-{share}.lock")
        try:
            claim = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError:
            continue  # The file belongs to another user.
        try:
            # The lock is held until the process ends, because nothing closes the file before.
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(claim)
            continue
        return share
    return os.getpid() % _SHARES
