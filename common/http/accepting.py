"""Accepts connections for a server, and never takes the last file descriptors for them.

A program needs those for its own files and connections. When too few are left, the server stops
accepting, and new clients wait in the system's queue. It does the same when a limit of its owner is
reached. It tries again when `go_on` is called and after a moment, since other parts of the program
close files too. It logs the pause once, and again
only after a minute with enough descriptors, so that a client cannot fill the log.

asyncio and uvloop give away the last descriptor by themselves. asyncio then logs thousands of stack
traces a second, and uvloop closes new connections.
"""

import asyncio
import errno
import gc
import logging
import math
import os
import resource
import socket
import ssl
from collections.abc import Callable, Sequence

from common.process.tasks import spawn

log = logging.getLogger("millstream.listener")

ACCEPTS_PER_WAKE_UP = 64
UNREAD_SECONDS = 60.0
"""The system closes a connection whose client takes nothing of what is sent for so long. Otherwise
the answer stays in memory until the client closes it."""
RETRY_SECONDS = 0.25
QUIET_SECONDS = 60.0
OUT_OF_RESOURCES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
MAX_RESERVED_DESCRIPTORS = 64
"""So many, or an eighth of a small limit, are left for files."""
HANDSHAKE_SECONDS = 10.0
"""A client whose TLS handshake takes longer is given up."""
MAX_HANDSHAKES = 64
"""So many clients shake hands at a time, since each takes a third of a megabyte meanwhile."""
SLOW_HANDSHAKE_SECONDS = 1.0
"""A handshake that takes longer gives way to one of a new client when there are so many."""
_BACKLOG = 128
Take = Callable[[socket.socket, str], None]
"""Is given each accepted socket, which does not block, and the address of its other end."""


class CannotListenError(OSError):
    """A server cannot listen on an address: the port is taken, or the address does not exist."""

    def __init__(self, host: str, port: int, cause: Exception) -> None:
        text = str(cause)
        if isinstance(cause, OSError) and cause.errno is not None:
            # asyncio repeats the address in its texts; the errors of names are negative.
            text = os.strerror(cause.errno) if cause.errno > 0 else cause.strerror or text
        super().__init__(f"cannot listen on {host}:{port}: {text}")


class Accepting:
    """Owns one listening socket."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        listening: socket.socket,
        take: Take,
        why_full: Callable[[], str | None] = lambda: None,
    ) -> None:
        """`why_full` names the limit that is reached; None: one more connection may be accepted."""
        self._loop = loop
        self._socket = listening
        self._take = take
        self._why_full = why_full
        self._retry: asyncio.TimerHandle | None = None  # while accepting pauses
        self._rest: asyncio.TimerHandle | None = None  # while a pause that was asked for lasts
        self._short_at = -QUIET_SECONDS

    def start(self, backlog: int = _BACKLOG) -> None:
        """Begin to listen. Until then the sockets refuse connections."""
        self._socket.setblocking(False)
        self._socket.listen(backlog)
        self._loop.add_reader(self._socket.fileno(), self._on_acceptable)

    @property
    def port(self) -> int:
        """The port that is listened on: the real one where 0 was asked for."""
        return int(self._socket.getsockname()[1])

    def go_on(self) -> None:
        """Try again at once if accepting pauses: a descriptor has become free."""
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
            self._listen()

    def pause_for(self, seconds: float) -> None:
        """Accept no connection for this time; clients wait in the system's queue."""
        if self._rest is None and self._socket.fileno() != -1:
            self._loop.remove_reader(self._socket.fileno())
            self._rest = self._loop.call_later(seconds, self._end_rest)

    def _end_rest(self) -> None:
        self._rest = None
        self._listen()

    def _listen(self) -> None:
        if self._retry is None and self._rest is None:
            self._loop.add_reader(self._socket.fileno(), self._on_acceptable)

    def stop(self) -> None:
        """Close the listening socket. Accepted connections stay open."""
        if self._socket.fileno() == -1:
            return
        for timer in (self._retry, self._rest):
            if timer is not None:
                timer.cancel()
        self._retry = self._rest = None
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()

    def _on_acceptable(self) -> None:
        for _ in range(ACCEPTS_PER_WAKE_UP):
            full = self._why_full()
            if full is not None:
                self._pause(f"{full} is reached")
                return
            # Before accepting, so that an accepted connection is served.
            if _lowest_free_descriptor() >= _descriptors_for_clients():
                self._pause("the last file descriptors are for files")
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
            accepted.setblocking(False)
            self._take(accepted, str(address[0]))
            if self._rest is not None:
                return

    def _pause(self, why: str) -> None:
        """Accept nobody for a while; level-triggered, the socket would call at every turn."""
        now = self._loop.time()
        if now - self._short_at >= QUIET_SECONDS:
            log.error("accepting pauses: %s; port=%d", why, self.port)
        self._short_at = now
        self._loop.remove_reader(self._socket.fileno())
        self._retry = self._loop.call_later(RETRY_SECONDS, self.go_on)


