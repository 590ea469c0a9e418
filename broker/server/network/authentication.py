"""The frames of a connection that has to authenticate by SASL before anything else.

Before the authentication is complete, only ApiVersions, SaslHandshake and SaslAuthenticate are
answered (`broker/security/sasl_session.py` has the table); any other request closes the connection.
After it, frames go to the dispatcher, and a client may authenticate again (KIP-368). A client whose
authentication fails gets the refusal after `connection.failed.authentication.delay.ms`, and then
its connection is closed: the delay slows down the guessing of passwords (KIP-306).
"""

import asyncio
import logging
import struct
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from broker.model import MAX_LOGGED_CHARACTERS, shortened
from broker.security.sasl_session import SaslSession
from broker.server.clock import Clock
from broker.server.network.connection import MIN_FRAME_BYTES, Connection, FrameSink
from broker.server.network.dispatch import (
    NO_RESPONSE,
    Answer,
    Handler,
    RequestContext,
    close_malformed,
    encode,
    making,
)
from broker.server.network.later import Later, Making, Steps
from broker.server.network.sending import Part
from common.credentials.errors import AuthenticationFailed
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.framing import (
    DecodeError,
    UnsupportedVersion,
    begin_request,
)
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from common.kafka.protocol.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

T = TypeVar("T")
log = logging.getLogger("millstream.authentication")

SASL_APIS = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})
FAILURE = "Authentication failed: Invalid username or password"
FAILURES = {
    "OAUTHBEARER": "Authentication failed: Invalid token",
    "GSSAPI": "Authentication failed: Invalid Kerberos ticket",
}
"""Other texts by mechanism; all say the same about every wrong login."""
MAX_REASON_CHARACTERS = 1_000
"""A reason has texts of a library, or a shortened one of a client: it must not fill the log."""
_read_api_key = struct.Struct(">h").unpack_from


class SessionLimits(NamedTuple):
    """The limits of a session: sizes of frames, delays and the longest time."""

    max_frame_bytes: int
    """The largest request after authentication."""
    failure_delay_ms: int
    """connection.failed.authentication.delay.ms"""
    max_session_ms: int
    """connections.max.reauth.ms; 0: a session never ends."""


