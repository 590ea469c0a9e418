"""Delegation tokens (KIP-900): all of a token but its secret."""

from broker.security.delegation_tokens import DelegationToken
from common.kafka.protocol.records.metadata import (
    DelegationTokenRecord,
    RemoveDelegationTokenRecord,
)


class DelegationTokensImage(dict[str, DelegationToken]):
    """Owns every token: token id -> token."""

    def replay(self, record: DelegationTokenRecord) -> None:
        """Set one token; a token that is renewed has the same id."""
        self[record.token_id] = DelegationToken(
            token_id=record.token_id,
            owner=record.owner,
            requester=record.requester,
            renewers=tuple(record.renewers),
            issue_timestamp_ms=record.issue_timestamp,
            max_timestamp_ms=record.max_timestamp,
            expiry_timestamp_ms=record.expiration_timestamp,
        )

    def replay_remove(self, record: RemoveDelegationTokenRecord) -> None:
        """Remove one token."""
        self.pop(record.token_id, None)


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
