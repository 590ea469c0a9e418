"""A connection that blocks its caller: one request at a time, each until a deadline."""

import socket
import ssl
from collections.abc import Callable

from common.credentials.connecting import Security, is_certificate_refused
from common.credentials.errors import AuthenticationFailed
from common.kafka.client.exchange import (
    SIZE_BYTES,
    ConnectionFailed,
    Exchange,
    OtherProtocol,
    Steps,
)
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.api_versions import ApiVersionsResponse

RECEIVED_BYTES = 1 << 20
"""How much is received at most by one call."""


class Connection:
    """An open connection whose versions are negotiated. `now_ms` is monotonic."""

    def __init__(
        self,
        address: tuple[str, int],
        client_id: str,
        security: Security,
        *,
        now_ms: Callable[[], int],
        deadline_ms: int,
    ) -> None:
        """Connect; raises ConnectionFailed, TimeoutError at the deadline, or KafkaError."""
        self.address = address
        self._exchange = Exchange(address, client_id)
        self._now_ms = now_ms
        try:
            self._socket = socket.create_connection(address, self._seconds_left(deadline_ms))
        except TimeoutError:
            raise
        except OSError as error:
            raise ConnectionFailed(f"{self}: {error.strerror or error}") from error
        except ValueError as error:
            raise ConnectionFailed(f"{self}: no host name: {error}") from error
        try:
            self._open(security, deadline_ms)
        except BaseException:
            self.close()
            raise

    def __str__(self) -> str:
        """Name the node by its address."""
        return str(self._exchange)

    @property
    def api_versions(self) -> ApiVersionsResponse:
        """The node's versions and features."""
        return self._exchange.api_versions

    def ask(self, request: Message, deadline_ms: int, max_version: int | None = None) -> Message:
        """Send a request in the highest common version and wait for its answer.

        `max_version` is for a request that newer versions would have to be written otherwise for.

        Raises ConnectionFailed, TimeoutError at the deadline, or KafkaError(UNSUPPORTED_VERSION)
        when the node does not know the API or the version this request needs.
        """
        frame = self._exchange.encode(request, max_version)
        try:
            self._socket.settimeout(self._seconds_left(deadline_ms))
            self._socket.sendall(frame)
        except TimeoutError:
            raise
        except OSError as error:
            raise self._failure(error) from error
        size = self._exchange.size_of(self._exactly(SIZE_BYTES, deadline_ms))
        return self._exchange.decode(self._exactly(size, deadline_ms))

    def version_of(self, api_key: ApiKey, max_version: int | None = None) -> int:
        """Give the highest common version of an API; raises KafkaError(UNSUPPORTED_VERSION)."""
        return self._exchange.version_of(api_key, max_version)

    def close(self) -> None:
        """Close it; what is under way is lost."""
        self._socket.close()

    def _open(self, security: Security, deadline_ms: int) -> None:
        if security.tls is not None:
            self._begin_tls(security.tls, deadline_ms)
        try:
            self._do(self._exchange.negotiate(), deadline_ms)
        except ConnectionFailed as error:
            if security.tls is None:
                raise OtherProtocol(error, with_tls=False) from error
            raise
        if security.begin is None:
            return
        self._do(self._exchange.choose(security.mechanism), deadline_ms)
        try:
            begun = security.begin(self.address[0])
        except AuthenticationFailed as error:
            raise KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, str(error)) from error
        except ConnectionError as error:
            raise ConnectionFailed(f"{self}: {error}") from error
        self._do(self._exchange.log_in(begun), deadline_ms)

    def _begin_tls(self, context: ssl.SSLContext, deadline_ms: int) -> None:
        self._socket.settimeout(self._seconds_left(deadline_ms))
        try:
            self._socket = context.wrap_socket(self._socket, server_hostname=self.address[0])
        except TimeoutError:
            raise
        except (OSError, ValueError) as error:
            failure = self._failure(error, "no TLS connection: ")
            if isinstance(failure, ConnectionFailed):
                raise OtherProtocol(failure, with_tls=True) from error
            raise failure from error

    def _do(self, steps: Steps, deadline_ms: int) -> None:
        """Send each request of some steps, and give them the answers."""
        try:
            request = next(steps)
            while True:
                request = steps.send(self.ask(request, deadline_ms))
        except StopIteration:
            return

    def _exactly(self, count: int, deadline_ms: int) -> bytes:
        received = bytearray()
        while len(received) < count:
            try:
                self._socket.settimeout(self._seconds_left(deadline_ms))
                chunk = self._socket.recv(min(count - len(received), RECEIVED_BYTES))
            except TimeoutError:
                raise
            except OSError as error:
                raise self._failure(error) from error
            if not chunk:
                raise ConnectionFailed(f"{self} closed the connection")
            received += chunk
        return bytes(received)

    def _failure(self, error: Exception, during: str = "") -> Exception:
        if is_certificate_refused(error):
            # It never will be accepted.
            refused = ErrorCode.SASL_AUTHENTICATION_FAILED
            return KafkaError(refused, f"{self}: TLS is refused: {error}")
        reason = getattr(error, "strerror", None) or error
        return ConnectionFailed(f"{self}: {during}{error if during else reason}")

    def _seconds_left(self, deadline_ms: int) -> float:
        left_ms = deadline_ms - self._now_ms()
        if left_ms <= 0:
            raise TimeoutError
        return left_ms / 1000
