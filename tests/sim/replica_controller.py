"""The controller of a replication simulation: the real one, on one sequential committed log.

That a quorum keeps such a log is what `quorum_cluster` shows; here every decision is committed at
once. What is simulated is that brokers hear of it late, in batches, and each at its own time.
"""

from random import Random
from typing import Any

from broker.metadata.control.view import ControllerConfig
from broker.metadata.controller import Controller, Moment
from broker.metadata.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    FEATURES_AT_FORMAT,
    SUPPORTED_FEATURES,
)
from broker.metadata.image import NO_LEADER, MetadataImage, PartitionImage, TopicImage
from broker.protocol.message import Message
from broker.protocol.messages.alter_partition import AlterPartitionRequest
from broker.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from broker.protocol.messages.broker_registration import Feature, Listener
from broker.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from broker.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from broker.protocol.records.metadata import PartitionChangeRecord

TOPIC = "t"
VERSIONS = {62: 4, 63: 2, 56: 3, 19: 7, 43: 2, 45: 1, 20: 6}
NO_PARTITION = PartitionImage(partition=0, replicas=(), isr=(), leader=NO_LEADER)
FEATURES = [
    Feature(name=name, min_supported_version=low, max_supported_version=high)
    for name, (low, high) in SUPPORTED_FEATURES.items()
]


class SimulatedController:
    """Invariant: `image` is what `records` add up to."""

    def __init__(self, random: Random, session_timeout_ms: int, *, is_elr_enabled: bool) -> None:
        features = dict(FEATURES_AT_FORMAT) | {ELIGIBLE_LEADER_REPLICAS_VERSION: 1}
        if not is_elr_enabled:
            del features[ELIGIBLE_LEADER_REPLICAS_VERSION]
        self.config = ControllerConfig(
            session_timeout_ms=session_timeout_ms,
            features_at_format=features,
        )
        self.random = random
        self.image = MetadataImage()
        self.records: list[Message] = []
        self.ends: list[int] = []
        """How many records there were after each decision: brokers see all of one, or nothing."""
        self.allows_unclean = False
        self.unclean_elections: list[tuple[int, int]] = []
        """(leader epoch, leader) of who was elected though he may lack what was committed."""
        self.elect(0)

    def elect(self, now_ms: int) -> None:
        """Let another controller take over: it knows the committed records and nothing else."""
        self.controller = Controller(self.image, self.config, self.random)
        self._commit(self.controller.activate(self._moment(now_ms)))

    def _moment(self, now_ms: int) -> Moment:
        return Moment(now_ms, now_ms, len(self.records))

    def _commit(self, records: list[Message], request: Message | None = None) -> None:
        for record in records:
            before = self.partition
            self.records.append(record)
            self.image.replay(record)
            if isinstance(record, PartitionChangeRecord) and record.leader >= 0:
                # The last to lead has all there was, when nobody else is eligible (KIP-966): where
                # anybody may be elected, it cannot be told whether that was why.
                known = {*before.isr, *before.elr}
                if not self.allows_unclean or not known:
                    known |= set(before.last_known_elr)
                if isinstance(request, AlterPartitionRequest):
                    # Who has just joined may end a move, and lead at once.
                    known |= set(record.isr or ())
                if record.leader not in known:
                    self.unclean_elections.append((self.partition.leader_epoch, record.leader))
        if records:
            self.ends.append(len(self.records))

    def handle(self, request: Message, now_ms: int) -> Any:
        version = VERSIONS[request.__api_key__]
        decision = self.controller.handle(request, version, self._moment(now_ms))
        self._commit(decision.records, request)
        return decision.response

    def tick(self, now_ms: int) -> None:
        """Fence who has been silent for too long."""
        while self.controller.next_deadline_ms() <= now_ms:
            self._commit(self.controller.tick(self._moment(now_ms)))

    def lose_broker(self, broker_id: int, now_ms: int) -> None:
        self._commit(self.controller.lose_broker(broker_id, self._moment(now_ms)))

    # --- what administrators do ---

    def create_topic(
        self, replicas: list[int], min_isr: int, now_ms: int, *, allows_unclean: bool = False
    ) -> None:
        topic = CreatableTopic(name=TOPIC, num_partitions=-1, replication_factor=-1)
        topic.assignments = [CreatableReplicaAssignment(partition_index=0, broker_ids=replicas)]
        settings = {"min.insync.replicas": str(min_isr)}
        if allows_unclean:
            settings["unclean.leader.election.enable"] = "true"
        topic.configs = [
            CreatableTopicConfig(name=name, value=value) for name, value in settings.items()
        ]
        self.handle(CreateTopicsRequest(topics=[topic]), now_ms)
        self.allows_unclean = allows_unclean

    def delete_topic(self, now_ms: int) -> None:
        self.handle(DeleteTopicsRequest(topics=[DeleteTopicState(name=TOPIC)]), now_ms)

    def elect_preferred(self, now_ms: int) -> None:
        topics = [TopicPartitions(topic=TOPIC, partitions=[0])]
        self.handle(ElectLeadersRequest(election_type=0, topic_partitions=topics), now_ms)

    def reassign(self, replicas: list[int] | None, now_ms: int) -> None:
        """Move the partition; None takes a move back."""
        partitions = [ReassignablePartition(partition_index=0, replicas=replicas)]
        topics = [ReassignableTopic(name=TOPIC, partitions=partitions)]
        self.handle(AlterPartitionReassignmentsRequest(topics=topics), now_ms)

    # --- what it knows ---

    @property
    def topic(self) -> TopicImage | None:
        return self.image.topics.by_name.get(TOPIC)

    @property
    def partition(self) -> PartitionImage:
        """The partition; one without replicas while there is no topic."""
        topic = self.topic
        return NO_PARTITION if topic is None else topic.partitions.get(0, NO_PARTITION)

    @property
    def topic_id(self) -> bytes | None:
        topic = self.topic
        return None if topic is None else topic.topic_id


def listener_of(broker_id: int) -> Listener:
    return Listener(name="PLAINTEXT", host="localhost", port=9000 + broker_id)
