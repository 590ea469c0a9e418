"""The authentication of one connection to another node: the handshake, then tokens (KIP-152)."""

import asyncio
from collections.abc import Callable

from broker.config.security_config import ClientSecurity
from broker.server.clock import random_uuid
from broker.server.login.logins import WaitingLogin, begin_login
from common.credentials.errors import AuthenticationFailed
from common.credentials.sasl_client import Begun
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from common.kafka.protocol.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

SASL_HANDSHAKE_VERSION, SASL_AUTHENTICATE_VERSION = 1, 1
Ask = Callable[[Message, int, Callable[[Message | None], None]], None]
"""Sends a request in a version; the answer is None when the connection broke."""


class LoginExchange:
    """Owns one exchange.

    `on_end` is called once with why it failed, or "". It is not called when the connection breaks,
    nor after `cancel`.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        security: ClientSecurity,
        host: str,
        ask: Ask,
        on_end: Callable[[str], None],
    ) -> None:
        self._loop = loop
        self._security = security
        self._host = host
        self._ask = ask
        self._on_end = on_end
        self._waiting: WaitingLogin | None = None
        self._begun: Begun | None = None

    def begin(self) -> None:
        """Begin, at once or when another server has answered."""
        security, nonce, host = self._security, random_uuid().hex, self._host

        def begin() -> Begun | AuthenticationFailed:
            return begin_login(security, nonce, host)

        if security.asks_others:
            self._waiting = WaitingLogin(self._loop, begin, self._on_begun)
        else:
            self._on_begun(begin())

    def cancel(self) -> None:
        """Forget another server's answer; the connection is closed."""
        if self._waiting is not None:
            self._waiting.cancel()

    def _on_begun(self, begun: Begun | AuthenticationFailed) -> None:
        if isinstance(begun, AuthenticationFailed):
            self._fail(str(begun))
            return
        self._begun = begun
        handshake = SaslHandshakeRequest(mechanism=self._security.mechanism)
        self._ask(handshake, SASL_HANDSHAKE_VERSION, self._on_handshake)

    def _on_handshake(self, answer: Message | None) -> None:
        if answer is None:
            return
        assert isinstance(answer, SaslHandshakeResponse), answer
        assert self._begun is not None
        if answer.error_code:
            self._fail("the mechanism is not enabled there")
        else:
            self._send(self._begun.first)

    def _send(self, token: bytes) -> None:
        request = SaslAuthenticateRequest(auth_bytes=token)
        self._ask(request, SASL_AUTHENTICATE_VERSION, self._on_token)

    def _on_token(self, answer: Message | None) -> None:
        if answer is None:
            return
        assert isinstance(answer, SaslAuthenticateResponse), answer
        assert self._begun is not None
        try:
            if answer.error_code:
                raise AuthenticationFailed(answer.error_message or "refused")
            token = self._begun.client.receive(bytes(answer.auth_bytes))
        except AuthenticationFailed as failed:
            self._fail(str(failed))
            return
        if token is None:
            self._on_end("")
        else:
            self._send(token)

    def _fail(self, why: str) -> None:
        user = self._security.user if self._begun is None else self._begun.client.user
        self._on_end(
            f"authentication failed mechanism={self._security.mechanism} user={user!r} "
            f"reason={why!r}"
        )
