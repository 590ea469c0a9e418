"""The controller of a replication simulation: the real one, on one sequential committed log.

`quorum_cluster` shows that a quorum keeps such a log; here every decision is committed at once. The
simulation makes brokers read the decisions late, in batches, and at different times.
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
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.alter_partition import AlterPartitionRequest
from common.kafka.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from common.kafka.protocol.messages.broker_registration import Feature, Listener
from common.kafka.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from common.kafka.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from common.kafka.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from common.kafka.protocol.records.metadata import PartitionChangeRecord

TOPIC = "t"
VERSIONS = {62: 4, 63: 2, 56: 3, 19: 7, 43: 2, 45: 1, 20: 6}
NO_PARTITION = PartitionImage(partition=0, replicas=(), isr=(), leader=NO_LEADER)
FEATURES = [
    Feature(name=name, min_supported_version=low, max_supported_version=high)
    for name, (low, high) in SUPPORTED_FEATURES.items()
]


class SimulatedController:
    """Invariant: `image` is the replay of `records`."""

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
        """The number of records after each decision: brokers read whole decisions."""
        self.allows_unclean = False
        self.unclean_elections: list[tuple[int, int]] = []
        """The (leader epoch, leader) of elected replicas that may lack committed records."""
        self.elect(0)

    def elect(self, now_ms: int) -> None:
        """Let another controller take over, with the committed records only."""
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
                # The last leader has all records if no other replica is eligible (KIP-966). If any
                # replica may be elected, the reason for the election is unknown.
                known = {*before.isr, *before.elr}
                if not self.allows_unclean or not known:
                    known |= set(before.last_known_elr)
                if isinstance(request, AlterPartitionRequest):
                    # A replica that has just joined may complete a reassignment and lead at once.
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
        """Fence the brokers whose sessions have ended."""
        while self.controller.next_deadline_ms() <= now_ms:
            self._commit(self.controller.tick(self._moment(now_ms)))

    def lose_broker(self, broker_id: int, now_ms: int) -> None:
        self._commit(self.controller.lose_broker(broker_id, self._moment(now_ms)))

    # --- administration ---

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
        """Reassign the partition; None cancels a reassignment."""
        partitions = [ReassignablePartition(partition_index=0, replicas=replicas)]
        topics = [ReassignableTopic(name=TOPIC, partitions=partitions)]
        self.handle(AlterPartitionReassignmentsRequest(topics=topics), now_ms)

    # --- state ---

    @property
    def topic(self) -> TopicImage | None:
        return self.image.topics.by_name.get(TOPIC)

    @property
    def partition(self) -> PartitionImage:
        """The partition, without replicas while the topic does not exist."""
        topic = self.topic
        return NO_PARTITION if topic is None else topic.partitions.get(0, NO_PARTITION)

    @property
    def topic_id(self) -> bytes | None:
        topic = self.topic
        return None if topic is None else topic.topic_id


def listener_of(broker_id: int) -> Listener:
    return Listener(name="PLAINTEXT", host="localhost", port=9000 + broker_id)
