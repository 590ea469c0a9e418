"""Delegation tokens (KIP-900): all of a token but its secret."""

from collections import Counter

from broker.security.delegation_tokens import DelegationToken, token_hmac
from common.kafka.protocol.records.metadata import (
    DelegationTokenRecord,
    RemoveDelegationTokenRecord,
)


class DelegationTokensImage(dict[str, DelegationToken]):
    """Owns every token: token id -> token."""

    def __init__(self) -> None:
        super().__init__()
        self._counts: Counter[str] = Counter()

    def count_of(self, requester: str) -> int:
        """Return how many tokens a principal has asked for."""
        return self._counts[requester]

    def replay(self, record: DelegationTokenRecord) -> None:
        """Set one token; a token that is renewed has the same id."""
        self._count(record.token_id, -1)
        self[record.token_id] = DelegationToken(
            token_id=record.token_id,
            owner=record.owner,
            requester=record.requester,
            renewers=tuple(record.renewers),
            issue_timestamp_ms=record.issue_timestamp,
            max_timestamp_ms=record.max_timestamp,
            expiry_timestamp_ms=record.expiration_timestamp,
        )
        self._count(record.token_id, 1)

    def replay_remove(self, record: RemoveDelegationTokenRecord) -> None:
        """Remove one token."""
        self._count(record.token_id, -1)
        self.pop(record.token_id, None)

    def _count(self, token_id: str, change: int) -> None:
        token = self.get(token_id)
        if token is not None:
            self._counts[token.requester] += change
            if not self._counts[token.requester]:
                del self._counts[token.requester]


class TokenFinder:
    """Finds tokens by their secrets: soft state, that follows the tokens when it is asked.

    Each secret is computed once, and not for every question.
    """

    def __init__(self) -> None:
        self._ids: dict[bytes, str] = {}
        self._secrets: dict[str, bytes] = {}

    def find(
        self, tokens: DelegationTokensImage, secret_key: str, secret: bytes
    ) -> DelegationToken | None:
        """Return the token with a secret, None if there is none."""
        for token_id in self._secrets.keys() - tokens.keys():
            del self._ids[self._secrets.pop(token_id)]
        for token_id in tokens.keys() - self._secrets.keys():
            made = self._secrets[token_id] = token_hmac(secret_key, token_id)
            self._ids[made] = token_id
        found = self._ids.get(secret)
        return None if found is None else tokens[found]


def token_record(token: DelegationToken) -> DelegationTokenRecord:
    """Return the record that sets a token."""
    return DelegationTokenRecord(
        owner=token.owner,
        requester=token.requester,
        renewers=list(token.renewers),
        issue_timestamp=token.issue_timestamp_ms,
        max_timestamp=token.max_timestamp_ms,
        expiration_timestamp=token.expiry_timestamp_ms,
        token_id=token.token_id,
    )
