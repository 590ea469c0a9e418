"""A controller with an image and a log in memory; this module replaces the shell, without waits.

Every record is encoded and decoded before it is replayed, as it is with a disk.
"""

from random import Random
from typing import Any

from broker.metadata.controller import (
    Controller,
    ControllerConfig,
    Decision,
    DecisionSteps,
    Moment,
)
from broker.metadata.delta import MetadataDelta
from broker.metadata.features import (
    LATEST_METADATA_VERSION,
    METADATA_VERSION,
    SUPPORTED_FEATURES,
)
from broker.metadata.image import BrokerImage, MetadataImage, PartitionImage
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from common.kafka.protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    Feature,
    Listener,
)
from common.kafka.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from common.kafka.protocol.records.metadata import decode_metadata_record, encode_metadata_record

LATEST = {1: 0, 62: 4, 63: 2, 56: 3, 19: 7, 20: 6, 37: 3, 33: 2, 44: 1, 49: 1, 48: 1, 57: 2, 43: 2}


class ControlledCluster:
    """One active controller. `start` registers brokers and makes them alive.

    The feature of eligible leader replicas is off, unless `features_at_format` enables it.
    """

    def __init__(self, *brokers: int, seed: int = 0, **config: Any) -> None:
        levels = {METADATA_VERSION: LATEST_METADATA_VERSION}
        defaults = {"features_at_format": levels}
        self.config = ControllerConfig(**{**defaults, **config})
        self.random = Random(seed)
        self.image = MetadataImage()
        self.log: list[bytes] = []
        self.now_ms = 1_000
        self.last_records: list[Message] = []
        self.steps: list[list[Message]] = []
        """The results of all steps but the last, of a decision with several steps."""
        self.elect_controller()
        for broker_id in brokers:
            self.start(broker_id)

    # --- actions of the shell ---

    def elect_controller(self) -> None:
        """Let a new controller take over, which has only the image."""
        self.controller = Controller(self.image, self.config, self.random)
        self.commit(self.controller.activate(self.moment))

    @property
    def moment(self) -> Moment:
        return Moment(self.now_ms, 1_700_000_000_000 + self.now_ms, len(self.log))

    def commit(self, records: list[Message]) -> None:
        self.last_records = records
        for record in records:
            encoded = encode_metadata_record(record)
            self.log.append(encoded)
            self.image.replay(decode_metadata_record(encoded))

    def ask(self, request: Message, api_version: int | None = None) -> Any:
        """Decide, commit, and return the answer."""
        if api_version is None:
            api_version = LATEST.get(request.__api_key__, 0)
        decided = self.controller.handle(request, api_version, self.moment)
        self.steps = []
        if not isinstance(decided, Decision):
            decided = self._take_steps(decided)
        self.commit(decided.records)
        return decided.response

    def _take_steps(self, steps: DecisionSteps) -> Decision:
        try:
            while True:
                self.steps.append(list(next(steps)))
                self.commit(self.steps[-1])
        except StopIteration as done:
            decision: Decision = done.value
            return decision

    def tick(self, after_ms: int = 0) -> None:
        """Advance the time, and end the sessions that have expired."""
        self.now_ms += after_ms
        while self.controller.next_deadline_ms() <= self.now_ms:
            records = self.controller.tick(self.moment)
            self.commit(records)
            # A node stops if a tick changes nothing and the next tick is due at once.
            assert records or self.controller.next_deadline_ms() > self.now_ms

    def lose(self, broker_id: int) -> None:
        self.commit(self.controller.lose_broker(broker_id, self.moment))

    def take_delta(self) -> MetadataDelta:
        return self.image.take_delta()

    def replayed(self) -> MetadataImage:
        """Return the image after a replay of the whole log."""
        image = MetadataImage()
        for encoded in self.log:
            image.replay(decode_metadata_record(encoded))
        return image

    # --- brokers ---

    def broker(self, broker_id: int) -> BrokerImage:
        return self.image.brokers[broker_id]

    def register(self, broker_id: int, incarnation: int = 1, **more: Any) -> Any:
        request = BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=self.config.cluster_id,
            incarnation_id=incarnation.to_bytes(16, "big"),
            listeners=[Listener(name="PLAINTEXT", host="localhost", port=9000 + broker_id)],
            features=[
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in SUPPORTED_FEATURES.items()
            ],
            log_dirs=[b"directory %06d" % broker_id],
        )
        for name, value in more.items():
            setattr(request, name, value)
        return self.ask(request)

    def heartbeat(self, broker_id: int, **more: Any) -> Any:
        broker = self.image.brokers.get(broker_id)
        request = BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=-1 if broker is None else broker.epoch,
            current_metadata_offset=len(self.log) - 1,
        )
        for name, value in more.items():
            setattr(request, name, value)
        return self.ask(request)

    def start(self, broker_id: int, incarnation: int = 1, **more: Any) -> None:
        answer = self.register(broker_id, incarnation, **more)
        assert answer.error_code == 0, answer
        answer = self.heartbeat(broker_id)
        assert (answer.error_code, answer.is_fenced) == (0, False), answer

    # --- topics ---

    def create(self, name: str, *assignments: list[int], **more: Any) -> Any:
        """Create a topic, with assigned replicas or `num_partitions`; return its result."""
        topic = CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)
        topic.assignments = [
            CreatableReplicaAssignment(partition_index=index, broker_ids=replicas)
            for index, replicas in enumerate(assignments)
        ]
        for key, value in more.items():
            setattr(topic, key, value)
        return self.ask(CreateTopicsRequest(topics=[topic])).topics[0]

    def partition(self, name: str, index: int = 0) -> PartitionImage:
        return self.image.topics.by_name[name].partitions[index]
