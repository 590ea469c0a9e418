"""Receive buffers: one shared by all connections, and a few spare large ones.

A connection reads into the shared buffer; only what is left of an unfinished frame moves into a
buffer of its own, which grows with the bytes that ARRIVE and never with the length a client
announces. A large frame moves once more, into a mapping of its whole size, whose pages take memory
only when they are written: doubling a buffer of 64 MB blocked the loop for 100 ms. A handler
finishes with the bytes of a frame before it returns, or holds its connection (`later`). A held
connection keeps its buffer, and the shared buffer is replaced if the request lies in it. So no
buffer is used again while a handler still reads it.
"""

import mmap

SHARED_BYTES = 256 * 1024
SPARE_BYTES_MAX = 2 * 1024 * 1024
SPARE_COUNT_MAX = 4
FIRST_BYTES = 64 * 1024
MOVED_BYTES_MAX = 8 * 1024 * 1024
"""Up to this size the bytes are copied into a larger buffer, which takes some milliseconds."""

Buffer = bytearray | mmap.mmap


class ReceiveBuffers:
    """Hands out receive buffers; keeps up to four spares of at most 2 MiB each."""

    __slots__ = ("_spares", "shared")

    def __init__(self) -> None:
        self.shared = memoryview(bytearray(SHARED_BYTES))
        self._spares: list[bytearray] = []

    def replace_shared(self) -> None:
        """Leave the shared buffer to the request that lies in it, and go on with another one."""
        self.shared = memoryview(bytearray(SHARED_BYTES))

    def begin(self, total_bytes: int) -> bytearray:
        """Return a buffer for the beginning of a frame: a spare one that has room for all, if any.

        A spare buffer takes no further memory, even if most of the frame never arrives.
        """
        fitting = [spare for spare in self._spares if len(spare) >= total_bytes]
        if not fitting:
            return self.take(min(total_bytes, FIRST_BYTES))
        best = min(fitting, key=len)
        self._remove(best)
        return best

    def take(self, minimum_bytes: int) -> bytearray:
        """Return a buffer of at least `minimum_bytes`, a spare one if there is one of this size.

        Sizes are powers of two, so that a next frame of a few bytes more fits as well.
        """
        for spare in self._spares:
            if len(spare) >= minimum_bytes:
                self._remove(spare)
                return spare
        return bytearray(max(1 << (minimum_bytes - 1).bit_length(), FIRST_BYTES))

    def _remove(self, spare: bytearray) -> None:
        self._spares = [other for other in self._spares if other is not spare]

    def give_back(self, buffer: Buffer) -> None:
        """Keep `buffer` for the next large frame, unless it is too large or there are enough."""
        if isinstance(buffer, mmap.mmap) or len(buffer) > SPARE_BYTES_MAX:
            return
        self._spares.append(buffer)
        if len(self._spares) > SPARE_COUNT_MAX:
            self._remove(min(self._spares, key=len))


class PartialFrame:
    """A frame whose bytes have not all arrived. `buffer` includes the four bytes of the size."""

    __slots__ = ("buffer", "filled_bytes", "total_bytes")

    def __init__(self, buffers: ReceiveBuffers, start: memoryview, total_bytes: int) -> None:
        self.total_bytes = total_bytes  # 0 until four bytes have arrived
        self.filled_bytes = len(start)
        self.buffer: Buffer = buffers.begin(total_bytes or 4)
        self.buffer[: self.filled_bytes] = start

    def writable(self, buffers: ReceiveBuffers) -> memoryview:
        """Return the part of the buffer for the next bytes of this frame, at most up to its end."""
        end = self.total_bytes or 4
        if self.filled_bytes == len(self.buffer) and self.filled_bytes < end:
            larger = self._larger(buffers, end)
            larger[: self.filled_bytes] = memoryview(self.buffer)
            buffers.give_back(self.buffer)
            self.buffer = larger
        return memoryview(self.buffer)[self.filled_bytes : min(end, len(self.buffer))]

    def _larger(self, buffers: ReceiveBuffers, end: int) -> Buffer:
        size_bytes = min(end, 2 * len(self.buffer))
        if size_bytes > MOVED_BYTES_MAX:
            return mmap.mmap(-1, end, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        return buffers.take(size_bytes)
