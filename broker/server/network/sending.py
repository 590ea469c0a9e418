"""The send queue of one connection: the parts of answers in order, and how far they are sent."""

import os
import socket
from collections import deque

from broker.log.storage import FileRegion
from broker.server.login.tls_socket import MAX_BYTES_PER_WRITE, TlsSocket

MAX_PARTS_PER_SEND = 512  # below every system's IOV_MAX

Buffer = bytes | bytearray | memoryview
Part = Buffer | FileRegion


class Unsent:
    """Invariant: `size_bytes` is the size of all parts together."""

    __slots__ = ("_socket", "parts", "size_bytes")

    def __init__(self, connected: socket.socket | TlsSocket) -> None:
        self._socket = connected
        self.parts: deque[Part] = deque()
        self.size_bytes = 0

    def add(self, parts: list[Part]) -> None:
        """Add parts behind those that wait."""
        self.parts += parts
        self.size_bytes += sum(map(len, parts))

    def send(self) -> bool:
        """Send as much as the socket takes; return whether that was all. Raises OSError."""
        parts = self.parts
        try:
            while parts:
                first = parts[0]
                if isinstance(first, FileRegion):
                    sent = self._send_region(first)
                elif len(parts) == 1:
                    sent = self._socket.send(first)
                elif FileRegion in map(type, parts) or len(parts) > MAX_PARTS_PER_SEND:
                    sent = self._socket.sendmsg(self._next_buffers())
                else:
                    sent = self._socket.sendmsg(parts)  # type: ignore[arg-type]
                if sent == self.size_bytes:
                    parts.clear()
                    self.size_bytes = 0
                    return True
                self._drop(sent)
        except BlockingIOError:
            return False
        return True

    def _next_buffers(self) -> list[Buffer]:
        buffers: list[Buffer] = []
        for part in self.parts:
            if isinstance(part, FileRegion) or len(buffers) == MAX_PARTS_PER_SEND:
                break
            buffers.append(part)
        return buffers

    def _send_region(self, region: FileRegion) -> int:
        sent = os.sendfile(self._socket.fileno(), region.fileno(), region.position, region.length)
        if sent == 0:
            # The file was truncated under the answer: the frame cannot be completed.
            raise ConnectionAbortedError("the log was truncated while it was being sent")
        return sent

    def _drop(self, sent: int) -> None:
        """Remove the bytes that were sent."""
        self.size_bytes -= sent
        parts = self.parts
        while sent > 0:
            first = parts[0]
            length = len(first)
            if sent < length:
                parts[0] = _without_start(first, sent)
                return
            parts.popleft()
            sent -= length

    def clear(self) -> None:
        """Drop all parts."""
        self.parts.clear()
        self.size_bytes = 0


class EncryptedUnsent(Unsent):
    """Reads file regions before it sends them: the kernel cannot encrypt them."""

    __slots__ = ()

    def _send_region(self, region: FileRegion) -> int:
        length = min(region.length, MAX_BYTES_PER_WRITE)
        data = FileRegion(region.file, region.position, length).read()
        if len(data) < length:
            raise ConnectionAbortedError("the log was truncated while it was being sent")
        return self._socket.send(data)


def unsent_of(connected: socket.socket | TlsSocket) -> Unsent:
    """Return the queue of a connection of this kind."""
    return EncryptedUnsent(connected) if isinstance(connected, TlsSocket) else Unsent(connected)


def _without_start(part: Part, sent: int) -> Part:
    """Return the rest of a part of which `sent` bytes are sent."""
    if isinstance(part, FileRegion):
        return FileRegion(part.file, part.position + sent, part.length - sent)
    return memoryview(part)[sent:]
