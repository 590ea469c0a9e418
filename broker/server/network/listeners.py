"""The listeners of a broker by their names, and the operations on all of them."""

from collections.abc import Mapping

from broker.config.quota_config import ConnectionLimits
from broker.server.clock import monotonic_seconds
from broker.server.network.connection import Connection
from broker.server.network.listener import Listener


class Listeners:
    """Owns the listeners, and the address that clients are given for each."""

    def __init__(self) -> None:
        self._by_name: dict[str, Listener] = {}
        self._advertised: dict[str, tuple[str, int]] = {}

    def add(self, name: str, listener: Listener, advertised: tuple[str, int]) -> None:
        """Add a listener; it refuses connections until `start`."""
        self._by_name[name] = listener
        self._advertised[name] = advertised

    def advertised(self) -> list[tuple[str, str, int]]:
        """Return name, host and port of each, as clients are given them."""
        return [(name, *address) for name, address in self._advertised.items()]

    def connection_count(self) -> int:
        """Return how many client connections are open."""
        return sum(len(listener.connections) for listener in self._by_name.values())

    def forget(self, connection: Connection) -> None:
        """Drop a connection that has closed."""
        self._by_name[connection.peer.listener_name].forget(connection)

    def limit(self, limits: Mapping[str, ConnectionLimits]) -> None:
        """Set new limits; open connections stay."""
        for name, listener in self._by_name.items():
            listener.limits = limits[name]

    def close_idle(self, max_idle_ms: int) -> None:
        """Close every connection that owes no answer and has been idle for this time."""
        idle_since = monotonic_seconds() - max_idle_ms / 1000
        for listener in self._by_name.values():
            listener.close_idle(idle_since)

    def start(self, backlog: int) -> None:
        """Begin to serve."""
        for listener in self._by_name.values():
            listener.start(backlog)

    def stop_accepting(self) -> None:
        """Accept no new connections; open connections go on."""
        for listener in self._by_name.values():
            listener.stop_accepting()

    def close_connections(self) -> None:
        """Close every open connection."""
        for listener in self._by_name.values():
            listener.close_connections()
