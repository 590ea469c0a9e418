"""How many connections a broker has, at each listener and from each address (KIP-306, KIP-402).

`max.connections` is for all listeners of the broker together. A listener without room accepts
nobody, so new clients wait in the system's queue; an address that has its number of connections is
refused, so that other addresses do not wait for it. The listener between brokers is protected: it
has room also when the clients of other listeners have taken all of it. The broker then closes
connections of those (`excess`), and also when the limit becomes lower.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

NO_LIMIT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections a broker may have open."""

    max_connections: int = NO_LIMIT
    max_connections_per_ip: int = NO_LIMIT
    overrides: Mapping[str, int] = field(default_factory=dict)
    """Other limits for some addresses, instead of every `max.connections.per.ip`."""
    listeners: Mapping[str, int] = field(default_factory=dict)
    """`max.connections` of single listeners."""
    listeners_per_ip: Mapping[str, int] = field(default_factory=dict)
    """`max.connections.per.ip` of single listeners."""

    def of_address(self, address: str) -> int:
        """Return how many connections one address may have at the broker."""
        return self.overrides.get(address, self.max_connections_per_ip)

    def of_address_at(self, listener: str, address: str) -> int:
        """Return how many connections one address may have at one listener."""
        return self.overrides.get(address, self.listeners_per_ip.get(listener, NO_LIMIT))


class ConnectionCounts:
    """Counts open connections; an address is given in its plain spelling.

    Invariant: no count is negative, and none of an address is zero.
    """

    def __init__(
        self, limits: ConnectionLimits, listeners: Iterable[str], between_brokers: str = ""
    ) -> None:
        """`between_brokers` is the protected listener; empty: there is none."""
        self.limits = limits
        self._of_listeners = dict.fromkeys(listeners, 0)
        self._of_addresses: dict[tuple[str, str], int] = {}
        # A broker without a listener of its own for brokers cannot tell them from clients.
        self._protected = between_brokers if len(self._of_listeners) > 1 else ""

    @property
    def total(self) -> int:
        """The connections of all listeners."""
        return sum(self._of_listeners.values())

    @property
    def excess(self) -> int:
        """Return how many connections of unprotected listeners have to be closed."""
        return max(0, self.total - self.limits.max_connections)

    def is_protected(self, listener: str) -> bool:
        """Return True for the listener between brokers, if it is one of its own."""
        return listener == self._protected

    def has_room(self, listener: str) -> bool:
        """Return True if a listener may accept one more connection."""
        if self._of_listeners[listener] >= self.limits.listeners.get(
            listener, self.limits.max_connections
        ):
            return False
        return self.is_protected(listener) or self.total < self.limits.max_connections

    def is_full_of(self, listener: str, address: str) -> bool:
        """Return True if an address has all the connections that it may have."""
        at_listener = self._of_addresses.get((listener, address), 0)
        if at_listener >= self.limits.of_address_at(listener, address):
            return True
        limit = self.limits.of_address(address)
        if limit == NO_LIMIT:
            return False
        everywhere = sum(self._of_addresses.get((each, address), 0) for each in self._of_listeners)
        return everywhere >= limit

    def add(self, listener: str, address: str) -> None:
        """Count a connection."""
        self._of_listeners[listener] += 1
        key = listener, address
        self._of_addresses[key] = self._of_addresses.get(key, 0) + 1

    def remove(self, listener: str, address: str) -> None:
        """Count a connection no longer."""
        assert self._of_listeners[listener] > 0, listener
        self._of_listeners[listener] -= 1
        key = listener, address
        if self._of_addresses[key] == 1:
            del self._of_addresses[key]
        else:
            self._of_addresses[key] -= 1
