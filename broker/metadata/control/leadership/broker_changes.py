"""The effect of a broker's arrival or departure on partitions: in-sync sets and leaders.

A departing broker leaves its in-sync sets and leaderships. The new leader comes from the in-sync
set, else from the eligible leader replicas (KIP-966), else the partition has no leader. An arriving
broker becomes the leader of partitions without a leader if it is eligible.
"""

from collections.abc import Callable, Iterable

from broker.metadata.control.leadership.partition_change import Election, PartitionChange
from broker.metadata.control.view import ClusterView
from broker.metadata.image import BrokerImage, PartitionImage, TopicImage
from broker.metadata.parts.brokers import FENCE, IN_CONTROLLED_SHUTDOWN, LOST_DIRECTORY, UNFENCE
from broker.metadata.parts.topics import NO_LEADER
from common.kafka.protocol.message import Message
from common.kafka.protocol.records.metadata import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    UnregisterBrokerRecord,
)

NO_BROKER = -1


def partition_change(
    view: ClusterView,
    topic: TopicImage,
    partition: PartitionImage,
    *,
    is_acceptable: Callable[[int], bool] | None = None,
    min_isr: int | None = None,
) -> PartitionChange:
    """Return an empty change of a partition."""
    is_alive = is_acceptable or view.is_active

    def is_acceptable_leader(replica: int) -> bool:
        return is_alive(replica) and _has_online_directory(view, partition, replica)

    return PartitionChange(
        partition,
        topic.topic_id,
        is_acceptable_leader,
        view.default_directory,
        min_isr=view.min_isr(topic) if min_isr is None else min_isr,
        is_elr_enabled=view.is_elr_enabled,
    )


def _has_online_directory(view: ClusterView, partition: PartitionImage, replica: int) -> bool:
    broker = view.image.brokers.get(replica)
    if broker is None or replica not in partition.replicas:
        return True
    index = partition.replicas.index(replica)
    if index >= len(partition.directories):
        return True
    directory = partition.directories[index]
    return directory != LOST_DIRECTORY and broker.has_online_directory(directory)


def fence_broker(view: ClusterView, broker: BrokerImage) -> list[Message]:
    """Return the records that fence a broker: those of its partitions first."""
    return [
        *_removals(view, broker.broker_id, _is_in_sync(broker.broker_id)),
        BrokerRegistrationChangeRecord(
            broker_id=broker.broker_id, broker_epoch=broker.epoch, fenced=FENCE
        ),
    ]


def unfence_broker(view: ClusterView, broker: BrokerImage) -> list[Message]:
    """Return the records that unfence a broker: its own, then those of its new leaderships."""
    unfenced = BrokerRegistrationChangeRecord(
        broker_id=broker.broker_id, broker_epoch=broker.epoch, fenced=UNFENCE
    )
    return [
        unfenced,
        *_leader_and_isr_changes(
            view, lambda partition: partition.leader == NO_LEADER, added=broker.broker_id
        ),
    ]


def begin_controlled_shutdown(view: ClusterView, broker: BrokerImage) -> list[Message]:
    """Return the records that remove a stopping broker from leaderships and in-sync sets."""
    records: list[Message] = []
    if not broker.is_in_controlled_shutdown:
        records.append(
            BrokerRegistrationChangeRecord(
                broker_id=broker.broker_id,
                broker_epoch=broker.epoch,
                in_controlled_shutdown=IN_CONTROLLED_SHUTDOWN,
            )
        )
    return records + _removals(view, broker.broker_id, _is_in_sync(broker.broker_id))


def unregister_broker(view: ClusterView, broker: BrokerImage) -> list[Message]:
    """Return the records that unregister a broker; it stays a replica of its partitions."""
    broker_id = broker.broker_id
    return [
        *_removals(
            view,
            broker_id,
            lambda partition: broker_id in partition.isr or broker_id in partition.elr,
        ),
        UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=broker.epoch),
    ]


