"""The limits on connections, and the windows in which quotas are measured."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from ipaddress import ip_address

from broker.config.sources import LISTENER_PREFIX, invalid
from broker.config.values import Values
from broker.model import plain_address
from broker.quotas.accounts import Windows
from broker.quotas.connection_counts import NO_LIMIT, ConnectionLimits
from broker.quotas.connection_rates import ALL_LISTENERS

CREATION_RATE = "max.connection.creation.rate"
COUNT, COUNT_PER_IP = "max.connections", "max.connections.per.ip"
OVERRIDES = "max.connections.per.ip.overrides"


@dataclass(frozen=True, slots=True)
class QuotaConfig:
    """The windows of quotas, and the limits of connections."""

    windows: Windows
    mutation_windows: Windows
    connections: ConnectionLimits
    creation_rates: Mapping[str, int]
    """New connections per second at each listener, and at ALL_LISTENERS together."""


def read_quota_config(values: Values, listeners: Collection[str]) -> QuotaConfig:
    """Read the settings of quotas; raises KafkaError(INVALID_CONFIG)."""
    # The broker's own limit is for its listeners together, and not for each of them.
    rates = {ALL_LISTENERS: values.integer(CREATION_RATE, 0)}
    rates |= dict.fromkeys(listeners, NO_LIMIT) | _of_listeners(values, listeners, CREATION_RATE)
    return QuotaConfig(
        windows=_windows(values, "quota"),
        mutation_windows=_windows(values, "controller.quota"),
        connections=ConnectionLimits(
            values.integer(COUNT, 0),
            values.integer(COUNT_PER_IP, 0),
            _overrides(values),
            _of_listeners(values, listeners, COUNT),
            _of_listeners(values, listeners, COUNT_PER_IP),
        ),
        creation_rates=rates,
    )


def _of_listeners(values: Values, listeners: Collection[str], setting: str) -> dict[str, int]:
    """Return the limit of each listener that has its own."""
    given = {name.lower() for name in values.given}
    return {
        name: values.of_listener(name).integer(setting, 0)
        for name in listeners
        if f"{LISTENER_PREFIX}{name.lower()}.{setting}" in given
    }


def _windows(values: Values, prefix: str) -> Windows:
    return Windows(
        values.integer(f"{prefix}.window.size.seconds", 1) * 1_000,
        values.integer(f"{prefix}.window.num", 1),
    )


def _overrides(values: Values) -> dict[str, int]:
    found = {}
    for item in values.items(OVERRIDES):
        address, _, count = item.rpartition(":")
        try:
            found[plain_address(str(ip_address(address.strip().strip("[]"))))] = _count(count)
        except ValueError:
            raise invalid(
                f"{OVERRIDES}: {item!r} must be an address, a colon and a number of connections"
            ) from None
    return found


def _count(text: str) -> int:
    count = int(text)
    if not 0 <= count < 2**31:
        raise ValueError
    return count
