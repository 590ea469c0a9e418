"""AlterPartitionReassignments and ListPartitionReassignments: move replicas (KIP-455, KIP-860).

A reassignment has three stages. A record adds the new replicas to the old ones, and lists the
adding and the removing ones. The new replicas catch up and join the in-sync set. The change that
adds the last of them also removes the old ones. The first and the last stage are one record if no
replica has to catch up.

A reassignment that replaces another one keeps the original replicas until its own new replicas are
in sync. It removes at once the replicas that only the replaced reassignment was adding.
"""

from collections.abc import Iterable, Mapping

from broker.metadata.control.assignments import validate_manual_assignment
from broker.metadata.control.leadership.broker_changes import partition_change
from broker.metadata.control.leadership.partition_change import Election
from broker.metadata.control.limits import validate_record_count
from broker.metadata.control.steps import ITEMS_PER_STEP, decided
from broker.metadata.control.view import ClusterView, Decision, DecisionSteps, Moment
from broker.metadata.image import PartitionImage, TopicImage
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from common.kafka.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from common.kafka.protocol.records.metadata import PartitionChangeRecord

TOPICS_PER_STEP = 256
"""The topics per step of a listing, which finds few reassignments."""


def handle_alter_partition_reassignments(
    view: ClusterView,
    request: AlterPartitionReassignmentsRequest,
    api_version: int,
    moment: Moment,
) -> Decision | DecisionSteps:
    """Start, change or cancel the reassignment of each partition separately."""
    is_large = len(request.topics) > ITEMS_PER_STEP or any(
        len(topic.partitions) > ITEMS_PER_STEP for topic in request.topics
    )
    return decided(_alter(view, request), is_large=is_large)


def _alter(view: ClusterView, request: AlterPartitionReassignmentsRequest) -> DecisionSteps:
    records: list[Message] = []
    done: set[tuple[str, int]] = set()
    responses = []
    count = 0
    for topic in request.topics:
        answers = []
        for partition in topic.partitions:
            count += 1
            if not count % ITEMS_PER_STEP:
                yield ()
            index = partition.partition_index
            answer = ReassignablePartitionResponse(partition_index=index, error_message=None)
            try:
                if (topic.name, index) in done:
                    raise KafkaError(
                        ErrorCode.INVALID_REQUEST, f"Duplicate partition {topic.name}:{index}."
                    )
                done.add((topic.name, index))
                image, of_partition = _find(view, topic.name, index)
                records += _reassign(
                    view,
                    image,
                    of_partition,
                    partition.replicas,
                    may_change_factor=request.allow_replication_factor_change,
                )
            except KafkaError as error:
                answer.error_code, answer.error_message = error.code, error.message
            answers.append(answer)
        responses.append(ReassignableTopicResponse(name=topic.name, partitions=answers))
        validate_record_count(len(records))
    response = AlterPartitionReassignmentsResponse(
        error_message=None,
        responses=responses,
        allow_replication_factor_change=request.allow_replication_factor_change,
    )
    return Decision(response, records)


def _find(view: ClusterView, name: str, index: int) -> tuple[TopicImage, PartitionImage]:
    image = view.image.topics.by_name.get(name)
    if image is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}."
        )
    partition = image.partitions.get(index)
    if partition is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}."
        )
    return image, partition


def _reassign(
    view: ClusterView,
    topic: TopicImage,
    partition: PartitionImage,
    target: list[int] | None,
    *,
    may_change_factor: bool,
) -> list[Message]:
    if target is None:
        record = _cancel(view, topic, partition)
    else:
        validate_manual_assignment(view, target, None)
        _validate_factor(partition, target, may_change_factor=may_change_factor)
        record = _move(view, topic, partition, target)
    return [] if record is None else [record]


def _validate_factor(
    partition: PartitionImage, target: list[int], *, may_change_factor: bool
) -> None:
    current = [
        replica for replica in partition.replicas if replica not in partition.adding_replicas
    ]
    if not may_change_factor and len(current) != len(target):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {len(current)} to {len(target)}",
        )


def _move(
    view: ClusterView, topic: TopicImage, partition: PartitionImage, target: list[int]
) -> PartitionChangeRecord | None:
    coming = set(partition.adding_replicas)
    unwanted = coming - set(target)  # replicas that only the replaced reassignment was adding
    isr = [replica for replica in partition.isr if replica not in unwanted]
    if not isr:
        # Only these replicas have the committed records: they stay until the new ones are in sync.
        unwanted, isr = set(), list(partition.isr)
    removing = sorted(set(partition.replicas) - set(target) - unwanted)
    # During the reassignment, the partition has its old and its new replicas.
    change = partition_change(view, topic, partition)
    change.isr = isr
    change.replicas = [*target, *removing]
    change.removing = removing
    change.adding = sorted(set(target) - (set(partition.replicas) - coming))
    return change.record()


def _cancel(
    view: ClusterView, topic: TopicImage, partition: PartitionImage
) -> PartitionChangeRecord | None:
    if not partition.is_reassigning:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    coming = partition.adding_replicas
    replicas = [replica for replica in partition.replicas if replica not in coming]
    isr = [replica for replica in partition.isr if replica not in coming]
    may_lose = view.allows_unclean_election(topic.name)
    if not replicas:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Invalid replica assignment: addingReplicas contains all replicas.",
        )
    if not isr:
        # Only new replicas are in sync, so the cancellation is an unclean election.
        if not may_lose:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Unable to revert partition assignment for {topic.name}:{partition.partition} "
                "because it would require an unclean leader election.",
            )
        isr = [replica for replica in replicas if view.is_active(replica)][:1]
        if not isr and not view.is_elr_enabled:
            # Without eligible leader replicas, the in-sync set must not be empty.
            isr = replicas[:1]
    change = partition_change(view, topic, partition)
    change.election = Election.UNCLEAN if may_lose else Election.ONLINE
    change.isr, change.replicas = isr, replicas
    change.removing = change.adding = []
    return change.record()


def handle_list_partition_reassignments(
    view: ClusterView,
    request: ListPartitionReassignmentsRequest,
    api_version: int,
    moment: Moment,
) -> Decision | DecisionSteps:
    """Answer with the ongoing reassignments, of all partitions or of the requested ones."""
    topics = view.image.topics.by_name
    wanted: Iterable[tuple[str, Iterable[int]]] = (
        (topic.name, topic.partition_indexes) for topic in request.topics or ()
    )
    is_large = len(topics if request.topics is None else request.topics) > ITEMS_PER_STEP
    if request.topics is None:
        wanted = [(name, image.partitions) for name, image in topics.items()]
    return decided(_list_ongoing(topics, wanted), is_large=is_large)


def _list_ongoing(
    topics: Mapping[str, TopicImage], wanted: Iterable[tuple[str, Iterable[int]]]
) -> DecisionSteps:
    answers = []
    for number, (name, indexes) in enumerate(wanted, 1):
        if not number % TOPICS_PER_STEP:
            yield ()
        partitions = topics[name].partitions if name in topics else {}
        ongoing = [
            _ongoing(partitions[index])
            for index in indexes
            if index in partitions and partitions[index].is_reassigning
        ]
        if ongoing:
            answers.append(OngoingTopicReassignment(name=name, partitions=ongoing))
    return Decision(ListPartitionReassignmentsResponse(error_message=None, topics=answers))


def _ongoing(partition: PartitionImage) -> OngoingPartitionReassignment:
    return OngoingPartitionReassignment(
        partition_index=partition.partition,
        replicas=list(partition.replicas),
        adding_replicas=list(partition.adding_replicas),
        removing_replicas=list(partition.removing_replicas),
    )
