"""The server's side of SCRAM (RFC 5802), without channel binding.

    state              message from the client     next state          answer
    AwaitFirst         client-first-message        AwaitFinal          server-first-message
    AwaitFinal         client-final-message        Done                server-final-message
    any                anything that is wrong      (the exchange ends) AuthenticationFailed

Rules that CVE-2024-56128 and CVE-2017-12610 teach: the nonce of the final message is the whole
nonce that the server sent; the channel binding repeats the GS2 header of the first message; an
authorization id, if there is one, is the user's own name. Proofs are compared in constant time, and
an unknown user costs the client as much as a wrong password.
"""

import binascii
import hmac
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

from common.credentials.errors import AuthenticationFailed
from common.credentials.scram import (
    ScramCredential,
    ScramMechanism,
    digest,
)

MAX_MESSAGE_BYTES = 4096
NO_CHANNEL_BINDING = frozenset({"n", "y"})

FindCredential = Callable[[str], ScramCredential | None]
TOKEN_EXTENSION = ("tokenauth", "true")


class TokenLogin(NamedTuple):
    """The credential of a delegation token, its owner, and when it expires (KIP-48)."""

    credential: ScramCredential
    owner: str
    expiry_timestamp_ms: int


AnswerAboutUnknown = Callable[[str, bool], tuple[bytes, int]]
"""Returns the salt and the iterations for an unknown user, or for the id of an unknown token."""
FindToken = Callable[[str], TokenLogin | None]


def no_tokens(token_id: str) -> TokenLogin | None:
    """Return None: there are no delegation tokens."""
    return None


class State(Enum):
    """Which message the server waits for."""

    AWAIT_FIRST = auto()
    AWAIT_FINAL = auto()
    DONE = auto()


@dataclass(slots=True)
class _Exchange:
    """What the first two messages said, for the proof."""

    gs2_header: str
    first_bare: str
    server_first: str
    nonce: str
    client_nonce: str


class ScramServer:
    """Owns one exchange. `user` is set, and the client authenticated, when `is_complete`."""

    def __init__(
        self,
        mechanism: ScramMechanism,
        find_credential: FindCredential,
        server_nonce: str,
        answer_about_unknown: AnswerAboutUnknown,
        find_token: FindToken = no_tokens,
    ) -> None:
        self._mechanism = mechanism
        self._answer_about_unknown = answer_about_unknown
        self._find_credential = find_credential
        self._find_token = find_token
        self._server_nonce = server_nonce
        self._state = State.AWAIT_FIRST
        self._exchange: _Exchange | None = None
        self._credential: ScramCredential | None = None
        self.user = ""
        self.claimed_user = ""
        """The id of a delegation token for a client that has one."""
        self.is_by_token = False
        self.expires_at_ms: int | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the client has proved who it is."""
        return self._state is State.DONE

    def receive(self, message: bytes) -> bytes:
        """Return the answer to one message; raises AuthenticationFailed."""
        if len(message) > MAX_MESSAGE_BYTES:
            raise AuthenticationFailed("the SCRAM message is too long")
        try:
            text = message.decode()
        except UnicodeDecodeError as error:
            raise AuthenticationFailed("the SCRAM message is not UTF-8") from error
        match self._state:
            case State.AWAIT_FIRST:
                return self._first(text)
            case State.AWAIT_FINAL:
                return self._final(text)
            case State.DONE:
                raise AuthenticationFailed("the SCRAM exchange is complete")

    def _first(self, text: str) -> bytes:
        binding, authorization_id, bare = _split_first(text)
        attributes = _attributes(bare)
        if [name for name, _ in attributes[:2]] != ["n", "r"]:
            raise AuthenticationFailed("expected the user and the nonce")
        user, client_nonce = _unescaped(attributes[0][1]), attributes[1][1]
        self.claimed_user = user
        if not client_nonce:
            raise AuthenticationFailed("the nonce is empty")
        if authorization_id and _unescaped(authorization_id) != user:
            raise AuthenticationFailed("the authorization id is not the user")
        owner, credential = self._find(user, attributes[2:])
        self._credential = credential
        salt, iterations = (
            (credential.salt, credential.iterations)
            if credential is not None
            else self._answer_about_unknown(user, TOKEN_EXTENSION in attributes[2:])
        )
        nonce = client_nonce + self._server_nonce
        answer = f"r={nonce},s={b64encode(salt).decode()},i={iterations}"
        header = f"{binding},{authorization_id_text(text)},"
        self._exchange = _Exchange(header, bare, answer, nonce, client_nonce)
        self.user = owner
        self._state = State.AWAIT_FINAL
        return answer.encode()

    def _find(
        self, user: str, extensions: list[tuple[str, str]]
    ) -> tuple[str, ScramCredential | None]:
        """Return the user that is authenticated, a token's owner for its id, and the credential."""
        if TOKEN_EXTENSION not in extensions:
            return user, self._find_credential(user)
        login = self._find_token(user)
        if login is None:
            return user, None
        self.is_by_token = True
        self.expires_at_ms = login.expiry_timestamp_ms
        return login.owner, login.credential

    def _final(self, text: str) -> bytes:
        exchange = self._exchange
        assert exchange is not None, "the first message sets the exchange"
        without_proof, separator, proof_text = text.rpartition(",p=")
        attributes = _attributes(without_proof)
        if not separator or [name for name, _ in attributes[:2]] != ["c", "r"]:
            raise AuthenticationFailed("expected channel binding, nonce and proof")
        if _decoded(attributes[0][1]) != exchange.gs2_header.encode():
            raise AuthenticationFailed("the channel binding differs from the first message")
        if not _is_nonce_of(exchange, attributes[1][1]):
            raise AuthenticationFailed("the nonce is not the server's")
        signed = f"{exchange.first_bare},{exchange.server_first},{without_proof}".encode()
        credential = self._verify(signed, _decoded(proof_text))
        self._state = State.DONE
        signature = hmac.digest(credential.server_key, signed, self._mechanism.hash_name)
        return b"v=" + b64encode(signature)

    def _verify(self, signed: bytes, proof: bytes) -> ScramCredential:
        credential = self._credential
        stored_key = digest(self._mechanism, b"") if credential is None else credential.stored_key
        signature = hmac.digest(stored_key, signed, self._mechanism.hash_name)
        client_key = bytes(a ^ b for a, b in zip(signature, proof, strict=False))
        is_right = hmac.compare_digest(digest(self._mechanism, client_key), stored_key)
        if credential is None or len(proof) != len(signature) or not is_right:
            raise AuthenticationFailed("the user or the password is wrong")
        return credential


