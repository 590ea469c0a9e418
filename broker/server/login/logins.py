"""The client's side of SASL as the settings say, with what it needs from a file or another server.

A token is read for each connection, so that whoever renews a file need tell nobody. Tickets are
kept until they end, by the machine's Kerberos library.

A connection to another node is authenticated by a handshake and then tokens (KIP-152).
"""

import asyncio
import threading
from collections.abc import Callable

from broker.config.security_config import ClientSecurity
from broker.security.jwt_claims import claimed_user
from broker.server.clock import SystemClock, random_uuid
from common.credentials.errors import AuthenticationFailed
from common.credentials.gssapi_client import GssapiClient
from common.credentials.kerberos_context import new_initiator
from common.credentials.sasl_client import Begun, MechanismClient, OauthBearerClient, client_of
from common.credentials.tokens import NoToken, read_token
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from common.kafka.protocol.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

MAX_WAITING = 16
"""How many logins of this process may wait for another server."""


def login_of(security: ClientSecurity, nonce: str, host: str) -> MechanismClient:
    """Return the client's side of a mechanism, for a server on `host`.

    Raises AuthenticationFailed if there is no token or no key. It waits if `security.asks_others`.
    """
    if security.oauth is not None:
        try:
            token = read_token(security.oauth, SystemClock().timestamp_ms() / 1_000)
        except NoToken as error:
            raise AuthenticationFailed(str(error)) from error
        return OauthBearerClient(token.text, claimed_user(token.text))
    if security.kerberos is not None:
        return GssapiClient(new_initiator(security.kerberos, host), security.kerberos.principal)
    return client_of(
        security.mechanism, security.user, security.password, nonce, is_token=security.is_token
    )


def begin_login(security: ClientSecurity, nonce: str, host: str) -> "Begun | AuthenticationFailed":
    """Begin an exchange, or return why there is none. It waits if `security.asks_others`."""
    try:
        client = login_of(security, nonce, host)
        return Begun(client, client.first())
    except AuthenticationFailed as failed:
        return failed


class WaitingLogin:
    """Begins an exchange in a thread of its own, because that waits for another server.

    `on_begun` is called once, on the loop, unless `cancel` is called first.
    """

    _places = threading.BoundedSemaphore(MAX_WAITING)

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        begin: Callable[[], "Begun | AuthenticationFailed"],
        on_begun: Callable[["Begun | AuthenticationFailed"], None],
    ) -> None:
        self._loop = loop
        self._begin = begin
        self._on_begun = on_begun
        self._is_cancelled = False
        if not self._places.acquire(blocking=False):
            failed = AuthenticationFailed(f"{MAX_WAITING} logins wait for another server already")
            loop.call_soon(self._end, failed)
            return
        # Not a thread of the loop's pool: the end of the process would wait for it.
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        try:
            begun = self._begin()
        finally:
            self._places.release()
        try:
            self._loop.call_soon_threadsafe(self._end, begun)
        except RuntimeError:  # The loop has ended meanwhile.
            return

    def _end(self, begun: "Begun | AuthenticationFailed") -> None:
        if not self._is_cancelled:
            self._on_begun(begun)

    def cancel(self) -> None:
        """Forget it; the thread ends by itself."""
        self._is_cancelled = True


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