class AuthenticatingSink:
    """Owns the authentication of one connection, and hands on its other frames."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        session: SaslSession,
        sink: FrameSink,
        limits: SessionLimits,
        clock: Clock,
        around: Callable[[Handler], Handler] = lambda handler: handler,
    ) -> None:
        """`around` puts something before the handler of SaslHandshake and SaslAuthenticate."""
        self._loop = loop
        self._handle = around(self._answer)
        self._session = session
        self._sink = sink
        self._limits = limits
        self._clock = clock
        self._ends_at_ms: int | None = None
        """When the session ends; None: never."""

    def on_frame(self, connection: Connection, frame: memoryview) -> list[Part] | Making | None:
        """Answer the requests of authentication, and all others once it is complete."""
        if not self._session.is_complete:
            return self._authenticating(connection, frame)
        if _read_api_key(frame)[0] in SASL_APIS:
            return self._sasl_request(connection, frame)
        if self._ends_at_ms is not None and self._clock.now_ms() >= self._ends_at_ms:
            self._close(connection, "the session has ended")
            return None
        return self._sink.on_frame(connection, frame)

    def _authenticating(
        self, connection: Connection, frame: memoryview
    ) -> list[Part] | Making | None:
        if self._session.has_failed:
            self._close(connection, "a request after a failed authentication")
            return None
        if self._session.takes_bare_tokens:
            return self._bare_token(connection, bytes(frame))
        if _read_api_key(frame)[0] == ApiKey.API_VERSIONS:
            return self._sink.on_frame(connection, frame)
        return self._sasl_request(connection, frame)

    def _sasl_request(
        self, connection: Connection, frame: memoryview
    ) -> list[Part] | Making | None:
        try:
            header, message = begin_request(frame)
        except UnsupportedVersion:
            self._close(connection, "an unknown request before authentication")
            return None
        except DecodeError as error:
            close_malformed(connection, error)
            return None
        if not isinstance(message, SaslHandshakeRequest | SaslAuthenticateRequest):
            self._close(connection, "a request before authentication")
            return None
        answer = self._handle(RequestContext(connection, header, header.api_version), message)
        if isinstance(answer, Message):
            return encode(header, answer)
        return None if answer is NO_RESPONSE else making(header, answer)

    def _answer(
        self, context: RequestContext, request: SaslHandshakeRequest | SaslAuthenticateRequest
    ) -> Answer | Steps[Answer]:
        if isinstance(request, SaslHandshakeRequest):
            return self._handshake(context, request)
        return self._authenticate(context.connection, request)

    def on_closed(self, connection: Connection) -> None:
        """Pass on that the connection is gone."""
        self._sink.on_closed(connection)

    def _handshake(
        self, context: RequestContext, request: SaslHandshakeRequest
    ) -> Answer | Steps[Answer]:
        connection = context.connection
        try:
            is_enabled = self._session.handshake(request.mechanism, context.api_version)
        except AuthenticationFailed as failed:
            self._close(connection, str(failed))
            return NO_RESPONSE
        answer = SaslHandshakeResponse(mechanisms=list(self._session.mechanisms))
        if is_enabled:
            if self._session.takes_bare_tokens:
                connection.min_frame_bytes = 0
            return answer
        answer.error_code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
        why = f"mechanism {shortened(request.mechanism)} is not enabled"
        return self._refused(connection, answer, why)

    def _authenticate(
        self, connection: Connection, request: SaslAuthenticateRequest
    ) -> Answer | Steps[Answer]:
        if not self._session.is_under_way:
            self._close(connection, "a SASL token without a SaslHandshake")
            return NO_RESPONSE
        try:
            answer = self._session.authenticate(bytes(request.auth_bytes))
        except AuthenticationFailed as failed:
            refusal = SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED,
                error_message=FAILURES.get(self._session.mechanism, FAILURE),
            )
            return self._refused(connection, refusal, str(failed))
        self._note(connection)
        response = SaslAuthenticateResponse(auth_bytes=answer, error_message=None)
        if self._session.is_complete:
            response.session_lifetime_ms = self._lifetime_ms()
        return response

    def _bare_token(self, connection: Connection, token: bytes) -> list[Part] | Making:
        """Answer a token that is a frame of its own, as after SaslHandshake v0 (KIP-43)."""
        try:
            answer = self._session.authenticate(token)
        except AuthenticationFailed as failed:
            # A frame that is only a token has no answer that could refuse it.
            nothing: list[Part] = []
            return self._refused(connection, nothing, str(failed))
        if not self._session.takes_bare_tokens:
            connection.min_frame_bytes = MIN_FRAME_BYTES
        self._note(connection)
        return [struct.pack(">i", len(answer)) + answer]

    def _note(self, connection: Connection) -> None:
        """Set the principal of the connection once the client has proved it."""
        principal = self._session.principal
        if self._session.is_complete and principal is not None:
            connection.peer = connection.peer._replace(
                principal=principal, is_by_token=self._session.is_by_token
            )
            connection.max_frame_bytes = self._limits.max_frame_bytes
            lifetime_ms = self._lifetime_ms()
            self._ends_at_ms = self._clock.now_ms() + lifetime_ms if lifetime_ms else None

    def _lifetime_ms(self) -> int:
        """Return how long the session lasts, at most as long as its token; 0: without limit.

        As in Kafka, a session ends with its token also if `connections.max.reauth.ms` is 0.
        """
        longest_ms, expires_at_ms = self._limits.max_session_ms, self._session.expires_at_ms
        if expires_at_ms is None:
            return longest_ms
        token_ms = max(1, expires_at_ms - self._clock.timestamp_ms())
        return min(longest_ms, token_ms) if longest_ms else token_ms

    def _refused(self, connection: Connection, refusal: T, why: str) -> Steps[T]:
        """Send a refusal after the delay, and close the connection behind it."""
        self._log("authentication failed", connection, why)
        delay = Later()
        self._loop.call_later(self._limits.failure_delay_ms / 1000, delay.done)
        yield delay
        self._loop.call_soon(connection.close)
        return refusal

    def _close(self, connection: Connection, why: str) -> None:
        self._log("closed", connection, why)
        connection.close()

    def _log(self, event: str, connection: Connection, why: str) -> None:
        log.info(
            "%s host=%s listener=%s mechanism=%s user=%r reason=%s",
            event,
            *connection.peer[:2],
            self._session.mechanism or "none",
            self._session.claimed_user[:MAX_LOGGED_CHARACTERS],
            why[:MAX_REASON_CHARACTERS],
        )