def _split_first(text: str) -> tuple[str, str, str]:
    """Split a client-first-message into binding flag, authorization id and the bare message."""
    parts = text.split(",", 2)
    if len(parts) != 3:
        raise AuthenticationFailed("the first SCRAM message is incomplete")
    binding, authorization, bare = parts
    if binding not in NO_CHANNEL_BINDING:
        raise AuthenticationFailed("channel binding is not supported")
    if authorization and not authorization.startswith("a="):
        raise AuthenticationFailed("expected an authorization id")
    if bare.startswith("m="):
        raise AuthenticationFailed("mandatory SCRAM extensions are not supported")
    return binding, authorization[2:], bare


def authorization_id_text(text: str) -> str:
    """Return the second part of the GS2 header as it was sent."""
    return text.split(",", 2)[1]


def _attributes(text: str) -> list[tuple[str, str]]:
    """Split `a=value,b=value`; a value may have `=` in it.

    An extension, behind the first two, may have a longer name: Kafka's `tokenauth` has.
    """
    pairs: list[tuple[str, str]] = []
    for part in text.split(","):
        name, separator, value = part.partition("=")
        if not separator or not name or (len(name) > 1 and len(pairs) < 2):
            raise AuthenticationFailed("the SCRAM message has a part that is no attribute")
        pairs.append((name, value))
    return pairs


def _unescaped(name: str) -> str:
    """Read a `saslname`: `=2C` is a comma, `=3D` an equals sign, no other escape exists."""
    if name.replace("=2C", "").replace("=3D", "").count("="):
        raise AuthenticationFailed("the user has an unknown escape")
    unescaped = name.replace("=2C", ",").replace("=3D", "=")
    if not unescaped:
        raise AuthenticationFailed("the user is empty")
    return unescaped


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise AuthenticationFailed("the SCRAM message has invalid base64") from error


def _is_nonce_of(exchange: _Exchange, given: str) -> bool:
    """Tell whether a final message has the server's nonce.

    librdkafka before 2.6.1, so kcat of most distributions, puts its own nonce before it once more.
    Kafka accepts any text there. The server's nonce is whole in both, so nothing is replayed.
    """
    twice = exchange.client_nonce + exchange.nonce
    return any(
        hmac.compare_digest(given.encode(), each.encode()) for each in (exchange.nonce, twice)
    )
