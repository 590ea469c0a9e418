"""The requests and answers of one connection, in order. It does no IO.

A connection begins with ApiVersions; every later request goes out in the highest version both sides
know. A node that answers ApiVersions with UNSUPPORTED_VERSION is asked again in version 0, which
every node knows (KIP-511). Then comes the login, if there is one (KIP-43, KIP-152).

What takes several requests is a generator: it gives a request, and is sent the answer.
"""

from collections import deque
from collections.abc import Generator
from typing import NamedTuple

from common.credentials.errors import AuthenticationFailed
from common.credentials.sasl_client import Begun
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
SIZE_BYTES = 4
"""An answer has its size before it."""
_SOFTWARE = ("millstream", "1")

Steps = Generator[Message, Message, None]


class ConnectionFailed(ConnectionError):  # noqa: N818 - named like ConnectionError
    """The node cannot be reached, or went away, or its answer is invalid."""


class OtherProtocol(ConnectionFailed):
    """The connection ended before the first answer: the listener may have another protocol."""

    def __init__(self, failure: Exception, *, with_tls: bool) -> None:
        names = "PLAINTEXT or SASL_PLAINTEXT" if with_tls else "SSL or SASL_SSL"
        has = "speaks no TLS" if with_tls else "speaks TLS"
        super().__init__(f"{failure} (perhaps this listener {has}: security.protocol={names})")


class _Sent(NamedTuple):
    api_key: ApiKey
    version: int
    correlation_id: int


class Exchange:
    """Owns the versions of one node, and which requests wait for an answer."""

    def __init__(self, address: tuple[str, int], client_id: str) -> None:
        self.address = address
        self.api_versions = ApiVersionsResponse()
        self._client_id = client_id
        self._versions: dict[int, tuple[int, int]] = {}
        self._greeting_version = API_VERSION_RANGES[ApiKey.API_VERSIONS].max
        self._correlation_id = 0
        self._sent: deque[_Sent] = deque()

    def __str__(self) -> str:
        """Name the node by its address."""
        host, port = self.address
        return f"{host}:{port}"

    # --- single requests ---

    def version_of(self, api_key: ApiKey, max_version: int | None = None) -> int:
        """Return the highest common version of an API; raises KafkaError(UNSUPPORTED_VERSION)."""
        ours = API_VERSION_RANGES[api_key]
        lowest, highest = self._versions.get(api_key, (0, -1))
        version = min(highest, ours.max if max_version is None else max_version)
        if version < max(lowest, ours.advertised_min):
            raise _unsupported(f"{self} does not support {api_key.name}")
        return version

    def encode(self, request: Message, max_version: int | None = None) -> bytes:
        """Return the frame of a request, in the highest common version up to `max_version`.

        Raise KafkaError(UNSUPPORTED_VERSION) if the node does not know the API, or no version with
        a field that is set.
        """
        api_key = ApiKey(request.__api_key__)
        if api_key is ApiKey.API_VERSIONS:
            version = self._greeting_version
        else:
            version = self.version_of(api_key, max_version)
        number = self._correlation_id + 1
        try:
            frame = encode_request(api_key, version, number, self._client_id, request)
        except EncodeError as error:
            raise _unsupported(f"{self} does not support what is asked: {error}") from error
        self._correlation_id = number & 0x7FFFFFFF
        self._sent.append(_Sent(api_key, version, number))
        return frame

    def size_of(self, start: bytes | bytearray) -> int:
        """Return the size of an answer from the four bytes before it; raises ConnectionFailed."""
        size = int.from_bytes(start, "big", signed=True)
        if not SIZE_BYTES <= size <= MAX_ANSWER_BYTES:
            raise ConnectionFailed(f"{self}: an answer of {size} bytes is none of Kafka's")
        return size

    def decode(self, frame: bytes) -> Message:
        """Return the answer to the request that waits longest; raises ConnectionFailed."""
        if not self._sent:
            raise ConnectionFailed(f"{self}: the answer belongs to no request")
        api_key, version, number = self._sent.popleft()
        if api_key is ApiKey.API_VERSIONS and _error_code(frame) == ErrorCode.UNSUPPORTED_VERSION:
            # A node that does not know the version answers in version 0, whatever was asked.
            version = self._greeting_version = 0
        try:
            correlation_id, answer = decode_response(api_key, version, frame)
        except DecodeError as error:
            raise ConnectionFailed(f"{self}: {error}") from error
        if correlation_id != number:
            raise ConnectionFailed(f"{self}: the answer belongs to another request")
        return answer

    # --- the beginning of a connection ---

    def negotiate(self) -> Steps:
        """Ask for the node's versions; raises ConnectionFailed."""
        name, version = _SOFTWARE
        answer = yield ApiVersionsRequest(
            client_software_name=name, client_software_version=version
        )
        assert isinstance(answer, ApiVersionsResponse)
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            answer = yield ApiVersionsRequest()
            assert isinstance(answer, ApiVersionsResponse)
        if answer.error_code:
            raise ConnectionFailed(f"{self}: ApiVersions failed with {answer.error_code}")
        self.api_versions = answer
        self._versions = {
            entry.api_key: (entry.min_version, entry.max_version) for entry in answer.api_keys
        }

    def choose(self, mechanism: str) -> Steps:
        """Choose a mechanism of SASL; raises KafkaError if the node does not enable it."""
        answer = yield SaslHandshakeRequest(mechanism=mechanism)
        assert isinstance(answer, SaslHandshakeResponse)
        if answer.error_code:
            enabled = ", ".join(answer.mechanisms)
            raise KafkaError(
                ErrorCode(answer.error_code),
                f"{self} does not enable {mechanism}; there are: {enabled}",
            )

    def log_in(self, begun: Begun) -> Steps:
        """Authenticate; raises KafkaError when that is refused, and ConnectionFailed."""
        token: bytes | None = begun.first
        while token is not None:
            answer = yield SaslAuthenticateRequest(auth_bytes=token)
            assert isinstance(answer, SaslAuthenticateResponse)
            if answer.error_code:
                raise KafkaError(ErrorCode(answer.error_code), answer.error_message)
            try:
                token = begun.client.receive(bytes(answer.auth_bytes))
            except AuthenticationFailed as error:
                raise ConnectionFailed(f"{self}: {error}") from error


def parse_addresses(text: str, default_port: int | None = None) -> tuple[tuple[str, int], ...]:
    """Parse `host:port,host:port`, where an IPv6 host stands in brackets.

    Raise KafkaError(INVALID_CONFIG), also for an address without a port if there is no default.
    """
    addresses = []
    for part in filter(None, map(str.strip, text.split(","))):
        host, colon, port = part.rpartition(":")
        if default_port is not None and (not colon or part.endswith("]")):
            host, colon, port = part, ":", str(default_port)
        if not (colon and host and port.isdecimal()):
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"Invalid url in bootstrap.servers: {part} (it should be host:port)",
            )
        addresses.append((host.strip("[]"), int(port)))
    if not addresses:
        raise KafkaError(ErrorCode.INVALID_CONFIG, "No bootstrap urls given in bootstrap.servers")
    return tuple(addresses)


def _error_code(frame: bytes) -> int:
    """Return the error code of an ApiVersions answer, whatever its version."""
    return int.from_bytes(frame[4:6], "big", signed=True)


def _unsupported(message: str) -> KafkaError:
    return KafkaError(ErrorCode.UNSUPPORTED_VERSION, message)
