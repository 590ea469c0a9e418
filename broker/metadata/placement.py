"""Which brokers hold a new partition. Pure; the starting point is an argument."""

from collections.abc import Sequence

from broker.errors import ErrorCode, KafkaError


def compute_placement(
    *, partition_count: int, replication_factor: int, broker_ids: Sequence[int], first: int
) -> list[list[int]]:
    """Return the replicas of each partition, leaders spread round robin from broker `first`.

    Raises INVALID_REPLICATION_FACTOR when there are too few brokers.
    """
    count = len(broker_ids)
    if replication_factor > count:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {replication_factor} time(s): the target "
            f"replication factor of {replication_factor} cannot be reached because only {count} "
            "broker(s) are registered.",
        )
    ordered = sorted(broker_ids)
    return [
        [ordered[(first + partition + replica) % count] for replica in range(replication_factor)]
        for partition in range(partition_count)
    ]
