"""The server's side of OAUTHBEARER (RFC 7628, KIP-255).

    state      message                             next state   answer
    FIRST      client-first-message, valid token   DONE         empty
    FIRST      client-first-message, bad token     REFUSED      {"status": "invalid_token"}
    REFUSED    anything; a client sends %x01       (ends)       AuthenticationFailed
    any        anything that is wrong              (ends)       AuthenticationFailed

The first message is `n,[a=AUTHZID],^Aauth=Bearer TOKEN^A[KEY=VALUE^A...]^A`, where ^A is %x01. An
authorization id is the token's own user.
"""

import re
from collections.abc import Callable
from enum import Enum, auto
from typing import NamedTuple

from common.credentials.errors import AuthenticationFailed
from common.credentials.sasl_client import SEPARATOR

MAX_TOKEN_LENGTH = 64 * 1024
REFUSAL = b'{"status":"invalid_token"}'
_KEY = re.compile(r"[A-Za-z]+")
_VALUE = re.compile(r"[\x21-\x7E \t\r\n]*")


class InvalidToken(Exception):  # noqa: N818 - a refusal by the name that RFC 6750 gives it
    """A token that proves nothing. The message goes to the log, never to the client."""


class TokenClaims(NamedTuple):
    """The proved content of a token."""

    user: str
    expires_at_ms: int
    scopes: frozenset[str] = frozenset()


ValidateToken = Callable[[str], TokenClaims]
"""Returns the claims of a token; raises InvalidToken."""


def nobody(token: str) -> str:
    """Return the empty text: nothing is read out of a token that is not proved."""
    return ""


class State(Enum):
    """What the server expects next: a first message, or the end after a refusal, or nothing."""

    FIRST = auto()
    REFUSED = auto()
    DONE = auto()


class OauthBearerServer:
    """Owns one exchange. `user` is set, and the client authenticated, when `is_complete`."""

    def __init__(
        self, validate: ValidateToken, claimed_user: Callable[[str], str] = nobody
    ) -> None:
        """`claimed_user` returns the user in a token without any proof, for the log."""
        self._validate = validate
        self._claimed_user = claimed_user
        self._state = State.FIRST
        self._refused = ""
        self.user = ""
        self.claimed_user = ""
        self.is_by_token = False
        """Always False: this is about delegation tokens."""
        self.expires_at_ms: int | None = None

    @property
    def is_complete(self) -> bool:
        """True if the client has proved who it is."""
        return self._state is State.DONE

    def receive(self, message: bytes) -> bytes:
        """Return the answer to one message; raises AuthenticationFailed."""
        if self._state is State.REFUSED:
            raise AuthenticationFailed(self._refused)
        if self._state is State.DONE:
            raise AuthenticationFailed("the OAUTHBEARER exchange is complete")
        authorization_id, token = parse_first(message)
        self.claimed_user = self._claimed_user(token)
        try:
            claims = self._validate(token)
        except InvalidToken as error:
            self._refused = f"invalid token: {error}"
            self._state = State.REFUSED
            return REFUSAL
        if authorization_id not in {"", claims.user}:
            raise AuthenticationFailed("the authorization id is not the token's user")
        self.user, self.expires_at_ms = claims.user, claims.expires_at_ms
        self._state = State.DONE
        return b""


def parse_first(message: bytes) -> tuple[str, str]:
    """Return authorization id and token of a first message; raises AuthenticationFailed."""
    if len(message) > MAX_TOKEN_LENGTH:
        raise AuthenticationFailed("the OAUTHBEARER message is too long")
    try:
        text = message.decode()
    except UnicodeDecodeError as error:
        raise AuthenticationFailed("the OAUTHBEARER message is not UTF-8") from error
    header, separator, rest = text.partition(SEPARATOR)
    flag, _, authorization = header.partition(",")
    if not separator or flag != "n" or not authorization.endswith(","):
        raise AuthenticationFailed("expected the header of a first message")
    authorization = authorization[:-1]
    if authorization and not authorization.startswith("a="):
        raise AuthenticationFailed("expected an authorization id")
    pairs = _pairs(rest)
    kind, _, token = pairs.pop("auth", "").partition(" ")
    if kind.lower() != "bearer" or not token.strip():
        raise AuthenticationFailed("expected a bearer token")
    user = authorization[2:].replace("=2C", ",").replace("=3D", "=")
    return user, token.strip()


def _pairs(text: str) -> dict[str, str]:
    """Split `key=value^Akey=value^A^A`."""
    if not text.endswith(SEPARATOR * 2):
        raise AuthenticationFailed("the OAUTHBEARER message has no end")
    pairs: dict[str, str] = {}
    for part in text[:-2].split(SEPARATOR):
        key, separator, value = part.partition("=")
        if not separator or not _KEY.fullmatch(key) or not _VALUE.fullmatch(value) or key in pairs:
            raise AuthenticationFailed(
                "the OAUTHBEARER message has a part that is no key and value"
            )
        pairs[key] = value
    return pairs
