"""Delegation tokens: secrets that stand for their owner for a limited time (KIP-48).

A token's secret is an HMAC of its id under a key that all nodes share, so no node stores it. A
client uses the id as the user of SCRAM and the secret, as base64, as the password, and says so in
the extension `tokenauth=true`. It is then the owner of the token.
"""

import hmac
from base64 import b64encode
from typing import NamedTuple

from common.credentials.scram import (
    MIN_ITERATIONS,
    ScramCredential,
    ScramMechanism,
    credential_from,
    salted_password,
)

FIRST_VERSION_WITH_REQUESTER = 3
"""Of CreateDelegationToken and DescribeDelegationToken: before, the requester is the owner."""
MAX_CREDENTIALS = 1_000
SALT_BYTES = 24


class DelegationToken(NamedTuple):
    """A token. Times are milliseconds since 1970; principals are texts such as User:alice."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp_ms: int
    max_timestamp_ms: int
    expiry_timestamp_ms: int

    def is_expired(self, timestamp_ms: int) -> bool:
        """Return True if the token is of no use at a time."""
        return min(self.max_timestamp_ms, self.expiry_timestamp_ms) < timestamp_ms

    def belongs_to(self, principal: str) -> bool:
        """Return True for the owner and the renewers: they may renew, end and see the token."""
        return principal == self.owner or principal in self.renewers


def token_hmac(secret_key: str, token_id: str) -> bytes:
    """Return the secret of a token."""
    return hmac.digest(secret_key.encode(), token_id.encode(), "sha512")


class TokenCredentials:
    """Makes the SCRAM credentials of tokens, and keeps those made last.

    A credential takes a millisecond or two, so it is not made again for each connection. The salt
    follows from the secret, so that it need not be stored.
    """

    def __init__(self, secret_key: str) -> None:
        self._secret_key = secret_key
        self._made: dict[tuple[str, int], ScramCredential] = {}

    def answer_about(self, token_id: str) -> tuple[bytes, int]:
        """Return the salt and the iterations of a token, whether it exists or not."""
        secret = token_hmac(self._secret_key, token_id)
        return hmac.digest(secret, b"salt", "sha256")[:SALT_BYTES], MIN_ITERATIONS

    def of(self, mechanism: ScramMechanism, token_id: str) -> ScramCredential:
        """Return the credential of a token that exists."""
        made = self._made.get((token_id, mechanism.number))
        if made is None:
            secret = token_hmac(self._secret_key, token_id)
            salt, _ = self.answer_about(token_id)
            password = b64encode(secret).decode()
            salted = salted_password(mechanism, password, salt, MIN_ITERATIONS)
            made = credential_from(mechanism, salted, salt, MIN_ITERATIONS)
            if len(self._made) >= MAX_CREDENTIALS:
                del self._made[next(iter(self._made))]
            self._made[token_id, mechanism.number] = made
        return made
