"""What a connection may ask before it has authenticated by SASL (KIP-43, KIP-152, KIP-368).

    state          request                     next state        answer
    INITIAL        ApiVersions                 INITIAL           as always
    INITIAL        SaslHandshake               AUTHENTICATING    the enabled mechanisms
    INITIAL        SaslHandshake, unknown      FAILED            UNSUPPORTED_SASL_MECHANISM
    AUTHENTICATING token                       AUTHENTICATING    the mechanism's next token
    AUTHENTICATING last token                  COMPLETE          the mechanism's last token
    AUTHENTICATING wrong token                 FAILED            SASL_AUTHENTICATION_FAILED
    COMPLETE       SaslHandshake               AUTHENTICATING    re-authentication (KIP-368)
    any            anything else               FAILED            the connection is closed

After SaslHandshake v1 tokens come in SaslAuthenticate requests; after v0 as bare frames. A session
that re-authenticates keeps its mechanism and its principal.
"""

from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import NoReturn, Protocol

from common.credentials.errors import AuthenticationFailed


class State(Enum):
    """How far a connection is; the module has the table."""

    INITIAL = auto()
    AUTHENTICATING = auto()
    COMPLETE = auto()
    FAILED = auto()


class MechanismServer(Protocol):
    """The server's side of one SASL mechanism."""

    user: str
    claimed_user: str
    """The user that the client says it is, for the log: it proves nothing. Empty: not known yet."""
    is_by_token: bool
    """True if a delegation token stands for the user."""
    expires_at_ms: int | None
    """When the proof expires, in milliseconds since 1970; None: never."""

    @property
    def is_complete(self) -> bool:
        """Whether the client has proved who it is."""
        ...

    def receive(self, message: bytes) -> bytes:
        """Return the answer to one token; raises AuthenticationFailed."""
        ...


class SaslSession:
    """Owns the authentication of one connection.

    Invariant: `principal` is set exactly when an exchange has been completed once.
    """

    def __init__(
        self, mechanisms: Sequence[str], make_server: Callable[[str], MechanismServer]
    ) -> None:
        self.mechanisms = mechanisms
        self._make_server = make_server
        self._server: MechanismServer | None = None
        self.mechanism = ""
        self.state = State.INITIAL
        self.takes_bare_tokens = False
        """Whether the next frame is a token by itself."""
        self.principal: str | None = None
        self.is_by_token = False
        self.expires_at_ms: int | None = None

    @property
    def claimed_user(self) -> str:
        """The user that the client says it is in the exchange under way; it proves nothing."""
        return "" if self._server is None else self._server.claimed_user

    @property
    def is_complete(self) -> bool:
        """Whether the client has authenticated, and does not just now do so again."""
        return self.state is State.COMPLETE

    @property
    def is_under_way(self) -> bool:
        """Whether a token is expected."""
        return self.state is State.AUTHENTICATING

    @property
    def has_failed(self) -> bool:
        """Whether authentication failed: nothing else is accepted."""
        return self.state is State.FAILED

    def handshake(self, mechanism: str, api_version: int) -> bool:
        """Choose a mechanism; return False if it is not enabled. Raises AuthenticationFailed."""
        if self.state not in {State.INITIAL, State.COMPLETE}:
            self._fail("a SaslHandshake within an authentication")
        if mechanism not in self.mechanisms:
            self.state = State.FAILED
            return False
        if self.principal is not None and mechanism != self.mechanism:
            self._fail("a re-authentication with another mechanism")
        self.mechanism = mechanism
        self._server = self._make_server(mechanism)
        self.takes_bare_tokens = api_version == 0
        self.state = State.AUTHENTICATING
        return True

    def authenticate(self, token: bytes) -> bytes:
        """Return the answer to a token; raises AuthenticationFailed."""
        if self.state is not State.AUTHENTICATING or self._server is None:
            self._fail("a SASL token without a SaslHandshake")
        try:
            answer = self._server.receive(token)
        except AuthenticationFailed:
            self.state = State.FAILED
            raise
        if self._server.is_complete:
            self._complete(self._server)
        return answer

    def _complete(self, server: MechanismServer) -> None:
        principal = f"User:{server.user}"
        if self.principal not in {None, principal}:
            self._fail("a re-authentication as another principal")
        self.principal = principal
        self.is_by_token, self.expires_at_ms = server.is_by_token, server.expires_at_ms
        self.state = State.COMPLETE
        self.takes_bare_tokens = False
        self._server = None

    def _fail(self, why: str) -> NoReturn:
        self.state = State.FAILED
        raise AuthenticationFailed(why)
