"""The settings of the transaction coordinator, under Kafka's names, and our own limits."""

from dataclasses import dataclass

MAX_TRANSACTIONAL_ID_BYTES = 32_000
"""The longest transactional id. A string in a record has at most 32,767 bytes; one in a flexible
version of a request may be longer."""

MAX_ENDED_AT_ONCE = 60
"""The transactions that a sweep aborts, or the ids it removes, in one turn; it then continues."""

MAX_LOOKED_AT_AT_ONCE = 10_000
"""The transactional ids that a sweep checks in one turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionConfig:
    """Kafka's transaction settings; each field gives the setting's name."""

    max_timeout_ms: int = 900_000
    """transaction.max.timeout.ms"""
    expiration_ms: int = 604_800_000
    """transactional.id.expiration.ms"""
    abort_check_interval_ms: int = 10_000
    """transaction.abort.timed.out.transaction.cleanup.interval.ms"""
    expiration_check_interval_ms: int = 3_600_000
    """transaction.remove.expired.transaction.cleanup.interval.ms"""
    commit_timeout_ms: int = 30_000
    """request.timeout.ms: how long an answer waits for the commit of its record."""
    max_batch_bytes: int = 1_048_588
    """max.message.bytes of `__transaction_state`, as for `__consumer_offsets`."""
