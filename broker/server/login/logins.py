"""The client's side of SASL as the settings say, with what it needs from a file or another server.

A token is read for each connection, so that whoever renews a file need tell nobody. Tickets are
kept until they end, by the machine's Kerberos library.
"""

import asyncio
import threading
from collections.abc import Callable

from broker.config.security_config import ClientSecurity
from broker.security.jwt_claims import claimed_user
from broker.server.clock import SystemClock
from common.credentials.errors import AuthenticationFailed
from common.credentials.gssapi_client import GssapiClient
from common.credentials.kerberos_context import new_initiator
from common.credentials.sasl_client import Begun, MechanismClient, OauthBearerClient, client_of
from common.credentials.tokens import NoToken, read_token

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
