"""The demo's own cluster of three nodes, each broker and controller; and the mirror's single node.

Their ports are chosen before the first node starts: the nodes must know each other's ports, and a
restarted node must have the same port.
"""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from demo.pipeline.security import DemoSecurity
from millstream.processes.child_processes import Children
from millstream.processes.cluster_layout import (
    initial_controllers,
    node_settings,
    random_cluster_id,
    replication_settings,
)

NODE_IDS = (1, 2, 3)
STANDBY = "standby"
SETTINGS = {
    # Kafka waits three seconds for more members of a new group; the demo's groups have one.
    "group.initial.rebalance.delay.ms": "0",
    **replication_settings(len(NODE_IDS)),
}
# The data is deleted with the demo's folder, so a node need not hand over its partitions.
_STOP_SECONDS = 0.5


async def start_brokers(
    children: Children,
    data_folder: Path,
    client_ports: Sequence[int],
    controller_ports: Sequence[int],
    http_ports: Sequence[int],
    security: DemoSecurity | None = None,
) -> str:
    """Start the nodes at the same time; return the bootstrap servers."""
    file = None if security is None else security.broker_file()
    clients = dict(zip(NODE_IDS, client_ports, strict=True))
    controllers = dict(zip(NODE_IDS, controller_ports, strict=True))
    pages = dict(zip(NODE_IDS, http_ports, strict=True))
    environment = _new_cluster(controllers)
    async with asyncio.TaskGroup() as group:
        for node_id in NODE_IDS:
            settings = {
                **node_settings(
                    node_id,
                    client_port=clients[node_id],
                    controller_port=controllers[node_id],
                    controllers=controllers,
                ),
                "http.listener": f"127.0.0.1:{pages[node_id]}",
                **SETTINGS,
            }
            if file is not None:
                settings["listeners"] = settings["listeners"].replace("PLAINTEXT", "SASL_SSL")
            name = f"broker-{node_id}"
            settings["log.dirs"] = str(data_folder / name)
            group.create_task(_start_node(children, name, environment, settings, file))
    return ",".join(f"127.0.0.1:{port}" for port in clients.values())


async def start_standby(
    children: Children, data_folder: Path, client_port: int, controller_port: int, http_port: int
) -> str:
    """Start a second cluster with one node; return its bootstrap server."""
    node_id = NODE_IDS[-1] + 1
    controllers = {node_id: controller_port}
    settings = {
        **node_settings(
            node_id,
            client_port=client_port,
            controller_port=controller_port,
            controllers=controllers,
        ),
        "http.listener": f"127.0.0.1:{http_port}",
        **SETTINGS,
        **replication_settings(1),
    }
    settings["log.dirs"] = str(data_folder / STANDBY)
    await _start_node(children, STANDBY, _new_cluster(controllers), settings)
    return f"127.0.0.1:{client_port}"


def _new_cluster(controllers: Mapping[int, int]) -> dict[str, str]:
    return {
        "CLUSTER_ID": random_cluster_id(),
        "INITIAL_CONTROLLERS": initial_controllers(controllers),
    }


async def _start_node(
    children: Children,
    name: str,
    environment: Mapping[str, str],
    settings: Mapping[str, str],
    file: Path | None = None,
) -> None:
    """Start a node; `file` has its secret settings, which must not be on a command line."""
    overrides = (f"{key}={value}" for key, value in settings.items())
    await children.start(
        name,
        "broker",
        "start",
        *([] if file is None else [str(file)]),
        *(part for override in overrides for part in ("--override", override)),
        environment=environment,
        stop_seconds=_STOP_SECONDS,
        # Its log and the other voters still exist, so the node continues from there.
        is_revived=True,
    )
