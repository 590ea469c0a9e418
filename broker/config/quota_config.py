"""The limits on connections, and the windows in which quotas are measured."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address

from broker.config.sources import invalid
from broker.config.values import Values
from broker.quotas.accounts import Windows
from broker.quotas.client_quotas import plain_address
from broker.quotas.connection_rates import ALL_LISTENERS

CREATION_RATE = "max.connection.creation.rate"
OVERRIDES = "max.connections.per.ip.overrides"


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections one listener may have open."""

    max_connections: int
    max_connections_per_ip: int
    overrides: Mapping[str, int] = field(default_factory=dict)
    """Other limits for some addresses."""

    def of_address(self, host: str) -> int:
        """Return how many connections one address may have open."""
        if not self.overrides:
            return self.max_connections_per_ip
        return self.overrides.get(plain_address(host), self.max_connections_per_ip)


@dataclass(frozen=True, slots=True)
class QuotaConfig:
    """The windows of quotas, and the limits of every listener by its name."""

    windows: Windows
    mutation_windows: Windows
    listeners: Mapping[str, ConnectionLimits]
    creation_rates: Mapping[str, int]
    """New connections per second at each listener, and at ALL_LISTENERS together."""


def read_quota_config(values: Values, listeners: Iterable[str]) -> QuotaConfig:
    """Read the settings of quotas; raises KafkaError(INVALID_CONFIG)."""
    rates = {ALL_LISTENERS: values.integer(CREATION_RATE, 0)}
    limits = {}
    overrides = _overrides(values)
    for name in listeners:
        own = values.of_listener(name)
        has_own = f"listener.name.{name.lower()}.{CREATION_RATE}" in map(str.lower, values.given)
        # The broker's own rate is for its listeners together, and not for each of them.
        rates[name] = own.integer(CREATION_RATE, 0) if has_own else 2**31 - 1
        limits[name] = ConnectionLimits(
            own.integer("max.connections", 0),
            own.integer("max.connections.per.ip", 0),
            overrides,
        )
    return QuotaConfig(
        windows=_windows(values, "quota"),
        mutation_windows=_windows(values, "controller.quota"),
        listeners=limits,
        creation_rates=rates,
    )


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
