"""CreateTopics and DeleteTopics. Each topic is handled separately: a refusal affects only one."""

from collections.abc import Generator, Iterable, Sequence

from broker.log.config import LogConfig
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
from broker.metadata.parts.configs import TOPIC_RESOURCE
from broker.metadata.topic_names import CLUSTER_METADATA, collision_key, validate_topic_name
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from common.kafka.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from common.kafka.protocol.records.metadata import (
    ConfigRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)

NO_TOPIC_ID = bytes(16)
DEFAULT = -1
FIRST_VERSION_WITH_TOPIC_IDS = 6
FIRST_VERSION_WITH_DELETION_DISABLED = 3


# --- create ---


def handle_create_topics(
    view: ClusterView, request: CreateTopicsRequest, api_version: int, moment: Moment
) -> Decision | DecisionSteps:
    """Create each valid topic; the answer has an error for each of the others."""
    repeated = duplicates(topic.name for topic in request.topics)
    once = [topic for topic in request.topics if topic.name not in repeated]
    count = sum(_wanted_partition_count(view, topic) for topic in once)
    validate_partition_count(count)
    is_large = max(len(once), count) > ITEMS_PER_STEP
    return decided(_create(view, request, once, sorted(repeated)), is_large=is_large)


def _create(
    view: ClusterView, request: CreateTopicsRequest, once: list[CreatableTopic], repeated: list[str]
) -> DecisionSteps:
    units: list[list[Message]] = []
    record_count = 0
    results: list[CreatableTopicResult] = []
    taken: dict[str, str] = {}  # collision key -> the topic of this request that has it
    for number, topic in enumerate(once, start=1):
        try:
            _validate_new_name(view, topic.name, taken.get(collision_key(topic.name)))
            result, records = yield from create_topic(view, topic)
        except KafkaError as error:
            result = CreatableTopicResult(
                name=topic.name, error_code=error.code, error_message=error.message
            )
        else:
            units.append(records)
            taken[collision_key(topic.name)] = topic.name
            record_count += len(records)
            validate_record_count(record_count)
        results.append(result)
        if not number % ITEMS_PER_STEP:
            yield ()
    results += [
        CreatableTopicResult(
            name=name,
            error_code=ErrorCode.INVALID_REQUEST,
            error_message="Duplicate topic name.",
        )
        for name in repeated
    ]
    if request.validate_only:
        units = []
        for result in results:
            result.topic_id = NO_TOPIC_ID
    return (yield from committed(CreateTopicsResponse(topics=results), units))


def create_topic(
    view: ClusterView, topic: CreatableTopic
) -> Generator[Sequence[Message], None, tuple[CreatableTopicResult, list[Message]]]:
    """Return the answer and the records of a topic with an unused name, in steps.

    Raise KafkaError.
    """
    settings = topic_settings(topic, view.config.log)
    topic_id = _new_topic_id(view)
    partitions = yield from _new_partitions(view, topic, topic_id)
    result = CreatableTopicResult(
        name=topic.name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=len(partitions),
        replication_factor=len(partitions[0].replicas),
        configs=view.config.describe_topic_settings(settings),
    )
    records: list[Message] = [TopicRecord(name=topic.name, topic_id=topic_id)]
    records += [
        ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name=topic.name, name=name, value=value)
        for name, value in sorted(settings.items())
    ]
    return result, [*records, *partitions]


def topic_settings(topic: CreatableTopic, defaults: LogConfig | None = None) -> dict[str, str]:
    """Return the topic's own settings; raise INVALID_CONFIG."""
    nulls = [config.name for config in topic.configs if config.value is None]
    if nulls:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Null value not supported for topic configs: {','.join(nulls)}",
        )
    settings = {config.name: config.value for config in topic.configs if config.value is not None}
    if settings:
        LogConfig.from_settings(settings, defaults)
    return settings


def _wanted_partition_count(view: ClusterView, topic: CreatableTopic) -> int:
    if topic.assignments:
        return len(topic.assignments)
    count = view.config.partition_count if topic.num_partitions == DEFAULT else topic.num_partitions
    return max(count, 0)


def _validate_new_name(view: ClusterView, name: str, colliding: str | None) -> None:
    if name == CLUSTER_METADATA:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Creation of internal topic {CLUSTER_METADATA} is prohibited.",
        )
    validate_topic_name(name)
    topics = view.image.topics
    if name in topics.by_name:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    colliding = topics.colliding_name(name) or colliding
    if colliding is not None:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' collides with existing topic: {colliding}",
        )


def _new_topic_id(view: ClusterView) -> bytes:
    """Return an unused random UUID of version 4, as in Kafka."""
    while True:
        number = bytearray(view.random.randbytes(16))
        number[6] = number[6] & 0x0F | 0x40
        number[8] = number[8] & 0x3F | 0x80
        topic_id = bytes(number)
        # Kafka's tools take an id that starts with a dash for an option (KAFKA-13191).
        if topic_id[0] >> 2 != 62 and topic_id not in view.image.topics.by_id:
            return topic_id


