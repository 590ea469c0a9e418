"""The server's side of the SASL mechanism GSSAPI, which is Kerberos 5 (RFC 4752).

    state      token of the client             next state    answer
    CONTEXT    a token of the GSS context      CONTEXT       the context's next token
    CONTEXT    the last one, with an answer    OFFER         the context's last token
    CONTEXT    the last one, without           CHOICE        the offer
    OFFER      empty                           CHOICE        the offer
    CHOICE     the chosen layer and the user   DONE          empty

The offer and the choice are one byte of layers, three bytes of size, and behind the choice an
authorization id, all wrapped by the context. There is one layer, 1: no protection of what follows;
that is what TLS is for.

The user is always the short name of the client's own principal (`kerberos_names`). An authorization
id has no effect: aiokafka and kafka-python send the name of the service there.
"""

from collections.abc import Callable
from enum import Enum, auto
from typing import NoReturn

from common.credentials.errors import AuthenticationFailed
from common.credentials.gssapi_client import MAX_TOKEN_BYTES, NO_PROTECTION, GssContext

OFFER = bytes([NO_PROTECTION, 0, 0, 0])


class State(Enum):
    """What the server expects next: a token of the context, an empty message or the choice."""

    CONTEXT = auto()
    OFFER = auto()
    CHOICE = auto()
    DONE = auto()


class GssapiServer:
    """Owns one exchange. `user` is set, and the client authenticated, when `is_complete`."""

    def __init__(self, context: GssContext, short_name: Callable[[str], str]) -> None:
        """`short_name` returns the user of a principal; it raises ValueError for one without."""
        self._context = context
        self._short_name = short_name
        self._state = State.CONTEXT
        self.user = ""
        self.claimed_user = ""
        self.is_by_token = False
        self.expires_at_ms: int | None = None

    @property
    def is_complete(self) -> bool:
        """True if the client has proved who it is."""
        return self._state is State.DONE

    def receive(self, message: bytes) -> bytes:
        """Return the answer to one token; raises AuthenticationFailed."""
        if len(message) > MAX_TOKEN_BYTES:
            self._fail("the GSSAPI token is too long")
        match self._state:
            case State.CONTEXT:
                return self._step(message)
            case State.OFFER:
                return self._offer(message)
            case State.CHOICE:
                return self._choose(self._context.unwrap(message))
            case State.DONE:
                raise AuthenticationFailed("the GSSAPI exchange is complete")

    def _step(self, token: bytes) -> bytes:
        answer = self._context.step(token)
        if self._context.is_complete:
            self.claimed_user = self._context.initiator
            self._state = State.OFFER
            if not answer:
                return self._offer(b"")
        return answer

    def _offer(self, token: bytes) -> bytes:
        if token:
            self._fail("expected an empty token")
        self._state = State.CHOICE
        return self._context.wrap(OFFER)

    def _choose(self, choice: bytes) -> bytes:
        if len(choice) < len(OFFER) or choice[0] != NO_PROTECTION:
            self._fail("the client chose a layer that was not offered")
        try:
            self.user = self._short_name(self._context.initiator)
        except ValueError as error:
            self._fail(str(error))
        self._state = State.DONE
        return b""

    def _fail(self, why: str) -> NoReturn:
        raise AuthenticationFailed(why)
