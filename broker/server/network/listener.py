"""A listening socket: accepts connections up to a limit and closes those that idle too long.

Clients never take the last file descriptors, which the logs need. When there are too few, accepting
pauses: whoever comes waits in the system's queue. It is tried again when a connection closes, and
every second, for others close files too. It is said once, and again only if there were enough for a
minute: who opens and closes connections all the time does not fill the log.
"""

import asyncio
import errno
import logging
import os
import resource
import socket
from collections.abc import Callable

from broker.server.network.connection import Connection

log = logging.getLogger("millrace.listener")

ACCEPTS_PER_WAKE_UP = 64
RETRY_SECONDS = 1.0
QUIET_SECONDS = 60.0
OUT_OF_RESOURCES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
MAX_RESERVED_DESCRIPTORS = 64
"""So many, or an eighth of a small limit, are left for files."""
KEEP_ALIVE_IDLE_SECONDS, KEEP_ALIVE_INTERVAL_SECONDS, KEEP_ALIVE_COUNT = 60, 20, 3
"""A client whose machine is gone without a word is noticed after two minutes of silence."""
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
        self._retry: asyncio.TimerHandle | None = None  # while accepting pauses
        self._short_at = -QUIET_SECONDS
        self._is_full_said = False

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
            # Looked at before: who is accepted is served, and not closed at once.
            if _lowest_free_descriptor() >= _descriptors_for_clients():
                self._pause("the last file descriptors are for the logs")
                return
            try:
                accepted, address = self._socket.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in OUT_OF_RESOURCES:
                    self._pause(str(error))
                    return
                continue  # that client is gone already
            self._take(accepted, str(address[0]))

    def _take(self, accepted: socket.socket, host: str) -> None:
        full = self._why_full(host)
        if full is not None:
            if not self._is_full_said:
                log.warning("refused: %s reached client_host=%s, as more may be", full, host)
            self._is_full_said = True
            accepted.close()
            return
        self._is_full_said = False
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _keep_alive(accepted)
        self._add(self._accept(accepted, host))

    def _pause(self, why: str) -> None:
        """Accept nobody for a while; level-triggered, the socket would call at every turn."""
        now = self._loop.time()
        if now - self._short_at >= QUIET_SECONDS:
            log.error("accepting pauses: %s; connections=%d", why, len(self.connections))
        self._short_at = now
        self._loop.remove_reader(self._socket.fileno())
        self._retry = self._loop.call_later(RETRY_SECONDS, self._go_on)

    def _go_on(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
            self._loop.add_reader(self._socket.fileno(), self._on_acceptable)

    def _why_full(self, host: str) -> str | None:
        if len(self.connections) >= self.max_connections:
            return "max.connections"
        limit = self.max_connections_per_ip
        if limit <= len(self.connections):
            from_host = sum(1 for c in self.connections.values() if c.peer.host == host)
            if from_host >= limit:
                return "max.connections.per.ip"
        return None

    def _add(self, connection: Connection) -> None:
        self.connections[id(connection)] = connection

    def forget(self, connection: Connection) -> None:
        """Drop a connection that has closed."""
        self.connections.pop(id(connection), None)
        self._go_on()

    def close_idle(self, idle_since: float) -> None:
        """Close every connection that owes nothing and has been silent since `idle_since`."""
        for connection in list(self.connections.values()):
            if connection.is_idle and connection.last_active < idle_since:
                connection.close()

    def stop_accepting(self) -> None:
        """Close the listening socket; open connections go on."""
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()

    def close_connections(self) -> None:
        """Close every open connection."""
        for connection in list(self.connections.values()):
            connection.close()


def _lowest_free_descriptor() -> int:
    """Return the descriptor that the next file or socket gets, a great number if there is none."""
    try:
        descriptor = os.open(os.devnull, os.O_RDONLY)
    except OSError:
        return 1 << 31
    os.close(descriptor)
    return descriptor


def _descriptors_for_clients() -> int:
    """Return the first descriptor that no client gets."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return 1 << 30
    return limit - min(MAX_RESERVED_DESCRIPTORS, limit // 8)


def _keep_alive(accepted: socket.socket) -> None:
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):  # called otherwise on macOS, where the default is kept
        tcp = socket.IPPROTO_TCP
        accepted.setsockopt(tcp, socket.TCP_KEEPIDLE, KEEP_ALIVE_IDLE_SECONDS)
        accepted.setsockopt(tcp, socket.TCP_KEEPINTVL, KEEP_ALIVE_INTERVAL_SECONDS)
        accepted.setsockopt(tcp, socket.TCP_KEEPCNT, KEEP_ALIVE_COUNT)


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
