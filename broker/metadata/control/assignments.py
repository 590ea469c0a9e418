"""The replicas of new partitions: a manual assignment, or the choice of `placement`."""

from collections.abc import Generator, Iterable, Iterator, Sequence

from broker.metadata.control.view import ClusterView
from broker.metadata.placement import UsableBroker, compute_placement
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.message import Message
from common.kafka.protocol.records.metadata import PartitionRecord

PARTITIONS_PER_STEP = 512
"""The partitions per step, about five microseconds each."""


def place(
    view: ClusterView, *, partition_count: int, replication_factor: int
) -> Iterator[list[int]]:
    """Yield the replicas of one new partition after the other.

    Raise INVALID_REPLICATION_FACTOR at the call, before the first partition.
    """
    brokers = [
        UsableBroker(broker.broker_id, broker.rack, broker.is_fenced)
        for _, broker in sorted(view.image.brokers.items())
        if broker.is_fenced or not broker.is_in_controlled_shutdown
    ]
    try:
        return compute_placement(
            partition_count=partition_count,
            replication_factor=replication_factor,
            brokers=brokers,
            random=view.random,
        )
    except KafkaError as error:
        raise KafkaError(
            error.code,
            f"Unable to replicate the partition {replication_factor} time(s): {error.message}",
        ) from error


def validate_manual_assignment(
    view: ClusterView, replicas: Sequence[int], replication_factor: int | None
) -> None:
    """Raise INVALID_REPLICA_ASSIGNMENT for an invalid list of replicas."""
    brokers = view.image.brokers
    seen: set[int] = set()
    problem = None
    if not replicas:
        problem = "includes an empty replica list."
    for broker_id in sorted(replicas):
        if broker_id not in brokers:
            problem = f"includes broker {broker_id}, but no such broker is registered."
        elif broker_id in seen:
            problem = f"includes the broker {broker_id} more than once."
        else:
            seen.add(broker_id)
            continue
        break
    if problem is None and replication_factor not in {None, len(replicas)}:
        problem = (
            f"includes a partition with {len(replicas)} replica(s), but this is not consistent "
            f"with previous partitions, which have {replication_factor} replica(s)."
        )
    if problem is not None:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment {problem}"
        )


def new_partitions(
    view: ClusterView,
    topic_id: bytes,
    first: int,
    assigned: Iterable[list[int]],
    *,
    is_manual: bool,
) -> Generator[Sequence[Message], None, list[PartitionRecord]]:
    """Return the records of new partitions, in steps; raise the errors of `new_partition`."""
    records: list[PartitionRecord] = []
    for partition, replicas in enumerate(assigned, first):
        records.append(new_partition(view, topic_id, partition, replicas, is_manual=is_manual))
        if not len(records) % PARTITIONS_PER_STEP:
            yield ()
    return records


def new_partition(
    view: ClusterView, topic_id: bytes, partition: int, replicas: list[int], *, is_manual: bool
) -> PartitionRecord:
    """Return the record of a new partition.

    Raise INVALID_REPLICA_ASSIGNMENT or INVALID_REPLICATION_FACTOR if none of its replicas is
    active.
    """
    isr = [broker_id for broker_id in replicas if view.is_active(broker_id)]
    if not isr and is_manual:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "All brokers specified in the manual partition assignment for partition "
            f"{partition} are fenced or in controlled shutdown.",
        )
    if not isr:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {len(replicas)} time(s): All brokers are "
            "currently fenced or in controlled shutdown.",
        )
    return PartitionRecord(
        partition_id=partition,
        topic_id=topic_id,
        replicas=replicas,
        isr=isr,
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=view.default_directories(replicas),
    )
