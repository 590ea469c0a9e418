"""AlterPartition: a leader asks to change its in-sync set (KIP-497, KIP-704, KIP-903).

The leader epoch and the partition epoch of the request must be the current ones, and every replica
in the new set must be active, in the incarnation that the leader has seen.
"""

from broker.metadata.control.leadership.broker_changes import partition_change
from broker.metadata.control.leadership.partition_change import Election
from broker.metadata.control.view import ClusterView, Decision, Moment
from broker.metadata.image import PartitionImage, TopicImage
from broker.metadata.parts.topics import NO_LEADER_CHANGE, RECOVERED, RECOVERING, change_partition
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    PartitionResult,
    TopicResult,
)
from common.kafka.protocol.records.metadata import PartitionChangeRecord

ANY_EPOCH = -1
FIRST_VERSION_WITH_BROKER_EPOCHS = 3


def handle_alter_partition(
    view: ClusterView, request: AlterPartitionRequest, api_version: int, moment: Moment
) -> Decision:
    """Change the in-sync set of each partition separately."""
    view.registered(request.broker_id, request.broker_epoch)
    records: list[Message] = []
    topics = []
    for wanted in request.topics:
        topic = view.image.topics.by_id.get(wanted.topic_id)
        results = []
        changed: set[int] = set()
        for data in wanted.partitions:
            result = PartitionResult(partition_index=data.partition_index)
            try:
                isr = _wanted_isr(data, api_version)
                partition = _validated(view, topic, request.broker_id, data, isr, changed)
                assert topic is not None
                record = _change(view, topic, partition, data, isr)
                if record is not None:
                    records.append(record)
                    changed.add(data.partition_index)
                result = _result(partition, record, request.broker_id)
            except KafkaError as error:
                result.error_code = error.code
            results.append(result)
        topics.append(TopicResult(topic_id=wanted.topic_id, partitions=results))
    return Decision(AlterPartitionResponse(topics=topics), records)


def _wanted_isr(data: PartitionData, api_version: int) -> list[BrokerState]:
    if api_version >= FIRST_VERSION_WITH_BROKER_EPOCHS:
        return data.new_isr_with_epochs
    return [BrokerState(broker_id=broker_id) for broker_id in data.new_isr]


def _validated(
    view: ClusterView,
    topic: TopicImage | None,
    broker_id: int,
    data: PartitionData,
    isr: list[BrokerState],
    changed: set[int],
) -> PartitionImage:
    """Return the partition to change; raise KafkaError if the request must not change it."""
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    partition = topic.partitions.get(data.partition_index)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if data.partition_index in changed:
        raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION)
    _validate_epochs(partition, broker_id, data)
    _validate_isr(partition, data, isr)
    if any(not _is_eligible(view, state) for state in isr):
        raise KafkaError(ErrorCode.INELIGIBLE_REPLICA)
    return partition


def _validate_epochs(partition: PartitionImage, broker_id: int, data: PartitionData) -> None:
    if (
        data.leader_epoch > partition.leader_epoch
        or data.partition_epoch > partition.partition_epoch
    ):
        # The leader has newer metadata than this controller, so another controller is active.
        raise KafkaError(ErrorCode.NOT_CONTROLLER)
    if data.leader_epoch < partition.leader_epoch:
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
    if broker_id != partition.leader:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if data.partition_epoch < partition.partition_epoch:
        raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION)


def _validate_isr(partition: PartitionImage, data: PartitionData, isr: list[BrokerState]) -> None:
    wanted = [state.broker_id for state in isr]
    state = data.leader_recovery_state
    is_possible = (
        len(set(wanted)) == len(wanted)
        and set(wanted) <= set(partition.replicas)
        and partition.leader in wanted
        and state in {RECOVERED, RECOVERING}
        and not (state == RECOVERING and len(wanted) > 1)
        and not (state == RECOVERING and partition.leader_recovery_state == RECOVERED)
    )
    if not is_possible:
        raise KafkaError(ErrorCode.INVALID_REQUEST)


def _is_eligible(view: ClusterView, state: BrokerState) -> bool:
    broker = view.image.brokers.get(state.broker_id)
    return (
        broker is not None and broker.is_active and state.broker_epoch in {ANY_EPOCH, broker.epoch}
    )


def _change(
    view: ClusterView,
    topic: TopicImage,
    partition: PartitionImage,
    data: PartitionData,
    isr: list[BrokerState],
) -> PartitionChangeRecord | None:
    change = partition_change(view, topic, partition)
    if view.allows_unclean_election(topic.name):
        change.election = Election.UNCLEAN
    change.isr = [state.broker_id for state in isr]
    change.recovery_state = data.leader_recovery_state
    return change.record()


def _result(
    partition: PartitionImage, record: PartitionChangeRecord | None, broker_id: int
) -> PartitionResult:
    """Return the state after the change, which takes effect when its record is committed."""
    after = PartitionImage(
        partition=partition.partition,
        replicas=partition.replicas,
        isr=partition.isr,
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        leader_recovery_state=partition.leader_recovery_state,
    )
    if record is not None:
        change_partition(after, record)
        if record.leader not in {NO_LEADER_CHANGE, broker_id}:
            # The change completed a reassignment, and the requesting broker is not the leader then.
            return PartitionResult(
                partition_index=partition.partition, error_code=ErrorCode.NEW_LEADER_ELECTED
            )
    return PartitionResult(
        partition_index=after.partition,
        leader_id=after.leader,
        leader_epoch=after.leader_epoch,
        isr=list(after.isr),
        leader_recovery_state=after.leader_recovery_state,
        partition_epoch=after.partition_epoch,
    )