def _new_partitions(
    view: ClusterView, topic: CreatableTopic, topic_id: bytes
) -> Generator[Sequence[Message], None, list[PartitionRecord]]:
    is_manual = bool(topic.assignments)
    replicas = (yield from _manual(view, topic)) if is_manual else _automatic(view, topic)
    return (yield from new_partitions(view, topic_id, 0, replicas, is_manual=is_manual))


def _manual(
    view: ClusterView, topic: CreatableTopic
) -> Generator[Sequence[Message], None, list[list[int]]]:
    for value, name in (
        (topic.replication_factor, "replication factor"),
        (topic.num_partitions, "numPartitions"),
    ):
        if value != DEFAULT:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"A manual partition assignment was specified, but {name} was not set to -1.",
            )
    given: dict[int, list[int]] = {}
    factor: int | None = None
    for assignment in topic.assignments:
        if assignment.partition_index in given:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "Found multiple manual partition assignments for partition "
                f"{assignment.partition_index}",
            )
        validate_manual_assignment(view, assignment.broker_ids, factor)
        factor = len(assignment.broker_ids)
        given[assignment.partition_index] = assignment.broker_ids
        if not len(given) % PARTITIONS_PER_STEP:
            yield ()
    if sorted(given) != list(range(len(given))):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    return [given[partition] for partition in range(len(given))]


def _automatic(view: ClusterView, topic: CreatableTopic) -> Iterable[list[int]]:
    if topic.replication_factor < DEFAULT or topic.replication_factor == 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if topic.num_partitions < DEFAULT or topic.num_partitions == 0:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        )
    factor = topic.replication_factor
    return place(
        view,
        partition_count=_wanted_partition_count(view, topic),
        replication_factor=view.config.replication_factor if factor == DEFAULT else factor,
    )


# --- delete ---


def handle_delete_topics(
    view: ClusterView, request: DeleteTopicsRequest, api_version: int, moment: Moment
) -> Decision | DecisionSteps:
    """Delete each valid topic; a topic that the request names twice is refused."""
    wanted = list(request.topics)
    if api_version < FIRST_VERSION_WITH_TOPIC_IDS:
        wanted = [DeleteTopicState(name=name) for name in request.topic_names]
    if not view.config.delete_topic:
        is_known = api_version >= FIRST_VERSION_WITH_DELETION_DISABLED
        code = ErrorCode.TOPIC_DELETION_DISABLED if is_known else ErrorCode.INVALID_REQUEST
        raise KafkaError(code, "Topic deletion is disabled.")
    return decided(_delete(view, wanted), is_large=len(wanted) > ITEMS_PER_STEP)


def _delete(view: ClusterView, wanted: list[DeleteTopicState]) -> DecisionSteps:
    results: list[DeletableTopicResult] = []
    images: list[TopicImage] = []
    for number, state in enumerate(_named_once(wanted, results), 1):
        if not number % ITEMS_PER_STEP:
            yield ()
        try:
            images.append(_find(view, state))
        except KafkaError as error:
            results.append(_refused(state, error.code, error.message))
    repeated = duplicates(image.name for image in images)
    records: list[Message] = []
    for image in images:
        if image.name not in repeated:
            records.append(RemoveTopicRecord(topic_id=image.topic_id))
            results.append(DeletableTopicResult(name=image.name, topic_id=image.topic_id))
    results += [
        DeletableTopicResult(
            name=name,
            topic_id=view.image.topics.by_name[name].topic_id,
            error_code=ErrorCode.INVALID_REQUEST,
            error_message="The provided topic name maps to an ID that was already supplied.",
        )
        for name in sorted(repeated)
    ]
    validate_record_count(len(records))
    units = ([record] for record in records)
    return (yield from committed(DeleteTopicsResponse(responses=results), units))


def _named_once(
    wanted: list[DeleteTopicState], results: list[DeletableTopicResult]
) -> Iterable[DeleteTopicState]:
    """Return the topics that are named once; add refusals of the others to `results`."""
    repeated_names = duplicates(state.name for state in wanted if state.name is not None)
    repeated_ids = duplicates(state.topic_id.hex() for state in wanted if state.name is None)
    repeated_ids.discard(NO_TOPIC_ID.hex())
    results += [
        _refused(DeleteTopicState(name=name), ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
        for name in sorted(repeated_names)
    ]
    results += [
        _refused(
            DeleteTopicState(name=None, topic_id=bytes.fromhex(topic_id)),
            ErrorCode.INVALID_REQUEST,
            "Duplicate topic id.",
        )
        for topic_id in sorted(repeated_ids)
    ]
    return [
        state
        for state in wanted
        if state.name not in repeated_names
        and (state.name is not None or state.topic_id.hex() not in repeated_ids)
    ]


def _find(view: ClusterView, state: DeleteTopicState) -> TopicImage:
    if state.name is not None:
        if state.topic_id != NO_TOPIC_ID:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id."
            )
        return view.image.topics.named(state.name)
    if state.topic_id == NO_TOPIC_ID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    image = view.image.topics.by_id.get(state.topic_id)
    if image is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
    return image


def _refused(state: DeleteTopicState, code: ErrorCode, message: str | None) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=state.name, topic_id=state.topic_id, error_code=code, error_message=message
    )
