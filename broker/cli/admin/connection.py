"""One connection to one node: requests and answers, one after the other.

The first exchange is ApiVersions; every later request goes out in the highest version both sides
know. A node that answers ApiVersions with UNSUPPORTED_VERSION is asked again in version 0, which
every node knows (KIP-511).
"""

import socket
import ssl

from broker.cli.admin.settings import AdminSettings
from broker.config.security_config import ClientSecurity
from broker.security.errors import AuthenticationFailed
from broker.server.clock import Clock, random_uuid
from broker.server.network.logins import begin_login
from broker.server.network.tls_contexts import make_client_context
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.api_keys import API_VERSION_RANGES, ApiKey
from common.kafka.protocol.framing import DecodeError, EncodeError, decode_response, encode_request
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from common.kafka.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from common.kafka.protocol.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

MAX_ANSWER_BYTES = 256 * 1024 * 1024


class ConnectionFailed(Exception):  # noqa: N818 -- what happened, as ConnectionError says it
    """The node cannot be reached, or went away, or says what nobody understands."""


class Connection:
    """An open connection whose versions are negotiated."""

    def __init__(
        self, address: tuple[str, int], settings: AdminSettings, clock: Clock, deadline_ms: int
    ) -> None:
        self.address = address
        self._client_id = settings.client_id
        self._clock = clock
        self._correlation_id = 0
        try:
            self._socket = socket.create_connection(address, self._seconds_left(deadline_ms))
        except OSError as error:
            raise ConnectionFailed(f"{self}: {error.strerror or error}") from error
        except ValueError as error:
            raise ConnectionFailed(f"{self}: no host name: {error}") from error
        try:
            self._secure(settings.security, deadline_ms)
            self.api_versions = self._negotiate(deadline_ms)
        except BaseException:
            self.close()
            raise
        self._versions = {
            entry.api_key: (entry.min_version, entry.max_version)
            for entry in self.api_versions.api_keys
        }
        if settings.security.protocol.uses_sasl:
            try:
                self._authenticate(settings.security, deadline_ms)
            except BaseException:
                self.close()
                raise

    def __str__(self) -> str:
        """Name the node by its address."""
        host, port = self.address
        return f"{host}:{port}"

    def ask(self, request: Message, deadline_ms: int, max_version: int | None = None) -> Message:
        """Send a request in the highest common version and wait for its answer.

        `max_version` is for a request that newer versions would have to be written otherwise for.

        Raises ConnectionFailed, TimeoutError at the deadline, or KafkaError(UNSUPPORTED_VERSION)
        when the node does not know the API or the version this request needs.
        """
        api_key = ApiKey(request.__api_key__)
        version = self.version_of(api_key, max_version)
        try:
            return self._exchange(api_key, version, request, deadline_ms)
        except EncodeError as error:
            # A field that is set and that the highest common version does not have.
            raise unsupported(f"{self} does not support what is asked: {error}") from error

    def version_of(self, api_key: ApiKey, max_version: int | None = None) -> int:
        """Give the highest common version of an API; raises KafkaError(UNSUPPORTED_VERSION)."""
        ours = API_VERSION_RANGES[api_key]
        lowest, highest = self._versions.get(api_key, (0, -1))
        version = min(highest, ours.max if max_version is None else max_version)
        if version < max(lowest, ours.advertised_min):
            raise unsupported(f"{self} does not support {api_key.name}")
        return version

    def close(self) -> None:
        """Close it; what is under way is lost."""
        self._socket.close()

    def _secure(self, security: ClientSecurity, deadline_ms: int) -> None:
        """Begin TLS, if the listener speaks it."""
        if not security.protocol.uses_tls:
            return
        context = make_client_context(security)
        self._socket.settimeout(self._seconds_left(deadline_ms))
        try:
            self._socket = context.wrap_socket(self._socket, server_hostname=self.address[0])
        except TimeoutError:
            raise
        except (OSError, ValueError) as error:
            _raise_if_refused(self, error)
            raise ConnectionFailed(f"{self}: no TLS connection: {error}") from error

    def _authenticate(self, security: ClientSecurity, deadline_ms: int) -> None:
        """Authenticate by SASL (KIP-43, KIP-152); raises KafkaError when that is refused."""
        handshake = self.ask(SaslHandshakeRequest(mechanism=security.mechanism), deadline_ms)
        assert isinstance(handshake, SaslHandshakeResponse)
        if handshake.error_code:
            enabled = ", ".join(handshake.mechanisms)
            raise KafkaError(
                ErrorCode(handshake.error_code),
                f"{self} does not enable {security.mechanism}; there are: {enabled}",
            )
        begun = begin_login(security, random_uuid().hex, self.address[0])
        if isinstance(begun, AuthenticationFailed):
            raise KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, str(begun)) from begun
        token: bytes | None = begun.first
        while token is not None:
            answer = self.ask(SaslAuthenticateRequest(auth_bytes=token), deadline_ms)
            assert isinstance(answer, SaslAuthenticateResponse)
            if answer.error_code:
                raise KafkaError(ErrorCode(answer.error_code), answer.error_message)
            try:
                token = begun.client.receive(bytes(answer.auth_bytes))
            except AuthenticationFailed as error:
                raise ConnectionFailed(f"{self}: {error}") from error

    def _negotiate(self, deadline_ms: int) -> ApiVersionsResponse:
        request = ApiVersionsRequest(
            client_software_name="millstream-admin", client_software_version="1"
        )
        highest = API_VERSION_RANGES[ApiKey.API_VERSIONS].max
        # A node that does not know the version answers in version 0, whatever was asked.
        self._send(ApiKey.API_VERSIONS, highest, request, deadline_ms)
        frame = self._receive(deadline_ms)
        if int.from_bytes(frame[4:6], "big", signed=True) == ErrorCode.UNSUPPORTED_VERSION:
            answer = self._exchange(ApiKey.API_VERSIONS, 0, ApiVersionsRequest(), deadline_ms)
        else:
            answer = self._decode(ApiKey.API_VERSIONS, highest, frame)
        assert isinstance(answer, ApiVersionsResponse)
        if answer.error_code:
            raise ConnectionFailed(f"{self}: ApiVersions failed with {answer.error_code}")
        return answer

    def _exchange(
        self, api_key: ApiKey, version: int, request: Message, deadline_ms: int
    ) -> Message:
        self._send(api_key, version, request, deadline_ms)
        return self._decode(api_key, version, self._receive(deadline_ms))

    def _send(self, api_key: ApiKey, version: int, request: Message, deadline_ms: int) -> None:
        self._correlation_id += 1
        frame = encode_request(api_key, version, self._correlation_id, self._client_id, request)
        try:
            self._socket.settimeout(self._seconds_left(deadline_ms))
            self._socket.sendall(frame)
        except TimeoutError:
            raise
        except OSError as error:
            _raise_if_refused(self, error)
            raise ConnectionFailed(f"{self}: {error.strerror or error}") from error

    def _receive(self, deadline_ms: int) -> bytes:
        size = int.from_bytes(self._exactly(4, deadline_ms), "big", signed=True)
        if not 4 <= size <= MAX_ANSWER_BYTES:
            raise ConnectionFailed(f"{self}: an answer of {size} bytes is none of Kafka's")
        return self._exactly(size, deadline_ms)

    def _decode(self, api_key: ApiKey, version: int, frame: bytes) -> Message:
        try:
            correlation_id, answer = decode_response(api_key, version, frame)
        except DecodeError as error:
            raise ConnectionFailed(f"{self}: {error}") from error
        if correlation_id != self._correlation_id:
            raise ConnectionFailed(f"{self}: the answer belongs to another request")
        return answer

    def _exactly(self, count: int, deadline_ms: int) -> bytes:
        received = bytearray()
        while len(received) < count:
            try:
                self._socket.settimeout(self._seconds_left(deadline_ms))
                chunk = self._socket.recv(min(count - len(received), 1 << 20))
            except TimeoutError:
                raise
            except OSError as error:
                _raise_if_refused(self, error)
                raise ConnectionFailed(f"{self}: {error.strerror or error}") from error
            if not chunk:
                raise ConnectionFailed(f"{self} closed the connection")
            received += chunk
        return bytes(received)

    def _seconds_left(self, deadline_ms: int) -> float:
        left_ms = deadline_ms - self._clock.now_ms()
        if left_ms <= 0:
            raise TimeoutError
        return left_ms / 1000


def _raise_if_refused(connection: Connection, error: Exception) -> None:
    """Raise KafkaError if a side does not accept the other's certificate: it never will."""
    is_alert = isinstance(error, ssl.SSLError) and "ALERT" in (error.reason or "")
    if is_alert or isinstance(error, ssl.SSLCertVerificationError):
        raise KafkaError(
            ErrorCode.SASL_AUTHENTICATION_FAILED, f"{connection}: TLS is refused: {error}"
        ) from error


def unsupported(message: str) -> KafkaError:
    """Return the refusal of what a node is too old for."""
    return KafkaError(ErrorCode.UNSUPPORTED_VERSION, message)
