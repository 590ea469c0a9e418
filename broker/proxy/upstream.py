"""A connection to a broker behind the proxy: frames out, their answers in, in the same order."""

import asyncio
import logging
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, cast

from broker.server.network.later import Later
from common.kafka.client.exchange import MAX_ANSWER_BYTES
from common.process.tasks import spawn

log = logging.getLogger("millstream.faults")

CONNECT_SECONDS: Final = 10.0
MAX_UNSENT_BYTES: Final = 1 << 20
MAX_IN_FLIGHT: Final = 32
"""So many requests wait for their answers; a client that sends more waits until one has come."""
SIZE_BYTES: Final = 4
Address = tuple[str, int]


class Upstream(asyncio.Protocol):
    """Owns one connection, which it opens to the first of some addresses that answers."""

    def __init__(
        self,
        addresses: Sequence[Address],
        tls: ssl.SSLContext | None,
        on_lost: Callable[[Exception | None], None],
    ) -> None:
        """`on_lost` is called once, when the connection has ended or there is none; not after
        `close`."""
        self._addresses = addresses
        self._tls = tls
        self._on_lost: Callable[[Exception | None], None] | None = on_lost
        self._transport: asyncio.Transport | None = None
        self._unsent = bytearray()
        self._received = bytearray()
        self._waiting: deque[Later] = deque()
        self._is_full = False
        self._room: Later | None = None
        self._connecting = spawn(self._connect())

    def room(self) -> Later:
        """Return what happens when one more frame may be sent; it holds the client's connection."""
        assert self._room is None, "one request waits at a time, because it holds the connection"
        later = Later(holds=True)
        if self.has_room:
            later.done()
        else:
            self._room = later
        return later

    @property
    def has_room(self) -> bool:
        """True if one more frame may be sent."""
        is_behind = self._is_full or len(self._unsent) > MAX_UNSENT_BYTES
        return not is_behind and len(self._waiting) < MAX_IN_FLIGHT

    def _go_on(self) -> None:
        room = self._room
        if room is not None and self.has_room:
            self._room = None
            room.done()

    def send(self, frame: bytes, *, has_answer: bool = True) -> Later:
        """Send a frame without its size; the Later gets the answer's, without its size.

        A frame that `has_answer` False is done at once, with nothing.
        """
        whole = len(frame).to_bytes(SIZE_BYTES, "big") + frame
        if self._transport is None:
            self._unsent += whole
        else:
            self._transport.write(whole)
        answer = Later()
        if has_answer:
            self._waiting.append(answer)
        else:
            answer.done()
        return answer

    def close(self) -> None:
        """Close it; what waits is never answered."""
        self._on_lost = None
        self._connecting.cancel()
        if self._transport is not None:
            self._transport.abort()

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        failure: Exception = ConnectionError("no address")
        for host, port in self._addresses:
            name = None if self._tls is None else host
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    await loop.create_connection(
                        lambda: self, host, port, ssl=self._tls, server_hostname=name
                    )
                return
            except (OSError, ValueError) as error:
                log.warning(
                    "no connection to %s:%d: %s", host, port, str(error) or "it took too long"
                )
                failure = error
        self._end(failure)

    def _end(self, error: Exception | None) -> None:
        on_lost, self._on_lost = self._on_lost, None
        if on_lost is not None:
            on_lost(error)

    # --- what the loop calls ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send what has waited for it."""
        self._transport = cast("asyncio.Transport", transport)
        if self._on_lost is None:
            self._transport.abort()
            return
        unsent, self._unsent = self._unsent, bytearray()
        self._transport.write(bytes(unsent))
        self._go_on()

    def data_received(self, data: bytes) -> None:
        """Give every whole answer that has come to the request that waits longest."""
        received = self._received
        received += data
        begin = 0
        while len(received) - begin >= SIZE_BYTES:
            body = begin + SIZE_BYTES
            size = int.from_bytes(received[begin:body], "big", signed=True)
            if not SIZE_BYTES <= size <= MAX_ANSWER_BYTES or not self._waiting:
                self._refuse(size)
                return
            if len(received) < body + size:
                break
            begin = body + size
            self._waiting.popleft().done(bytes(memoryview(received)[body:begin]))
        if begin:
            del received[:begin]
            self._go_on()

    def pause_writing(self) -> None:
        """Send no more: the broker behind does not read."""
        self._is_full = True

    def resume_writing(self) -> None:
        """Send again."""
        self._is_full = False
        self._go_on()

    def connection_lost(self, error: Exception | None) -> None:
        """Tell it."""
        self._end(error)

    def _refuse(self, size: int) -> None:
        log.warning("closed: %d bytes that answer nothing, from %s", size, self._addresses)
        assert self._transport is not None
        self._transport.abort()