class Connection(asyncio.Protocol):
    """One connection of a `ProtocolServer`. It tells `connections` what it does."""

    __slots__ = ()

    def give_way(self) -> None:
        """Close, for a newer client: this one has asked for nothing for the longest time."""
        raise NotImplementedError


class Connections:
    """The open connections of one server, those that are idle in the order since when.

    A connection is idle while no request of it is being answered: it has sent nothing yet, or a
    part of a request, or its last answer is written. So clients that only hold connections shut
    nobody out: when the limit is reached, the one that is idle longest gives way.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._idle: dict[Connection, None] = {}
        self._busy: set[Connection] = set()

    def __len__(self) -> int:
        return len(self._idle) + len(self._busy)

    def made(self, connection: Connection) -> None:
        """A connection is open."""
        self._idle[connection] = None

    def begin(self, connection: Connection) -> None:
        """A request of it is being answered."""
        if connection in self._idle:
            del self._idle[connection]
            self._busy.add(connection)

    def end(self, connection: Connection) -> None:
        """The answer is written."""
        if connection in self._busy:
            self._busy.discard(connection)
            self._idle[connection] = None

    def lost(self, connection: Connection) -> None:
        """The connection is closed."""
        self._idle.pop(connection, None)
        self._busy.discard(connection)

    def close_idle(self) -> None:
        """Close all that are idle."""
        while self.make_room():
            pass

    def make_room(self) -> bool:
        """Close the connection that is idle longest; return False when none is idle."""
        for connection in self._idle:
            del self._idle[connection]
            connection.give_way()
            return True
        return False


class ProtocolServer:
    """Serves each connection to one of its sockets by an asyncio protocol of its own."""

    def __init__(
        self,
        make_protocol: Callable[[Connections], Connection],
        listening: Sequence[socket.socket],
        *,
        limit: int,
        tls: Callable[[], ssl.SSLContext | None] = lambda: None,
    ) -> None:
        """A protocol tells the `Connections` that it is given when it is made and lost, and when it
        begins and ends to answer. More than `limit` are never open.

        `tls` returns the context of a new connection, None for one that is not encrypted.
        """
        self._loop = asyncio.get_running_loop()
        self._make_protocol = make_protocol
        self.sockets = tuple(listening)
        self._accepting = [
            Accepting(self._loop, each, self._take, self._why_full) for each in listening
        ]
        self.connections = Connections(limit)
        self._tls = tls
        self._full_at = -QUIET_SECONDS
        self._failed = 0
        self._opening: dict[Connection, tuple[asyncio.Task[None], float]] = {}
        """Connections that are not made yet, the oldest first, with the time at which their task
        began, infinite before it: those with TLS shake hands."""

    def start(self, backlog: int = _BACKLOG) -> None:
        """Begin to serve."""
        for each in self._accepting:
            each.start(backlog)

    def close(self) -> None:
        """Stop listening. Open connections stay open."""
        for each in self._accepting:
            each.stop()

    def _why_full(self) -> str | None:
        """Name the limit of handshakes. The oldest is given up, but not before a second."""
        if len(self._opening) < MAX_HANDSHAKES:
            return None
        protocol, (connecting, since) = next(iter(self._opening.items()))
        if self._loop.time() - since < SLOW_HANDSHAKE_SECONDS:
            return "the limit of TLS handshakes"
        # Not when the task ends, which is after all the others that are accepted now.
        del self._opening[protocol]
        connecting.cancel()
        return None

    def _take(self, accepted: socket.socket, _: str) -> None:
        if len(self.connections) + len(self._opening) >= self.connections.limit:
            has_room = self.connections.make_room()
            self._tell_full(has_room=has_room)
            if not has_room:
                accepted.close()
                return
        _give_up_if_unread(accepted)
        protocol = self._make_protocol(self.connections)
        # The loop itself keeps only weak references to what it runs.
        self._opening[protocol] = spawn(self._connect(accepted, protocol)), math.inf

    def _tell_full(self, *, has_room: bool) -> None:
        now = self._loop.time()
        if now - self._full_at >= QUIET_SECONDS:
            what = "those that are idle longest are closed" if has_room else "new ones are refused"
            log.warning("%d connections are open, as more may be: %s", self.connections.limit, what)
        self._full_at = now

    async def _connect(self, accepted: socket.socket, protocol: Connection) -> None:
        def made() -> Connection:
            # From here on `Connections` counts it.
            if context is None:
                self._opening.pop(protocol, None)
            return protocol

        connecting, _ = self._opening[protocol]
        self._opening[protocol] = connecting, self._loop.time()
        context = None
        is_shaken = False
        try:
            context = self._tls()
            await self._loop.connect_accepted_socket(
                made,
                accepted,
                ssl=context,
                ssl_handshake_timeout=None if context is None else HANDSHAKE_SECONDS,
            )
            is_shaken = True
        except OSError:  # that client is gone already
            accepted.close()
        finally:
            self._opening.pop(protocol, None)
            if context is not None and not is_shaken:
                self._give_back()

    def _give_back(self) -> None:
        """Free what failed handshakes hold: a quarter of a megabyte each, in reference cycles."""
        self._failed = (self._failed + 1) % MAX_HANDSHAKES
        if self._failed == 0:
            # After the task that ends now, which holds the last of them.
            self._loop.call_soon(_collect)


def _collect() -> None:
    # The youngest objects: programs collect seldom (`starting.py`), so that they are all there.
    gc.collect(1)


_NO_ADDRESS = (OSError, OverflowError, UnicodeError)
"""Errors of an address: OverflowError of a port, UnicodeError of a name."""


def listening_on(host: str, port: int) -> socket.socket:
    """Return a socket that listens; raise CannotListenError."""
    try:
        return socket.create_server((host, port))
    except _NO_ADDRESS as error:
        raise CannotListenError(host, port, error) from error


async def bound_to(host: str, port: int) -> list[socket.socket]:
    """Return sockets for all addresses that a host has; raise CannotListenError.

    What a name or no name means is left to the loop.
    """
    try:
        server = await asyncio.get_running_loop().create_server(
            asyncio.Protocol, host, port, start_serving=False
        )
    except _NO_ADDRESS as error:
        raise CannotListenError(host, port, error) from error
    sockets = [each.dup() for each in server.sockets]
    server.close()
    return sockets


def _give_up_if_unread(accepted: socket.socket) -> None:
    # Linux has it, macOS does not.
    option = getattr(socket, "TCP_USER_TIMEOUT", None)
    if option is not None and accepted.family != socket.AF_UNIX:
        accepted.setsockopt(socket.IPPROTO_TCP, option, int(UNREAD_SECONDS * 1000))


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
