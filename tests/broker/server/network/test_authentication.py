"""The frames of a connection that authenticates: what is answered, passed on and refused."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from broker.security.plain import PlainServer
from broker.security.sasl_session import SaslSession
from broker.server.network.authentication import AuthenticatingSink, SessionLimits
from broker.server.network.connection import Peer
from broker.server.network.later import Later
from common.kafka.errors import ErrorCode
from common.kafka.protocol.framing import decode_response, encode_request
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.api_versions import ApiVersionsRequest
from common.kafka.protocol.messages.metadata import MetadataRequest
from common.kafka.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from common.kafka.protocol.messages.sasl_handshake import SaslHandshakeRequest

RIGHT, WRONG = b"\0alice\0a", b"\0alice\0b"
HANDSHAKE = SaslHandshakeRequest(mechanism="PLAIN")


class Client:
    """A connection's other end, with everything that the sink works on in its hands."""

    def __init__(self, max_session_ms: int = 0, expires_at_ms: int | None = None) -> None:
        self.passed_on: list[bytes] = []
        self.later: list[tuple[float, Any]] = []
        self.now = 0.0
        self.is_closed = False
        self.connection: Any = SimpleNamespace(
            peer=Peer("127.0.0.1", "SASL"),
            max_frame_bytes=1000,
            min_frame_bytes=8,
            close=self._close,
        )
        loop: Any = SimpleNamespace(
            call_later=lambda seconds, call: self.later.append((seconds, call)),
            call_soon=lambda call: self.later.append((0.0, call)),
        )
        sink: Any = SimpleNamespace(on_frame=self._take)

        def server(_: str) -> PlainServer:
            made = PlainServer({"alice": "a", "bob": "b"})
            made.expires_at_ms = expires_at_ms
            return made

        session = SaslSession(["PLAIN"], server)
        limits = SessionLimits(5000, 100, max_session_ms)
        clock: Any = SimpleNamespace(
            now_ms=lambda: int(self.now * 1_000), timestamp_ms=lambda: int(self.now * 1_000)
        )
        self._sink = AuthenticatingSink(loop, session, sink, limits, clock)

    def _close(self) -> None:
        self.is_closed = True

    def _take(self, connection: object, frame: memoryview) -> list[bytes]:
        self.passed_on.append(bytes(frame))
        return [b"passed on"]

    def send(self, frame: bytes) -> Any:
        """Return the answer's bytes, or the generator that makes them."""
        answer = self._sink.on_frame(self.connection, memoryview(frame))
        return b"".join(answer) if isinstance(answer, list) else answer  # type: ignore[arg-type]

    def ask(self, request: Message, version: int = 1) -> Any:
        key = request.__api_key__
        answer = self.send(encode_request(key, version, 7, "client", request)[4:])
        return decode_response(key, version, answer[4:])[1] if isinstance(answer, bytes) else answer

    def authenticate(self, token: bytes = RIGHT) -> Any:
        self.ask(HANDSHAKE)
        return self.ask(SaslAuthenticateRequest(auth_bytes=token))

    def refusal(self, steps: Iterator[Any], request: Message) -> Any:
        """Run a refusal to its end: it waits for its delay, and then it closes."""
        assert isinstance(next(steps), Later)
        (delay, _) = self.later.pop()
        assert delay == 0.1
        with pytest.raises(StopIteration) as done:
            next(steps)
        assert not self.is_closed
        self.later.pop()[1]()
        assert self.is_closed
        parts = b"".join(done.value.value)
        return decode_response(request.__api_key__, 1, parts[4:])[1]


def test_a_client_that_authenticates_has_its_principal_and_is_passed_on() -> None:
    client = Client()
    assert client.ask(HANDSHAKE).mechanisms == ["PLAIN"]
    assert client.connection.peer.principal == "User:ANONYMOUS"
    answer = client.ask(SaslAuthenticateRequest(auth_bytes=RIGHT))
    assert (answer.error_code, answer.session_lifetime_ms) == (0, 0)
    assert client.connection.peer == Peer("127.0.0.1", "SASL", "User:alice")
    assert client.connection.max_frame_bytes == 5000
    frame = encode_request(3, 9, 7, "c", MetadataRequest(topics=[]))[4:]
    assert client.send(frame) == b"passed on"
    assert client.passed_on == [frame]


