"""Receive buffers: one shared by all connections, and a few spare large ones.

A connection reads into the shared buffer; only what is left of an unfinished frame moves into a
buffer of its own, which grows with the bytes that ARRIVE and never with the length a client
announces. A large one moves once more, into a mapping of its whole size, whose pages are there when
something is written to them: to double a buffer of 64 MB held the loop up for 100 ms. Handlers
finish with the bytes of a frame before they return, or hold on to them in a walk, whose connection
then neither gives its buffer back nor leaves the shared one to others: so no buffer is ever
recycled while something still refers to it.
"""

import mmap

SHARED_BYTES = 256 * 1024
SPARE_BYTES_MAX = 2 * 1024 * 1024
SPARE_COUNT_MAX = 4
FIRST_BYTES = 64 * 1024
MOVED_BYTES_MAX = 8 * 1024 * 1024
"""What has arrived is copied into a larger buffer up to here: some milliseconds."""

Buffer = bytearray | mmap.mmap


class ReceiveBuffers:
    """Hands out receive buffers; keeps up to four spares of at most 2 MiB each."""

    __slots__ = ("_spares", "shared")

    def __init__(self) -> None:
        self.shared = memoryview(bytearray(SHARED_BYTES))
        self._spares: list[bytearray] = []

    def replace_shared(self) -> None:
        """Leave the shared buffer to whoever refers to it, and go on with a new one."""
        self.shared = memoryview(bytearray(SHARED_BYTES))

    def take(self, minimum_bytes: int) -> bytearray:
        """Return a buffer of at least `minimum_bytes`, a spare one where it fits."""
        for index, spare in enumerate(self._spares):
            if len(spare) >= minimum_bytes:
                return self._spares.pop(index)
        return bytearray(max(minimum_bytes, FIRST_BYTES))

    def give_back(self, buffer: Buffer) -> None:
        """Keep `buffer` for the next large frame, unless it is too large or we have enough."""
        if isinstance(buffer, mmap.mmap):
            return
        if len(buffer) <= SPARE_BYTES_MAX and len(self._spares) < SPARE_COUNT_MAX:
            self._spares.append(buffer)


class PartialFrame:
    """A frame whose bytes have not all arrived. `buffer` includes the four bytes of the size."""

    __slots__ = ("buffer", "filled_bytes", "total_bytes")

    def __init__(self, buffers: ReceiveBuffers, start: memoryview, total_bytes: int) -> None:
        self.total_bytes = total_bytes  # 0 while fewer than four bytes are here
        self.filled_bytes = len(start)
        self.buffer: Buffer = buffers.take(min(total_bytes, FIRST_BYTES) or 4)
        self.buffer[: self.filled_bytes] = start

    def writable(self, buffers: ReceiveBuffers) -> memoryview:
        """Return where the next bytes of this frame go: at most up to its end."""
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
