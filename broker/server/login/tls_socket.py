"""A TLS connection that is used like a socket that does not block, and the handshake before it.

If OpenSSL has to wait to read or to write, a `BlockingIOError` is raised; every failure of TLS is
an `OSError`. OpenSSL may hold bytes that the event loop cannot see, because they were read from the
socket together with earlier bytes: after a `recv_into` that left some, `on_pending` is called in
the next turn of the loop.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Union

MAX_BYTES_PER_WRITE = 64 * 1024
"""Parts of answers are joined up to this size: a small TLS record costs as much as a full one."""
HANDSHAKE_SECONDS = 10.0
"""The connection is closed if the handshake takes longer."""

_DRAINED_BYTES = 64 * 1024


def do_nothing() -> None:
    """Do nothing with the notice of pending bytes."""


class TlsSocket:
    """Owns one TLS connection whose handshake is done."""

    __slots__ = ("_loop", "_ssl", "on_pending")

    def __init__(self, loop: asyncio.AbstractEventLoop, connected: ssl.SSLSocket) -> None:
        self._loop = loop
        self._ssl = connected
        self.on_pending: Callable[[], None] = do_nothing

    def fileno(self) -> int:
        """Return the descriptor, for the event loop."""
        return self._ssl.fileno()

    def getpeername(self) -> tuple[str, int]:
        """Return the address of the other end; raises OSError if it is gone."""
        host, port, *_ = self._ssl.getpeername()
        return host, port

    def recv_into(self, target: "bytearray | memoryview") -> int:
        """Receive what there is, up to the buffer's size; 0 is the end. Raises OSError."""
        received, wanted = 0, len(target)
        view = memoryview(target)
        while received < wanted:
            try:
                count = self._ssl.recv_into(view[received:])
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                break
            except ssl.SSLEOFError:
                count = 0
            if count == 0:
                return received
            received += count
        if not received and wanted:
            raise BlockingIOError
        self.look_for_pending()
        return received

    def look_for_pending(self) -> None:
        """Call `on_pending` soon if there are bytes that the event loop cannot see."""
        if self._ssl.pending():
            self._loop.call_soon(self._tell_pending)

    def _tell_pending(self) -> None:
        if self._ssl.fileno() >= 0 and self._ssl.pending():
            self.on_pending()

    def send(self, data: "bytes | bytearray | memoryview") -> int:
        """Send some of `data`; return how much. Raises BlockingIOError, OSError."""
        try:
            return self._ssl.send(data)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise BlockingIOError from None

    def sendmsg(self, buffers: "Sequence[bytes | bytearray | memoryview]") -> int:
        """Send some of the buffers' bytes; return how many. Raises BlockingIOError, OSError."""
        joined = bytearray()
        for buffer in buffers:
            joined += buffer[: MAX_BYTES_PER_WRITE - len(joined)]
            if len(joined) >= MAX_BYTES_PER_WRITE:
                break
        return self.send(joined)

    def peer_certificate(self) -> bytes | None:
        """Return the other end's verified certificate in DER, None if there is none."""
        return self._ssl.getpeercert(True)

    def close(self) -> None:
        """Close without a TLS alert: the other end reads the end of the stream."""
        self._ssl.close()


Shaken = Union[TlsSocket, OSError]  # noqa: UP007 - evaluated at run time with a class


class TlsHandshake:
    """Owns a connected socket until its handshake ends; then `on_done` is called once, later."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        connected: ssl.SSLSocket,
        on_done: Callable[[Shaken], None],
        timeout_seconds: float = HANDSHAKE_SECONDS,
    ) -> None:
        """`connected` does not block and has not begun its handshake."""
        self._loop = loop
        self._ssl = connected
        self._on_done = on_done
        self._is_over = False
        self._timer = loop.call_later(timeout_seconds, self._on_timeout)
        loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        if self._is_over:
            return
        descriptor = self._ssl.fileno()
        self._loop.remove_reader(descriptor)
        self._loop.remove_writer(descriptor)
        try:
            self._ssl.do_handshake()
        except ssl.SSLWantReadError:
            self._loop.add_reader(descriptor, self._go_on)
        except ssl.SSLWantWriteError:
            self._loop.add_writer(descriptor, self._go_on)
        except (OSError, ValueError) as error:  # ValueError: an invalid host name
            self._fail(error if isinstance(error, OSError) else OSError(str(error)))
        else:
            self._end()
            self._on_done(TlsSocket(self._loop, self._ssl))

    def cancel(self) -> None:
        """Close the socket; `on_done` is not called."""
        if not self._is_over:
            self._end()
            self._ssl.close()

    def _on_timeout(self) -> None:
        self._fail(TimeoutError("no TLS handshake in time"))

    def _fail(self, error: OSError) -> None:
        if isinstance(error, ssl.SSLError):
            # With bytes left to read the kernel would reset the connection. A client that speaks
            # no TLS reads the end of the stream, which its library explains.
            with suppress(OSError):
                socket.socket.recv(self._ssl, _DRAINED_BYTES)
        self.cancel()
        self._on_done(error)

    def _end(self) -> None:
        self._is_over = True
        self._timer.cancel()
        self._loop.remove_reader(self._ssl.fileno())
        self._loop.remove_writer(self._ssl.fileno())
