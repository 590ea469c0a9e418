"""The buffer that receives the answers of another node as frames, without a copy.

A frame is received into one buffer that grows with the bytes that arrive, never with the announced
length, and is used again for the next frame. The result of `next_frame` is therefore valid until
the next `receive`, and a caller that keeps a part of it makes a copy.
"""

import socket

from broker.server.login.tls_socket import TlsSocket

FIRST_BYTES = 64 * 1024
KEPT_BYTES = 2 * 1024 * 1024
GROWTH = 4
MIN_ANSWER_BYTES = 4  # the correlation id


class FrameSizeError(ValueError):
    """The announced size of a frame is not a valid size of an answer."""


class AnswerBuffer:
    """Invariant: the bytes from `_start` to `_end` are received and not handed out yet."""

    __slots__ = ("_buffer", "_end", "_max_frame_bytes", "_start")

    def __init__(self, max_frame_bytes: int) -> None:
        self._max_frame_bytes = max_frame_bytes
        self._buffer = bytearray()
        self._start = self._end = 0

    def receive(self, source: socket.socket | TlsSocket) -> int:
        """Take what the socket has, at most as much as fits; 0 at the end of the stream."""
        self._make_room()
        with memoryview(self._buffer) as view:
            count = source.recv_into(view[self._end :])
        self._end += count
        return count

    def _make_room(self) -> None:
        """Begin at the front when all is taken; move or grow for a frame that does not fit."""
        size_bytes = self._end - self._start
        if not size_bytes:
            self._start = self._end = 0
            if not FIRST_BYTES <= len(self._buffer) <= KEPT_BYTES:
                self._buffer = bytearray(FIRST_BYTES)
            return
        needed_bytes = self._frame_end() - self._start if size_bytes >= 4 else 4
        if self._start + needed_bytes <= len(self._buffer) and self._end < len(self._buffer):
            return
        rest = bytes(memoryview(self._buffer)[self._start : self._end])
        if size_bytes * 2 > len(self._buffer) or needed_bytes <= FIRST_BYTES:
            wanted_bytes = min(max(needed_bytes, FIRST_BYTES), GROWTH * len(self._buffer))
            if wanted_bytes > len(self._buffer):
                self._buffer = bytearray(wanted_bytes)
        self._buffer[:size_bytes] = rest
        self._start, self._end = 0, size_bytes

    def _frame_end(self) -> int:
        size = int.from_bytes(self._buffer[self._start : self._start + 4], "big", signed=True)
        if not MIN_ANSWER_BYTES <= size <= self._max_frame_bytes:
            raise FrameSizeError(f"frame size {size}")
        return self._start + 4 + size

    def next_frame(self) -> memoryview | None:
        """Give one whole frame without its size; None when there is none. Raises FrameSizeError."""
        if self._end - self._start < 4:
            return None
        end = self._frame_end()
        if end > self._end:
            return None
        frame = memoryview(self._buffer)[self._start + 4 : end]
        self._start = end
        return frame

    def clear(self) -> None:
        """Drop all bytes, and free the memory."""
        self._buffer = bytearray()
        self._start = self._end = 0
