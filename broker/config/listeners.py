"""`listeners` and `advertised.listeners`: the listeners for clients and those for controllers.

A listener named in `controller.listener.names` belongs to the controller role; all others belong to
the broker role. The rules are Apache Kafka's (KafkaConfig.validateValues), with one exception: a
node that is a broker and the only controller needs no controller listener, because no other node
connects to it.
"""

from collections.abc import Collection
from typing import NamedTuple

from broker.config.sources import invalid
from broker.config.values import Values

MAX_PORT = 65_535
NON_ROUTABLE = frozenset({"", "0.0.0.0", "::"})


class Endpoint(NamedTuple):
    """One listener: its name, host ("" for all interfaces) and port (0 for a free one)."""

    name: str
    host: str
    port: int


class Listeners(NamedTuple):
    """The endpoints of both roles; they are empty for a role that the node does not have."""

    clients: tuple[Endpoint, ...]
    controllers: tuple[Endpoint, ...]


def parse_endpoint(setting: str, text: str) -> Endpoint:
    """Parse `NAME://host:port`; raise KafkaError(INVALID_CONFIG) with the setting's name."""
    name, separator, address = text.partition("://")
    if not separator or not name:
        raise invalid(f"{setting}={text}: expected NAME://host:port")
    host, port = parse_address(setting, text, address)
    return Endpoint(name.upper(), host, port)


def parse_address(setting: str, text: str, address: str) -> tuple[str, int]:
    """Parse `host:port`, a part of an item of a setting; raise KafkaError(INVALID_CONFIG)."""
    host, colon, port_text = address.rpartition(":")
    if not colon or not port_text.isdecimal():
        raise invalid(f"{setting}={text}: expected host:port")
    port = int(port_text)
    if port > MAX_PORT:
        raise invalid(f"{setting}={text}: port {port} is out of range")
    return host.strip("[]"), port


def read_listeners(values: Values, roles: Collection[str]) -> Listeners:
    """Read `listeners` for a node with these roles; raise KafkaError(INVALID_CONFIG)."""
    controller_names = {name.upper() for name in values.items("controller.listener.names")}
    endpoints = [parse_endpoint("listeners", text) for text in values.items("listeners")]
    if len({endpoint.name for endpoint in endpoints}) < len(endpoints):
        raise invalid("listeners: each listener must have a different name")
    clients = tuple(endpoint for endpoint in endpoints if endpoint.name not in controller_names)
    controllers = tuple(endpoint for endpoint in endpoints if endpoint.name in controller_names)
    _check_roles(roles, clients, controllers)
    return Listeners(clients, controllers)


def _check_roles(
    roles: Collection[str], clients: tuple[Endpoint, ...], controllers: tuple[Endpoint, ...]
) -> None:
    if "broker" not in roles:
        if clients or not controllers:
            raise invalid(
                "listeners must name only controller listeners (controller.listener.names), and "
                "at least one, when process.roles=controller"
            )
    elif not clients:
        raise invalid("listeners: there must be at least one listener for clients")
    if "controller" not in roles and controllers:
        raise invalid(
            "listeners must not name a controller listener (controller.listener.names) when "
            "process.roles=broker"
        )


def read_advertised(values: Values, listeners: tuple[Endpoint, ...]) -> tuple[Endpoint, ...]:
    """Read the advertised address of each listener; raise KafkaError(INVALID_CONFIG)."""
    given = {
        endpoint.name: endpoint
        for endpoint in (
            parse_endpoint("advertised.listeners", text)
            for text in values.items("advertised.listeners")
        )
    }
    for endpoint in given.values():
        if endpoint.host in NON_ROUTABLE:
            raise invalid("advertised.listeners: cannot advertise a non-routable address")
    return tuple(given.get(endpoint.name, endpoint) for endpoint in listeners)


def read_inter_broker_name(values: Values, listeners: tuple[Endpoint, ...]) -> str:
    """Return the name of the listener between brokers; raise KafkaError(INVALID_CONFIG).

    Kafka's default is the listener with the name of `security.inter.broker.protocol`, and Kafka
    does not start without one. Here the first listener is used then.
    """
    names = [endpoint.name for endpoint in listeners]
    given = values.text("inter.broker.listener.name").upper()
    if given and names and given not in names:
        raise invalid(f"inter.broker.listener.name={given}: must be one of listeners ({names})")
    default = "PLAINTEXT" if "PLAINTEXT" in names else next(iter(names), "")
    return given or default
