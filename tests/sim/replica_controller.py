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
from broker.metadata.image import MetadataImage, PartitionImage
from broker.protocol.message import Message
from broker.protocol.messages.broker_registration import Feature, Listener
from broker.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from broker.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions

TOPIC = "t"
VERSIONS = {62: 4, 63: 2, 56: 3, 19: 7, 43: 2}
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
        self.elect(0)

    def elect(self, now_ms: int) -> None:
        """Let another controller take over: it knows the committed records and nothing else."""
        self.controller = Controller(self.image, self.config, self.random)
        self._commit(self.controller.activate(self._moment(now_ms)))

    def _moment(self, now_ms: int) -> Moment:
        return Moment(now_ms, now_ms, len(self.records))

    def _commit(self, records: list[Message]) -> None:
        for record in records:
            self.records.append(record)
            self.image.replay(record)

    def handle(self, request: Message, now_ms: int) -> Any:
        version = VERSIONS[request.__api_key__]
        decision = self.controller.handle(request, version, self._moment(now_ms))
        self._commit(decision.records)
        return decision.response

    def tick(self, now_ms: int) -> None:
        """Fence who has been silent for too long."""
        while self.controller.next_deadline_ms() <= now_ms:
            self._commit(self.controller.tick(self._moment(now_ms)))

    def create_topic(self, replicas: list[int], min_isr: int, now_ms: int) -> None:
        topic = CreatableTopic(name=TOPIC, num_partitions=-1, replication_factor=-1)
        topic.assignments = [CreatableReplicaAssignment(partition_index=0, broker_ids=replicas)]
        topic.configs = [CreatableTopicConfig(name="min.insync.replicas", value=str(min_isr))]
        answer = self.handle(CreateTopicsRequest(topics=[topic]), now_ms)
        assert answer.topics[0].error_code == 0, answer

    def elect_preferred(self, now_ms: int) -> None:
        topics = [TopicPartitions(topic=TOPIC, partitions=[0])]
        self.handle(ElectLeadersRequest(election_type=0, topic_partitions=topics), now_ms)

    @property
    def partition(self) -> PartitionImage:
        return self.image.topics.by_name[TOPIC].partitions[0]

    @property
    def topic_id(self) -> bytes:
        return self.image.topics.by_name[TOPIC].topic_id


def listener_of(broker_id: int) -> Listener:
    return Listener(name="PLAINTEXT", host="localhost", port=9000 + broker_id)
