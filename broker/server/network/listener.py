"""A listening socket: accepts connections up to a limit and closes those that are idle too long.

At the limit new clients wait in the system's queue, as with Kafka, until a connection ends.

Clients never take the last file descriptors, which the logs need (`common.http.accepting`).
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Protocol

from broker.config.broker_config import Endpoint
from broker.model import plain_address
from broker.quotas.connection_counts import ConnectionCounts
from broker.server.login.tls_socket import Shaken, TlsHandshake
from broker.server.network.accept_client import ClientAcceptor
from broker.server.network.connection import Connection
from common.http.accepting import Accepting

log = logging.getLogger("millstream.listener")

ALL_INTERFACES = "0.0.0.0"
KEEP_ALIVE_IDLE_SECONDS, KEEP_ALIVE_INTERVAL_SECONDS, KEEP_ALIVE_COUNT = 60, 20, 3
"""A client whose machine fails without closing is noticed after two minutes of silence."""


MAX_REFUSED = 1_000
"""More connections above the rate of their address are closed at once."""


class ListenerRates(Protocol):
    """The rates of new connections at one listener (`broker.quotas.connection_rates`)."""

    def refuse_ms(self, host: str) -> int:
        """Return how long to keep a connection before it is closed; 0 if it may connect."""
        ...

    def pause_ms(self) -> int:
        """Count a connection, and return how long not to accept another one."""
        ...


class Listener:
    """Owns one listening socket and the set of its open connections."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        listening: socket.socket,
        *,
        acceptor: ClientAcceptor,
        counts: ConnectionCounts,
        rates: ListenerRates | None = None,
    ) -> None:
        """`counts` is that of all listeners; `rates` limits new connections, None: it does not."""
        self._loop = loop
        self._name = acceptor.listener_name
        self._accepting = Accepting(loop, listening, self._take, self._why_full)
        self._counts = counts
        self.on_room: Callable[[], None] = self.go_on
        """Called when a connection has ended: this listener, or another one, may have room."""
        self.on_excess: Callable[[], None] = lambda: None
        """Called when the listeners have more connections than they may have."""
        self._rates = rates
        self._refused: dict[socket.socket, asyncio.TimerHandle] = {}
        self.acceptor = acceptor
        self._handshakes: dict[TlsHandshake, str] = {}
        """The handshakes under way, each with the address of the client."""
        self.connections: dict[int, Connection] = {}
        self._is_refusal_logged = False

    def start(self, backlog: int) -> None:
        """Begin to listen: before this call the system refuses each connection."""
        self._accepting.start(backlog)

    @property
    def port(self) -> int:
        """The port of the socket: the port that the system chose if 0 was asked for."""
        return self._accepting.port

    def _take(self, accepted: socket.socket, host: str) -> None:
        host = plain_address(host)  # Rules and quotas name an address in one spelling.
        if self._counts.is_full_of(self._name, host):
            if not self._is_refusal_logged:
                log.warning("refused: max.connections.per.ip reached client_host=%s", host)
            self._is_refusal_logged = True
            accepted.close()
            return
        self._is_refusal_logged = False
        if self._rates is not None and not self._is_in_rate(accepted, host, self._rates):
            return
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _keep_alive(accepted)
        self._counts.add(self._name, host)
        if self.acceptor.has_handshake:
            self._shake_hands(accepted, host)
        else:
            self._add(self.acceptor.connect(accepted, host))
        if self._counts.excess:
            self.on_excess()

    def _is_in_rate(self, accepted: socket.socket, host: str, rates: ListenerRates) -> bool:
        """Count a new connection; refuse it, or pause after it, if there are too many."""
        refuse_ms = rates.refuse_ms(host)
        if refuse_ms:
            self._refuse_later(accepted, refuse_ms)
            return False
        pause_ms = rates.pause_ms()
        if pause_ms:
            self._accepting.pause_for(pause_ms / 1_000)
        return True

    def _refuse_later(self, accepted: socket.socket, refuse_ms: int) -> None:
        """Close a connection after a time, so that its client does not try again at once."""
        if len(self._refused) >= MAX_REFUSED:
            accepted.close()
            return

        def close() -> None:
            del self._refused[accepted]
            accepted.close()
            self._accepting.go_on()

        self._refused[accepted] = self._loop.call_later(refuse_ms / 1_000, close)

    def _shake_hands(self, accepted: socket.socket, host: str) -> None:
        def on_done(shaken: Shaken) -> None:
            del self._handshakes[handshake]
            self._admit(shaken, host)

        try:
            handshake = self.acceptor.shake_hands(accepted, on_done)
        except OSError:
            accepted.close()  # The client has closed it already.
            self._release(host)
        else:
            self._handshakes[handshake] = host

    def _admit(self, shaken: Shaken, host: str) -> None:
        """Make the connection of a client after its handshake, unless that failed."""
        if isinstance(shaken, OSError):
            log.info("TLS handshake failed client_host=%s error=%s", host, shaken)
            self._release(host)
            return
        try:
            self._add(self.acceptor.connect(shaken, host))
        except ValueError as error:
            log.warning("closed: no principal client_host=%s error=%s", host, error)
            shaken.close()
            self._release(host)

    def _why_full(self) -> str | None:
        return None if self._counts.has_room(self._name) else "max.connections"

    def _release(self, host: str) -> None:
        self._counts.remove(self._name, host)
        self.on_room()

    def go_on(self) -> None:
        """Try to accept a connection again, if accepting pauses."""
        self._accepting.go_on()

    def _add(self, connection: Connection) -> None:
        self.connections[id(connection)] = connection

    def forget(self, connection: Connection) -> None:
        """Drop a connection that has closed."""
        if self.connections.pop(id(connection), None) is not None:
            self._release(connection.peer.host)

    def close_idle(self, idle_since: float) -> None:
        """Close every connection that owes no answer and got no request since `idle_since`."""
        for connection in list(self.connections.values()):
            if connection.is_idle and connection.last_active < idle_since:
                connection.close()

    def stop_accepting(self) -> None:
        """Close the listening socket; open connections go on."""
        self._accepting.stop()

    def close_connections(self) -> None:
        """Close every open connection and every handshake under way."""
        for refused, timer in self._refused.items():
            timer.cancel()
            refused.close()
        self._refused.clear()
        for handshake in list(self._handshakes):
            handshake.cancel()
        self._handshakes.clear()
        for connection in list(self.connections.values()):
            connection.close()


def _keep_alive(accepted: socket.socket) -> None:
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):  # called otherwise on macOS, where the default is kept
        tcp = socket.IPPROTO_TCP
        accepted.setsockopt(tcp, socket.TCP_KEEPIDLE, KEEP_ALIVE_IDLE_SECONDS)
        accepted.setsockopt(tcp, socket.TCP_KEEPINTVL, KEEP_ALIVE_INTERVAL_SECONDS)
        accepted.setsockopt(tcp, socket.TCP_KEEPCNT, KEEP_ALIVE_COUNT)


def bind(host: str, port: int) -> socket.socket:
    """Return a bound socket that does not listen; raises OSError if the address is taken.

    No host stands for all addresses of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    host = host or ALL_INTERFACES
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        where = f"[{host}]:{port}" if family == socket.AF_INET6 else f"{host}:{port}"
        said = f"cannot listen on {where}: {error.strerror or error}"
        raise OSError(error.errno, said) from error
    return listening


def reachable(advertised: Endpoint, listener: Listener) -> tuple[str, int]:
    """Return the address for clients: the chosen port for 0, this machine's name for no host."""
    host = advertised.host
    if host in {"", ALL_INTERFACES, "::"}:
        host = socket.gethostname()
    return host, advertised.port or listener.port