def begin_incarnation(
    view: ClusterView, broker_id: int, *, was_clean_shutdown: bool
) -> list[Message]:
    """Return the records for the partitions of a broker that registers a new incarnation.

    The broker is fenced at first, so it leads nothing. After an unclean shutdown it may have lost
    records that it had acknowledged, so with eligible leader replicas (KIP-966) it leaves the
    in-sync sets.
    """
    if view.is_elr_enabled and not was_clean_shutdown:
        return _leader_and_isr_changes(
            view,
            lambda partition: broker_id in partition.isr or broker_id in partition.elr,
            unclean=broker_id,
        )
    return _removals(view, broker_id, _is_in_sync(broker_id))


def clear_elr(view: ClusterView, topics: Iterable[TopicImage]) -> list[Message]:
    """Return the records that clear the eligible leaders after a change of `min.insync.replicas`.

    With a lower limit the in-sync replicas alone may commit records, which the eligible leader
    replicas then lack. A partition without in-sync replicas commits nothing and keeps them.
    """
    return [
        PartitionChangeRecord(
            topic_id=topic.topic_id,
            partition_id=partition.partition,
            eligible_leader_replicas=[],
        )
        for topic in topics
        for partition in topic.partitions.values()
        if partition.elr and partition.isr
    ]


def fail_directories(
    view: ClusterView, broker: BrokerImage, offline: frozenset[bytes]
) -> list[Message]:
    """Return the records for failed log directories of a broker (KIP-858).

    A record cannot say that all directories have failed: an empty list means "unchanged". Such a
    broker ends, and the next fencing takes its leaderships away.
    """
    failed = offline & set(broker.log_dirs)
    if not failed:
        return []

    def is_there(partition: PartitionImage) -> bool:
        places = zip(partition.replicas, partition.directories, strict=False)
        return broker.broker_id in partition.isr and any(
            replica == broker.broker_id and directory in failed for replica, directory in places
        )

    records: list[Message] = [*_removals(view, broker.broker_id, is_there)]
    left = [directory for directory in broker.log_dirs if directory not in failed]
    if left:
        records.append(
            BrokerRegistrationChangeRecord(
                broker_id=broker.broker_id, broker_epoch=broker.epoch, log_dirs=left
            )
        )
    return records


def leads_any(view: ClusterView, broker_id: int) -> bool:
    """Return True if a broker leads a partition."""
    return any(
        partition.leader == broker_id
        for topic in view.image.topics.by_id.values()
        for partition in topic.partitions.values()
    )


def _is_in_sync(broker_id: int) -> Callable[[PartitionImage], bool]:
    return lambda partition: broker_id in partition.isr


def _removals(
    view: ClusterView, broker_id: int, concerns: Callable[[PartitionImage], bool]
) -> list[Message]:
    return _leader_and_isr_changes(view, concerns, removed=broker_id)


def _leader_and_isr_changes(
    view: ClusterView,
    concerns: Callable[[PartitionImage], bool],
    *,
    removed: int = NO_BROKER,
    added: int = NO_BROKER,
    unclean: int = NO_BROKER,
) -> list[Message]:
    """Return the changes of all affected partitions when brokers come or go.

    `added` counts as active although the image has it as fenced; `removed` and `unclean` count as
    inactive although the image has them as active.
    """
    gone = frozenset({removed, unclean}) - {NO_BROKER}

    def is_acceptable(replica: int) -> bool:
        return replica not in gone and (replica == added or view.is_active(replica))

    records: list[Message] = []
    for topic in view.image.topics.by_id.values():
        concerned = [part for part in topic.partitions.values() if concerns(part)]
        if not concerned:
            continue
        min_isr = view.min_isr(topic)
        is_unclean_allowed = view.allows_unclean_election(topic.name)
        for partition in concerned:
            change = partition_change(
                view, topic, partition, is_acceptable=is_acceptable, min_isr=min_isr
            )
            change.election = Election.UNCLEAN if is_unclean_allowed else Election.ONLINE
            change.isr = [replica for replica in partition.isr if replica not in gone]
            change.unclean_shutdown = frozenset({unclean}) - {NO_BROKER}
            record = change.record()
            if record is not None:
                records.append(record)
    return records
