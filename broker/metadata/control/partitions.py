"""CreatePartitions: add partitions to topics (KIP-195)."""

from collections.abc import Generator, Iterable, Sequence

from broker.metadata.control.assignments import (
    PARTITIONS_PER_STEP,
    new_partitions,
    place,
    validate_manual_assignment,
)
from broker.metadata.control.limits import (
    duplicates,
    validate_partition_count,
    validate_record_count,
)
from broker.metadata.control.steps import ITEMS_PER_STEP, committed, decided
from broker.metadata.control.view import ClusterView, Decision, DecisionSteps, Moment
from broker.metadata.image import TopicImage
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


def handle_create_partitions(
    view: ClusterView, request: CreatePartitionsRequest, api_version: int, moment: Moment
) -> Decision | DecisionSteps:
    """Handle each topic separately."""
    repeated = duplicates(topic.name for topic in request.topics)
    once = [topic for topic in request.topics if topic.name not in repeated]
    is_large = max(len(once), sum(_wanted_count(view, topic) for topic in once)) > ITEMS_PER_STEP
    return decided(_create(view, request, once, sorted(repeated)), is_large=is_large)


def _create(
    view: ClusterView,
    request: CreatePartitionsRequest,
    once: list[CreatePartitionsTopic],
    repeated: list[str],
) -> DecisionSteps:
    units: list[list[Message]] = []
    results: list[CreatePartitionsTopicResult] = []
    record_count = 0
    for number, topic in enumerate(once, start=1):
        result = CreatePartitionsTopicResult(name=topic.name, error_message=None)
        try:
            added = yield from add_partitions(view, topic)
        except KafkaError as error:
            result.error_code = error.code
            result.error_message = error.message
        else:
            units.append(added)
            record_count += len(added)
            validate_record_count(record_count)
        results.append(result)
        if not number % ITEMS_PER_STEP:
            yield ()
    results += [
        CreatePartitionsTopicResult(
            name=name, error_code=ErrorCode.INVALID_REQUEST, error_message="Duplicate topic name."
        )
        for name in repeated
    ]
    response = CreatePartitionsResponse(results=results)
    return (yield from committed(response, [] if request.validate_only else units))


def _wanted_count(view: ClusterView, topic: CreatePartitionsTopic) -> int:
    image = view.image.topics.by_name.get(topic.name)
    return 0 if image is None else max(topic.count - len(image.partitions), 0)


def add_partitions(
    view: ClusterView, topic: CreatePartitionsTopic
) -> Generator[Sequence[Message], None, list[Message]]:
    """Return the records of a topic's new partitions, in steps; raise KafkaError."""
    image = view.image.topics.named(topic.name)
    added = validate_added_count(topic, image)
    is_manual = topic.assignments is not None
    replicas: Iterable[list[int]]
    if topic.assignments is None:
        replicas = place(view, partition_count=added, replication_factor=image.replication_factor)
    else:
        replicas = [assignment.broker_ids for assignment in topic.assignments]
        for number, assigned in enumerate(replicas, start=1):
            validate_manual_assignment(view, assigned, image.replication_factor)
            if not number % PARTITIONS_PER_STEP:
                yield ()
    first = len(image.partitions)
    return [
        *(yield from new_partitions(view, image.topic_id, first, replicas, is_manual=is_manual))
    ]


def validate_added_count(topic: CreatePartitionsTopic, image: TopicImage) -> int:
    """Return the number of partitions to add; raise KafkaError if it is not valid."""
    current = len(image.partitions)
    if topic.count == current:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {current} partition(s).")
    if topic.count < current:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {current} partition(s); {topic.count} would "
            "not be an increase.",
        )
    added = topic.count - current
    if topic.assignments is not None and len(topic.assignments) != added:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {added} additional partition(s), but only "
            f"{len(topic.assignments)} assignment(s) were specified.",
        )
    validate_partition_count(added)
    return added
