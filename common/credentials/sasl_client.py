"""The client's side of SASL, of nodes and tools: PLAIN, SCRAM (RFC 5802), OAUTHBEARER (RFC 7628).

A client is asked for its `first` token, then given each answer of the server and asked for the next
token, until there is none.
"""

import hmac
from base64 import b64decode, b64encode
from typing import NamedTuple, Protocol

from common.credentials.errors import AuthenticationFailed
from common.credentials.scram import (
    MAX_ITERATIONS,
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    ScramMechanism,
    credential_from,
    digest,
    salted_password,
)

GS2_HEADER = "n,,"
SEPARATOR = "\x01"
"""Stands between the fields of OAUTHBEARER's messages."""
MECHANISMS = {each.name: each for each in (SCRAM_SHA_256, SCRAM_SHA_512)}


class MechanismClient(Protocol):
    """The client's side of one SASL mechanism."""

    user: str
    """The user that the client names, for the log; empty if its token names none."""

    def first(self) -> bytes:
        """Return the token that begins the exchange."""
        ...

    def receive(self, answer: bytes) -> bytes | None:
        """Return the next token, None when there is none; raises AuthenticationFailed."""
        ...


class Begun(NamedTuple):
    """An exchange and the token that begins it."""

    client: MechanismClient
    first: bytes


def client_of(
    mechanism: str, user: str, password: str, nonce: str, *, is_token: bool = False
) -> MechanismClient:
    """Return the client's side of a mechanism; raises KeyError for one that is not built.

    With `is_token` the user is the id of a delegation token, and the password is its secret.
    """
    if mechanism == "PLAIN":
        return PlainClient(user, password)
    return ScramClient(MECHANISMS[mechanism], user, password, nonce, is_token=is_token)


class PlainClient:
    """PLAIN: one token."""

    def __init__(self, user: str, password: str) -> None:
        self.user = user
        self._token = f"\0{user}\0{password}".encode()

    def first(self) -> bytes:
        """Return the only token."""
        return self._token

    def receive(self, answer: bytes) -> bytes | None:
        """Return None: the server has accepted."""
        return None


class OauthBearerClient:
    """OAUTHBEARER: a token of an issuer, and a second message after a refusal."""

    def __init__(self, token: str, user: str = "") -> None:
        """`user` is the one that the token is about."""
        self.user = user
        self._token = token
        self._is_refused = False

    def first(self) -> bytes:
        """Return the token as the first message has it."""
        return f"{GS2_HEADER}{SEPARATOR}auth=Bearer {self._token}{SEPARATOR * 2}".encode()

    def receive(self, answer: bytes) -> bytes | None:
        """Return None if the server has accepted; it tells a refusal after one more message."""
        if not answer:
            return None
        if self._is_refused:
            raise AuthenticationFailed("the server refuses the token")
        self._is_refused = True
        return SEPARATOR.encode()


class ScramClient:
    """SCRAM: two tokens, and the proof that the server knows the credential."""

    def __init__(
        self,
        mechanism: ScramMechanism,
        user: str,
        password: str,
        nonce: str,
        *,
        is_token: bool = False,
    ) -> None:
        self.user = user
        self._mechanism = mechanism
        self._password = password
        self._nonce = nonce
        name = user.replace("=", "=3D").replace(",", "=2C")
        self._first_bare = f"n={name},r={nonce}{',tokenauth=true' if is_token else ''}"
        self._expected: bytes | None = None

    def first(self) -> bytes:
        """Return the client-first-message."""
        return (GS2_HEADER + self._first_bare).encode()

    def receive(self, answer: bytes) -> bytes | None:
        """Return the client-final-message, then None once the server's proof is right."""
        if self._expected is None:
            return self._final(answer)
        if not hmac.compare_digest(answer, self._expected):
            raise AuthenticationFailed("the server did not prove that it knows the credential")
        return None

    def _final(self, answer: bytes) -> bytes:
        nonce, salt, iterations = self._parse(answer)
        salted = salted_password(self._mechanism, self._password, salt, iterations)
        credential = credential_from(self._mechanism, salted, salt, iterations)
        without_proof = f"c={b64encode(GS2_HEADER.encode()).decode()},r={nonce}"
        signed = f"{self._first_bare},{answer.decode()},{without_proof}".encode()
        hash_name = self._mechanism.hash_name
        signature = hmac.digest(credential.stored_key, signed, hash_name)
        client_key = hmac.digest(salted, b"Client Key", hash_name)
        assert digest(self._mechanism, client_key) == credential.stored_key
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        server_signature = hmac.digest(credential.server_key, signed, hash_name)
        self._expected = b"v=" + b64encode(server_signature)
        return f"{without_proof},p={b64encode(proof).decode()}".encode()

    def _parse(self, answer: bytes) -> tuple[str, bytes, int]:
        """Return nonce, salt and iterations of a server-first-message."""
        try:
            fields = dict(part.split("=", 1) for part in answer.decode().split(","))
            nonce, salt = fields["r"], b64decode(fields["s"], validate=True)
            iterations = int(fields["i"])
        except (ValueError, KeyError) as error:
            raise AuthenticationFailed("the server's SCRAM message is malformed") from error
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise AuthenticationFailed("the server's nonce does not extend ours")
        if not 1 <= iterations <= MAX_ITERATIONS:
            raise AuthenticationFailed(f"the server asks for {iterations} iterations")
        return nonce, salt, iterations
