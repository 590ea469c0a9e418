"""AssignReplicasToDirs: which log directory of a broker has which of its replicas (KIP-858).

The controller needs this before a directory fails, so that it can then move exactly the leaderships
of that directory. A replica that is assigned to an offline directory is lost: the same record
removes it from the in-sync set and from the leadership.
"""

from broker.metadata.control.leadership.broker_changes import partition_change
from broker.metadata.control.leadership.partition_change import Election
from broker.metadata.control.view import ClusterView, Decision, Moment
from broker.metadata.image import BrokerImage
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    DirectoryResult,
    PartitionResult,
    TopicResult,
)
from common.kafka.protocol.records.metadata import PartitionChangeRecord


def handle_assign_replicas_to_dirs(
    view: ClusterView, request: AssignReplicasToDirsRequest, api_version: int, moment: Moment
) -> Decision:
    """Assign each replica separately; of two directories for one replica, the first counts."""
    broker = view.registered(request.broker_id, request.broker_epoch)
    records: list[Message] = []
    done: set[tuple[bytes, int]] = set()
    answers = []
    for directory in request.directories:
        answer = DirectoryResult(id=directory.id)
        for topic in directory.topics:
            result = TopicResult(topic_id=topic.topic_id)
            for partition in topic.partitions:
                key = (topic.topic_id, partition.partition_index)
                code, record = _assign(view, broker, directory.id, *key)
                if record is not None and key not in done:
                    done.add(key)
                    records.append(record)
                result.partitions.append(PartitionResult(partition_index=key[1], error_code=code))
            answer.topics.append(result)
        answers.append(answer)
    return Decision(AssignReplicasToDirsResponse(directories=answers), records)


def _assign(
    view: ClusterView, broker: BrokerImage, directory: bytes, topic_id: bytes, index: int
) -> tuple[ErrorCode, PartitionChangeRecord | None]:
    try:
        return ErrorCode.NONE, _assignment(view, broker, directory, topic_id, index)
    except KafkaError as error:
        return error.code, None


def _assignment(
    view: ClusterView, broker: BrokerImage, directory: bytes, topic_id: bytes, index: int
) -> PartitionChangeRecord | None:
    topic = view.image.topics.by_id.get(topic_id)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    partition = topic.partitions.get(index)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    broker_id = broker.broker_id
    if broker_id not in partition.replicas:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    change = partition_change(view, topic, partition)
    if not broker.has_online_directory(directory):
        change = partition_change(
            view,
            topic,
            partition,
            is_acceptable=lambda replica: replica != broker_id and view.is_active(replica),
        )
        change.isr = [replica for replica in partition.isr if replica != broker_id]
        if view.allows_unclean_election(topic.name):
            change.election = Election.UNCLEAN
    change.directories = {broker_id: directory}
    return change.record()
