"""The transaction coordinator's settings, under Kafka's names, and the limits that are ours."""

from dataclasses import dataclass

MAX_TRANSACTIONAL_ID_BYTES = 32_000
"""Records hold strings of 32,767 bytes at most; requests in their flexible versions bring longer
ones."""

MAX_ENDED_AT_ONCE = 60
"""How many transactions a sweep aborts, or ids it removes, in one turn; the rest is due at once."""

MAX_LOOKED_AT_AT_ONCE = 10_000
"""How many transactional ids a sweep looks at in one turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionConfig:
    """Kafka's transaction settings; the setting's own name is given where the field's differs."""

    max_timeout_ms: int = 900_000
    """transaction.max.timeout.ms"""
    expiration_ms: int = 604_800_000
    """transactional.id.expiration.ms"""
    abort_check_interval_ms: int = 10_000
    """transaction.abort.timed.out.transaction.cleanup.interval.ms"""
    expiration_check_interval_ms: int = 3_600_000
    """transaction.remove.expired.transaction.cleanup.interval.ms"""
    commit_timeout_ms: int = 30_000
    """request.timeout.ms: how long an answer waits for its record to be committed."""
    max_batch_bytes: int = 1_048_588
    """max.message.bytes of `__transaction_state`, as for `__consumer_offsets`."""