def test_before_that_only_api_versions_are_passed_on() -> None:
    client = Client()
    frame = encode_request(18, 3, 7, "c", ApiVersionsRequest())[4:]
    assert client.send(frame) == b"passed on"
    assert client.send(encode_request(3, 9, 7, "c", MetadataRequest(topics=[]))[4:]) is None
    assert client.is_closed
    assert client.passed_on == [frame]


def test_a_wrong_password_is_told_after_the_delay() -> None:
    client = Client()
    steps = client.authenticate(WRONG)
    answer = client.refusal(steps, SaslAuthenticateRequest())
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert client.connection.peer.principal == "User:ANONYMOUS"


def test_nothing_is_answered_after_a_failure() -> None:
    client = Client()
    next(client.authenticate(WRONG))
    assert client.ask(HANDSHAKE) is None
    assert client.is_closed


def test_a_mechanism_that_is_not_enabled_is_told_with_those_that_are() -> None:
    client = Client()
    request = SaslHandshakeRequest(mechanism="GSSAPI")
    answer = client.refusal(client.ask(request), request)
    assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert answer.mechanisms == ["PLAIN"]


def test_tokens_after_the_old_handshake_are_bare_frames() -> None:
    client = Client()
    client.ask(HANDSHAKE, 0)
    assert client.connection.min_frame_bytes == 0
    assert client.send(RIGHT) == b"\0\0\0\0"
    assert client.connection.min_frame_bytes == 8
    assert client.connection.peer.principal == "User:alice"


def test_a_wrong_bare_token_closes_after_the_delay_without_an_answer() -> None:
    client = Client()
    client.ask(HANDSHAKE, 0)
    steps = client.send(WRONG)
    assert isinstance(next(steps), Later)
    assert client.later.pop()[0] == 0.1
    with pytest.raises(StopIteration) as done:
        next(steps)
    assert done.value.value == []
    assert not client.is_closed
    client.later.pop()[1]()
    assert client.is_closed


def test_what_a_stranger_sends_is_short_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="millstream.authentication"):
        next(Client().ask(SaslHandshakeRequest(mechanism="\x01" * 32_000)))
        user = b"\0" + b"\x01" * 4_000 + b"\0p"
        next(Client().authenticate(user))
        old = Client()
        old.ask(HANDSHAKE, 0)
        next(old.send(b"\xff" * 30_000))
    assert len(caplog.messages) == 3
    assert max(map(len, caplog.messages)) < 2_000


@pytest.mark.parametrize(
    "frame",
    [
        encode_request(36, 1, 7, "c", SaslAuthenticateRequest(auth_bytes=RIGHT))[4:],
        b"\0\x11\0\x09\0\0\0\1",  # SaslHandshake in a version that does not exist
        b"\0\x11\0\x01\0\0\0\1\0\1c\xff\xff",
        b"\x7f\xff\0\0\0\0\0\1",
    ],
)
def test_other_frames_before_authentication_close(frame: bytes) -> None:
    client = Client()
    assert client.send(frame) is None
    assert client.is_closed


def test_a_session_ends_and_can_be_renewed_before() -> None:
    client = Client(max_session_ms=1000)
    assert client.authenticate().session_lifetime_ms == 1000
    frame = encode_request(3, 9, 7, "c", MetadataRequest(topics=[]))[4:]
    client.now = 0.9
    assert client.authenticate().error_code == 0
    client.now = 1.8
    assert client.send(frame) == b"passed on"
    client.now = 1.9
    assert client.send(frame) is None
    assert client.is_closed


@pytest.mark.parametrize(
    ("max_session_ms", "expires_at_ms", "lifetime_ms"),
    [(0, 500, 500), (1_000, 500, 500), (300, 500, 300), (0, -20_000, 1)],
)
def test_a_session_ends_with_the_token_that_began_it(
    max_session_ms: int, expires_at_ms: int, lifetime_ms: int
) -> None:
    """As in Kafka, also if `connections.max.reauth.ms` is 0."""
    client = Client(max_session_ms, expires_at_ms)
    assert client.authenticate().session_lifetime_ms == lifetime_ms
    frame = encode_request(3, 9, 7, "c", MetadataRequest(topics=[]))[4:]
    assert client.send(frame) == b"passed on"
    client.now = lifetime_ms / 1_000
    assert client.send(frame) is None
    assert client.is_closed


def test_a_session_is_renewed_by_its_own_user_only() -> None:
    client = Client(max_session_ms=1000)
    client.authenticate()
    steps = client.authenticate(b"\0bob\0b")
    answer = client.refusal(steps, SaslAuthenticateRequest())
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
