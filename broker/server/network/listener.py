"""A listening socket: accepts connections up to a limit and closes those that idle too long."""

import asyncio
import logging
import socket
from collections.abc import Callable

from broker.server.network.connection import Connection

log = logging.getLogger("millrace.listener")

ACCEPTS_PER_WAKE_UP = 64
Accept = Callable[[socket.socket, str], Connection]


class Listener:
    """Owns one listening socket and the set of its open connections."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        listening: socket.socket,
        *,
        accept: Accept,
        max_connections: int,
        max_connections_per_ip: int,
    ) -> None:
        self._loop = loop
        self._socket = listening
        self._accept = accept
        self.max_connections = max_connections
        self.max_connections_per_ip = max_connections_per_ip
        self.connections: dict[int, Connection] = {}

    def start(self, backlog: int) -> None:
        """Begin to listen: until now whoever came was refused, as nobody was there."""
        self._socket.listen(backlog)
        self._loop.add_reader(self._socket.fileno(), self._on_acceptable)

    @property
    def port(self) -> int:
        """The port that is listened on: the real one where 0 was asked for."""
        return int(self._socket.getsockname()[1])

    def _on_acceptable(self) -> None:
        for _ in range(ACCEPTS_PER_WAKE_UP):
            try:
                accepted, address = self._socket.accept()
            except BlockingIOError:
                return
            except OSError as error:
                # Out of file descriptors, or the client is gone already: both pass by.
                log.warning("accept failed error=%s", error)
                return
            if self._is_full(str(address[0])):
                accepted.close()
                continue
            accepted.setblocking(False)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._add(self._accept(accepted, str(address[0])))

    def _is_full(self, host: str) -> bool:
        if len(self.connections) >= self.max_connections:
            log.warning("refused: max.connections reached client_host=%s", host)
            return True
        limit = self.max_connections_per_ip
        if limit <= len(self.connections):
            from_host = sum(1 for c in self.connections.values() if c.peer.host == host)
            if from_host >= limit:
                log.warning("refused: max.connections.per.ip reached client_host=%s", host)
                return True
        return False

    def _add(self, connection: Connection) -> None:
        self.connections[id(connection)] = connection

    def forget(self, connection: Connection) -> None:
        """Drop a connection that has closed."""
        self.connections.pop(id(connection), None)

    def close_idle(self, idle_since: float) -> None:
        """Close every connection that owes nothing and has been silent since `idle_since`."""
        for connection in list(self.connections.values()):
            if connection.is_idle and connection.last_active < idle_since:
                connection.close()

    def stop_accepting(self) -> None:
        """Close the listening socket; open connections go on."""
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()

    def close_connections(self) -> None:
        """Close every open connection."""
        for connection in list(self.connections.values()):
            connection.close()


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that has an address and refuses all; raises OSError when it is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.setblocking(False)
    except OSError:
        listening.close()
        raise
    return listening
