"""The limits of one request, and names that a request must not repeat."""

from collections.abc import Iterable

from common.kafka.errors import ErrorCode, KafkaError

MAX_RECORDS_PER_REQUEST = 10_000  # Kafka's QuorumController.MAX_RECORDS_PER_USER_OP


def duplicates(names: Iterable[str]) -> set[str]:
    """Return the names that occur more than once."""
    seen: set[str] = set()
    repeated: set[str] = set()
    for name in names:
        (repeated if name in seen else seen).add(name)
    return repeated


def validate_partition_count(count: int) -> None:
    """Raise POLICY_VIOLATION if a request would add too many partitions."""
    if count > MAX_RECORDS_PER_REQUEST:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
        )


def validate_record_count(count: int) -> None:
    """Raise POLICY_VIOLATION if a request would write too many records."""
    if count > MAX_RECORDS_PER_REQUEST:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation."
        )
