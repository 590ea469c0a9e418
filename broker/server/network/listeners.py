"""The listeners of a broker by their names, and the operations on all of them."""

import logging
from collections.abc import Callable

from broker.quotas.connection_counts import ConnectionCounts, ConnectionLimits
from broker.server.clock import monotonic_seconds
from broker.server.network.connection import Connection
from broker.server.network.dispatch import Handler
from broker.server.network.listener import Listener

log = logging.getLogger("millstream.listener")


class Listeners:
    """Owns the listeners, and the address that clients are given for each."""

    def __init__(self, counts: ConnectionCounts) -> None:
        self.counts = counts
        self._by_name: dict[str, Listener] = {}
        self._advertised: dict[str, tuple[str, int]] = {}

    def add(self, name: str, listener: Listener, advertised: tuple[str, int]) -> None:
        """Add a listener; it refuses connections until `start`."""
        listener.on_room = self._go_on
        listener.on_excess = self._make_room
        self._by_name[name] = listener
        self._advertised[name] = advertised

    def put_around_logins(self, around: Callable[[Handler], Handler]) -> None:
        """Put something before the handler of the logins that begin from here on."""
        for listener in self._by_name.values():
            listener.acceptor.around_login = around

    def advertised(self) -> list[tuple[str, str, int]]:
        """Return name, host and port of each, as clients are given them."""
        return [(name, *address) for name, address in self._advertised.items()]

    @property
    def ports(self) -> dict[str, int]:
        """The port of each listener, by its name."""
        return {name: listener.port for name, listener in self._by_name.items()}

    def connection_counts(self) -> dict[str, int]:
        """Return how many client connections are open at each."""
        return {name: len(listener.connections) for name, listener in self._by_name.items()}

    def forget(self, connection: Connection) -> None:
        """Drop a connection that has closed."""
        self._by_name[connection.peer.listener_name].forget(connection)

    def limit(self, limits: ConnectionLimits) -> None:
        """Set new limits; connections above `max.connections` are closed if brokers need room."""
        self.counts.limits = limits
        self._go_on()
        self._make_room()

    def _go_on(self) -> None:
        for listener in self._by_name.values():
            listener.go_on()

    def _make_room(self) -> None:
        """Close connections of clients while there are more than allowed, idle ones first.

        Among those, the one whose last request is the oldest is closed first.
        """
        if not self.counts.excess:
            return
        clients = [
            connection
            for name, listener in self._by_name.items()
            if not self.counts.is_protected(name)
            for connection in listener.connections.values()
        ]
        clients.sort(key=lambda each: (not each.is_idle, each.last_active))
        for connection in clients[: self.counts.excess]:
            log.info(
                "closed: max.connections is reached client_host=%s listener=%s",
                *connection.peer[:2],
            )
            connection.close()

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
