"""A connection on an event loop: requests go out one behind the other, and wait side by side."""

import asyncio
import ssl
from collections import deque
from typing import cast

from common.credentials.connecting import Security, is_certificate_refused
from common.credentials.errors import AuthenticationFailed
from common.kafka.client.exchange import SIZE_BYTES, ConnectionFailed, Exchange, Steps
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.api_versions import ApiVersionsResponse


class Connection(asyncio.Protocol):
    """One connection. A request that is not answered in time closes it."""

    def __init__(self, address: tuple[str, int], client_id: str) -> None:
        """It is closed until `open` is through."""
        self.address = address
        self._exchange = Exchange(address, client_id)
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._waiting: deque[asyncio.Future[Message]] = deque()

    async def open(self, security: Security, timeout_ms: int) -> None:
        """Connect and log in; raises ConnectionFailed or KafkaError."""
        host, port = self.address
        server_hostname = None if security.tls is None else host
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._loop.create_connection(
                    lambda: self, host, port, ssl=security.tls, server_hostname=server_hostname
                )
                await self._begin(security, timeout_ms)
        except BaseException as error:
            self.close()
            if isinstance(error, OSError | ValueError):
                raise self._failure(error) from error
            raise

    @property
    def is_open(self) -> bool:
        """True until it is closed by either side."""
        return self._transport is not None

    @property
    def api_versions(self) -> ApiVersionsResponse:
        """The node's versions and features."""
        return self._exchange.api_versions

    @property
    def is_idle(self) -> bool:
        """True if no request waits for an answer."""
        return not self._waiting

    async def ask(
        self, request: Message, timeout_ms: int, max_version: int | None = None
    ) -> Message:
        """Send a request in the highest common version and wait for its answer.

        Raise ConnectionFailed, also after `timeout_ms`, or KafkaError(UNSUPPORTED_VERSION).
        """
        if self._transport is None:
            raise ConnectionFailed(f"{self._exchange} closed the connection")
        frame = self._exchange.encode(request, max_version)
        answer: asyncio.Future[Message] = self._loop.create_future()
        self._waiting.append(answer)
        self._transport.write(frame)
        timer = self._loop.call_later(timeout_ms / 1000, self._fail, "did not answer in time")
        try:
            return await answer
        finally:
            timer.cancel()

    def close(self) -> None:
        """Close it; what is under way fails."""
        self._fail("was left")

    async def _begin(self, security: Security, timeout_ms: int) -> None:
        await self._do(self._exchange.negotiate(), timeout_ms)
        if security.begin is None:
            return
        await self._do(self._exchange.choose(security.mechanism), timeout_ms)
        host = self.address[0]
        try:
            if security.waits:
                begun = await asyncio.to_thread(security.begin, host)
            else:
                begun = security.begin(host)
        except AuthenticationFailed as error:
            raise KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, str(error)) from error
        await self._do(self._exchange.log_in(begun), timeout_ms)

    async def _do(self, steps: Steps, timeout_ms: int) -> None:
        """Send each request of some steps, and give them the answers."""
        try:
            request = next(steps)
            while True:
                request = steps.send(await self.ask(request, timeout_ms))
        except StopIteration:
            return

    # --- what the loop calls ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Take every whole answer that has come."""
        received = self._received
        received += data
        begin = 0
        try:
            while len(received) - begin >= SIZE_BYTES:
                body = begin + SIZE_BYTES
                end = body + self._exchange.size_of(received[begin:body])
                if len(received) < end:
                    break
                message = self._exchange.decode(bytes(memoryview(received)[body:end]))
                answer = self._waiting.popleft()
                # Its caller may have been cancelled.
                if not answer.done():
                    answer.set_result(message)
                begin = end
        except ConnectionFailed as error:
            self._end(error)
            return
        if begin:
            del received[:begin]

    def connection_lost(self, error: Exception | None) -> None:
        """Fail what is under way."""
        self._end(ConnectionFailed(f"{self._exchange} closed the connection: {error or 'its end'}"))

    def _fail(self, reason: str) -> None:
        self._end(ConnectionFailed(f"{self._exchange} {reason}"))

    def _end(self, error: ConnectionFailed) -> None:
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()
        waiting, self._waiting = self._waiting, deque()
        for answer in waiting:
            if not answer.done():
                answer.set_exception(error)
        self._received.clear()

    def _failure(self, error: Exception) -> Exception:
        if isinstance(error, ConnectionFailed):
            return error
        if is_certificate_refused(error):
            refused = ErrorCode.SASL_AUTHENTICATION_FAILED
            return KafkaError(refused, f"{self._exchange}: TLS is refused: {error}")
        if isinstance(error, TimeoutError):
            return ConnectionFailed(f"{self._exchange} did not answer in time")
        what = "no TLS connection: " if isinstance(error, ssl.SSLError) else ""
        return ConnectionFailed(f"{self._exchange}: {what}{error}")
