"""Opening one TCP connection from the event loop, without a task of its own.

A host name is resolved on a thread, because a resolver may take seconds; an address needs none. All
addresses of a name are tried, one after the other. A port that *refuses* is told apart from all
other failures: only a machine that is up, and has no process on that port, refuses.
"""

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from typing import Any, Union

Dialled = Union[socket.socket, OSError]  # noqa: UP007 - evaluated at run time with a class
Address = tuple[Any, ...]


class Dial:
    """One attempt; `on_done` is called once, later, with the socket or with the error."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        address: tuple[str, int],
        timeout_ms: int,
        on_done: Callable[[Dialled], None],
    ) -> None:
        self._loop = loop
        self._on_done: Callable[[Dialled], None] | None = on_done
        self._socket: socket.socket | None = None
        self._addresses: list[tuple[int, Address]] = []
        self._error = OSError(errno.EHOSTUNREACH, f"{address[0]} has no address")
        self._timer = loop.call_later(timeout_ms / 1000, self._on_timeout)
        family = _family_of(address[0])
        if family is None:
            found = loop.run_in_executor(None, _resolve, *address)
            found.add_done_callback(self._on_resolved)
        else:
            self._addresses.append((family, address))
            loop.call_soon(self._next)

    def cancel(self) -> None:
        """Stop; `on_done` is not called after this."""
        self._on_done = None
        self._timer.cancel()
        self._drop_socket()

    def _on_resolved(self, found: "asyncio.Future[list[tuple[int, Address]]]") -> None:
        try:
            self._addresses = found.result()
        except OSError as error:
            self._error = error
        except ValueError as error:
            # Another node has named a host that is none: a zero byte, a label that is too long.
            self._error = OSError(errno.EHOSTUNREACH, f"no host name: {error}")
        self._next()

    def _next(self) -> None:
        """Try the next address; there is one attempt at a time."""
        if self._on_done is None:
            return
        if not self._addresses:
            self._finish(self._error)
            return
        family, address = self._addresses.pop(0)
        self._socket = connecting = socket.socket(family, socket.SOCK_STREAM)
        connecting.setblocking(False)
        code = connecting.connect_ex(address)
        if code == errno.EINPROGRESS:
            self._loop.add_writer(connecting.fileno(), self._on_connected, connecting)
        else:
            self._on_code(connecting, code)

    def _on_connected(self, connecting: socket.socket) -> None:
        self._loop.remove_writer(connecting.fileno())
        self._on_code(connecting, connecting.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))

    def _on_code(self, connecting: socket.socket, code: int) -> None:
        if not code and connecting.getsockname() == connecting.getpeername():
            # No process listens, and the system chose that same port for this end.
            code = errno.ECONNREFUSED
        if code:
            self._note(OSError(code, os.strerror(code)))
            self._drop_socket()
            self._next()
            return
        connecting.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = None
        self._finish(connecting)

    def _note(self, error: OSError) -> None:
        """Keep an error; one address that refuses proves nothing if another does not answer."""
        was_refused = isinstance(self._error, ConnectionRefusedError)
        if was_refused or self._error.errno == errno.EHOSTUNREACH:
            self._error = error

    def _on_timeout(self) -> None:
        self._drop_socket()
        self._finish(TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)))

    def _finish(self, result: Dialled) -> None:
        on_done = self._on_done
        self.cancel()
        if on_done is not None:
            on_done(result)

    def _drop_socket(self) -> None:
        if self._socket is not None:
            self._loop.remove_writer(self._socket.fileno())
            self._socket.close()
            self._socket = None


def _family_of(host: str) -> int | None:
    """Return the family of a literal address, None for a name."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except (OSError, ValueError):
            continue
        return family
    return None


def _resolve(host: str, port: int) -> list[tuple[int, Address]]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [(family, address) for family, _, _, _, address in found]
