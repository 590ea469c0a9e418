"""ElectLeaders: elect the preferred replica, or any replica (KIP-183, KIP-460)."""

from collections.abc import Iterable, Sequence

from broker.metadata.control.leadership.broker_changes import partition_change
from broker.metadata.control.leadership.partition_change import Election
from broker.metadata.control.limits import validate_record_count
from broker.metadata.control.steps import ITEMS_PER_STEP, decided
from broker.metadata.control.view import ClusterView, Decision, DecisionSteps, Moment
from broker.metadata.parts.topics import NO_LEADER
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from common.kafka.protocol.records.metadata import PartitionChangeRecord

PREFERRED, UNCLEAN = range(2)  # the election types of a request


def handle_elect_leaders(
    view: ClusterView, request: ElectLeadersRequest, api_version: int, moment: Moment
) -> Decision | DecisionSteps:
    """Elect for each partition separately; for all (null), leave out ELECTION_NOT_NEEDED."""
    election_type = request.election_type if api_version > 0 else PREFERRED
    if election_type not in {PREFERRED, UNCLEAN}:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown election type {election_type}")
    asked_for = request.topic_partitions
    wanted: Iterable[tuple[str, Sequence[int]]]
    if asked_for is None:
        topics = view.image.topics.by_name
        wanted = [(name, list(image.partitions)) for name, image in topics.items()]
        is_large = len(topics) > ITEMS_PER_STEP
    else:
        wanted = ((topic.topic, topic.partitions) for topic in asked_for)
        is_large = len(asked_for) > ITEMS_PER_STEP or any(
            len(topic.partitions) > ITEMS_PER_STEP for topic in asked_for
        )
    steps = _elect_each(view, wanted, election_type, tells_all=asked_for is not None)
    return decided(steps, is_large=is_large)


def _elect_each(
    view: ClusterView,
    wanted: Iterable[tuple[str, Sequence[int]]],
    election_type: int,
    *,
    tells_all: bool,
) -> DecisionSteps:
    records: list[Message] = []
    chosen: set[tuple[str, int]] = set()
    results = []
    count = 0
    for name, partitions in wanted:
        result = ReplicaElectionResult(topic=name)
        for partition in partitions:
            count += 1
            if not count % ITEMS_PER_STEP:
                yield ()
            answer = PartitionResult(partition_id=partition, error_message=None)
            try:
                if (name, partition) not in chosen:
                    records.append(_elect(view, name, partition, election_type))
                    chosen.add((name, partition))
            except KafkaError as error:
                answer.error_code, answer.error_message = error.code, error.message
            if tells_all or answer.error_code != ErrorCode.ELECTION_NOT_NEEDED:
                result.partition_result.append(answer)
        results.append(result)
        validate_record_count(len(records))
    return Decision(ElectLeadersResponse(replica_election_results=results), records)


def _elect(
    view: ClusterView, name: str, partition_id: int, election_type: int
) -> PartitionChangeRecord:
    topic = view.image.topics.by_name.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    partition = topic.partitions.get(partition_id)
    if partition is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{partition_id}"
        )
    is_led_as_wanted = (
        partition.leader == partition.replicas[0]
        if election_type == PREFERRED
        else partition.leader != NO_LEADER
    )
    if is_led_as_wanted:
        raise KafkaError(
            ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
        )
    change = partition_change(view, topic, partition)
    change.election = Election.PREFERRED if election_type == PREFERRED else Election.UNCLEAN
    record = change.record()
    if record is None and election_type == PREFERRED:
        raise KafkaError(
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available."
        )
    if record is None:
        raise KafkaError(
            ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
            "Eligible topic partition leaders are not available.",
        )
    return record
