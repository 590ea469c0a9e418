"""The settings of the brokers of one machine, computed from one file of settings.

The n-th broker has the next id, the next port of each listener, and its own folder. Only the first
may be a controller: for a quorum of three, three machines are enough.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Final

from broker.config.broker_config import BrokerConfig
from broker.config.listeners import NON_ROUTABLE, Endpoint
from broker.config.sources import invalid
from broker.config.values import Values
from millstream.processes.cluster_layout import replication_settings

QUORUM: Final = "controller.quorum.bootstrap.servers"
_FOLDERS: Final = ("log.dir", "log.dirs", "metadata.log.dir")


def whole_cluster(broker_count: int) -> dict[str, str]:
    """Return settings of a cluster on this machine, for a start without a file."""
    return {
        "node.id": "1",
        "process.roles": "broker,controller",
        "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9393",
        "http.listener": "127.0.0.1:9644",
        **replication_settings(broker_count),
    }


def controller_address(config: BrokerConfig) -> str | None:
    """Return where brokers ask this broker if it is the only controller; None if others are named.

    Raise KafkaError(INVALID_CONFIG) if it has no listener for that.
    """
    if not config.is_controller or config.voters or config.bootstrap_servers:
        return None
    if not config.controller_listeners or not config.controller_listeners[0].port:
        raise invalid("listeners: add CONTROLLER://host:port, where brokers ask the controller")
    _, host, port = config.controller_listeners[0]
    return f"{'127.0.0.1' if host in NON_ROUTABLE else host}:{port}"


def configs_of_brokers(
    given: Mapping[str, str], count: int, folder: Path, host_name: str
) -> list[BrokerConfig]:
    """Return the settings of each broker; raise KafkaError(INVALID_CONFIG).

    Where nothing else is said the rack is the machine, so replicas are on different machines.
    """
    if named := [name for name in _FOLDERS if given.get(name)]:
        raise invalid(f"{named[0]}: leave it out, the folder of each broker is below --dir")
    settings = {"broker.rack": host_name, **given}
    first = BrokerConfig.from_settings(settings)
    if not first.listeners:
        raise invalid("process.roles: the first broker may be a controller too, not only that")
    if address := controller_address(first):
        settings[QUORUM] = address
    found = [
        BrokerConfig.from_settings(_own_settings(settings, first, number, folder))
        for number in range(count)
    ]
    _refuse_overlap([(each.node_id, at) for each in found for at in bound_endpoints(each)])
    _refuse_overlap([(each.node_id, at) for each in found for at in each.advertised_listeners])
    return found


def bound_endpoints(config: BrokerConfig) -> list[Endpoint]:
    """Return every address at which a broker listens."""
    http = [] if config.http_listener is None else [config.http_listener]
    return [*config.listeners, *config.controller_listeners, *http]


def _own_settings(
    settings: Mapping[str, str], first: BrokerConfig, number: int, folder: Path
) -> dict[str, str]:
    node_id, values = first.node_id + number, Values(settings)
    own = {"node.id": str(node_id), "log.dirs": str(folder / f"broker-{node_id}")}
    if number:
        own["process.roles"] = "broker"
    left_out = {each.name for each in first.controller_listeners if number}
    for name in ("listeners", "advertised.listeners"):
        if items := values.items(name):
            kept = [each for each in items if each.partition("://")[0].upper() not in left_out]
            own[name] = ",".join(_higher(each, number) for each in kept)
    if address := values.text("http.listener"):
        own["http.listener"] = _higher(address, number)
    return {**settings, **own}


def _higher(address: str, number: int) -> str:
    """Return an address with a port so many higher; port 0 stays, it is any free one."""
    host, _, port = address.rpartition(":")
    return f"{host}:{int(port) + number if int(port) else 0}"


def _refuse_overlap(places: Sequence[tuple[int, Endpoint]]) -> None:
    """Raise KafkaError(INVALID_CONFIG) if two listeners would have the same address."""
    for (first_id, first), (second_id, second) in combinations(places, 2):
        shares_host = first.host == second.host or NON_ROUTABLE & {first.host, second.host}
        if first.port and first.port == second.port and shares_host:
            raise invalid(
                f"{first.name} of broker {first_id} and {second.name} of broker {second_id} would "
                f"both have port {first.port}: each broker takes the next port of every listener, "
                "so leave room between them"
            )
