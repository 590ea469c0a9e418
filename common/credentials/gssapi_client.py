"""The client's side of the SASL mechanism GSSAPI, which is Kerberos 5 (RFC 4752).

    state      token of the server             next state    answer
    CONTEXT    a token of the GSS context      CONTEXT       the context's next token
    CONTEXT    the last one                    OFFER         the context's last token, or empty
    OFFER      the offered layers              CHOSEN        no layer, and no authorization id
    CHOSEN     empty                           CHOSEN        none: the server has accepted

The context proves both sides to each other. `gssapi_server` has the format of offer and choice.
"""

from enum import Enum, auto
from typing import Protocol

from common.credentials.errors import AuthenticationFailed

NO_PROTECTION = 1
MAX_TOKEN_BYTES = 64 * 1024
CHOICE = bytes([NO_PROTECTION, 0, 0, 0])


class GssContext(Protocol):
    """A security context of one side. Every method raises AuthenticationFailed."""

    @property
    def is_complete(self) -> bool:
        """True if the client has proved its principal."""
        ...

    @property
    def initiator(self) -> str:
        """The client's principal, once the context is complete."""
        ...

    def step(self, token: bytes) -> bytes:
        """Return the answer to a token, which may be empty."""
        ...

    def wrap(self, message: bytes) -> bytes:
        """Return a message with a proof that it comes from this side."""
        ...

    def unwrap(self, token: bytes) -> bytes:
        """Return a message of the client."""
        ...


class State(Enum):
    """The context is under way, the server's offer is awaited, or a layer is chosen."""

    CONTEXT = auto()
    OFFER = auto()
    CHOSEN = auto()


class GssapiClient:
    """Owns one exchange."""

    def __init__(self, context: GssContext, user: str = "") -> None:
        """`user` is the client's principal, for the log; empty: that of the ticket cache."""
        self.user = user
        self._context = context
        self._state = State.CONTEXT

    def first(self) -> bytes:
        """Return the first token; it may ask the KDC. Raises AuthenticationFailed."""
        return self._context.step(b"")

    def receive(self, answer: bytes) -> bytes | None:
        """Return the next token, None when there is none; raises AuthenticationFailed."""
        if len(answer) > MAX_TOKEN_BYTES:
            raise AuthenticationFailed("the server's GSSAPI token is too long")
        match self._state:
            case State.CONTEXT:
                token = self._context.step(answer)
                if self._context.is_complete:
                    self._state = State.OFFER
                return token
            case State.OFFER:
                return self._choose(self._context.unwrap(answer))
            case State.CHOSEN:
                return None

    def _choose(self, offer: bytes) -> bytes:
        if len(offer) < len(CHOICE) or not offer[0] & NO_PROTECTION:
            raise AuthenticationFailed("the server demands a layer of GSSAPI; TLS protects here")
        self._state = State.CHOSEN
        return self._context.wrap(CHOICE)
