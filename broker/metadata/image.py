"""The whole metadata of the cluster: the state that follows from the committed records.

All nodes replay the same records, so their images are equal. A controller decides on the image, and
a broker follows it by its deltas. Only `replay` changes it, and it never refuses a record: records
were checked when they were built. All other code only reads the image.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from broker.metadata.delta import MetadataDelta
from broker.metadata.parts.acls import AclsImage
from broker.metadata.parts.brokers import (
    BrokerImage,
    ControllerImage,
    ProducerIdsImage,
    broker_from_record,
    change_broker,
    controller_from_record,
)
from broker.metadata.parts.configs import TOPIC_RESOURCE, ConfigsImage, QuotasImage
from broker.metadata.parts.delegation_tokens import DelegationTokensImage
from broker.metadata.parts.scram import ScramImage
from broker.metadata.parts.topics import NO_LEADER, PartitionImage, TopicImage, TopicsImage
from common.kafka.protocol.message import Message
from common.kafka.protocol.records.metadata import (
    AccessControlEntryRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
)

__all__ = [
    "NO_LEADER",
    "BrokerImage",
    "ControllerImage",
    "MetadataImage",
    "PartitionImage",
    "TopicImage",
    "TopicsImage",
]


class MetadataImage:
    """The parts of the metadata, from topics to delegation tokens."""

    def __init__(self) -> None:
        self.topics = TopicsImage()
        self.configs = ConfigsImage()
        self.brokers: dict[int, BrokerImage] = {}
        self.controllers: dict[int, ControllerImage] = {}
        self.client_quotas = QuotasImage()
        self.acls = AclsImage()
        self.scram = ScramImage()
        self.delegation_tokens = DelegationTokensImage()
        self.features: dict[str, int] = {}  # finalized levels, without features at level 0
        self.producer_ids = ProducerIdsImage()
        self._delta = MetadataDelta()
        self._replays: dict[type[Message], Callable[[Any], None]] = {
            TopicRecord: self._replay_topic,
            PartitionRecord: self._replay_partition,
            PartitionChangeRecord: self._replay_partition_change,
            RemoveTopicRecord: self._replay_remove_topic,
            ClearElrRecord: self._replay_clear_elr,
            RegisterBrokerRecord: self._replay_register_broker,
            BrokerRegistrationChangeRecord: self._replay_change_broker,
            FenceBrokerRecord: self._replay_fence_broker,
            UnfenceBrokerRecord: self._replay_unfence_broker,
            UnregisterBrokerRecord: self._replay_unregister_broker,
            RegisterControllerRecord: self._replay_register_controller,
            ConfigRecord: self._replay_config,
            ClientQuotaRecord: self._replay_quota,
            AccessControlEntryRecord: self.acls.replay,
            RemoveAccessControlEntryRecord: self.acls.replay_remove,
            UserScramCredentialRecord: self.scram.replay,
            RemoveUserScramCredentialRecord: self.scram.replay_remove,
            DelegationTokenRecord: self.delegation_tokens.replay,
            RemoveDelegationTokenRecord: self.delegation_tokens.replay_remove,
            FeatureLevelRecord: self._replay_feature,
            ProducerIdsRecord: self._replay_producer_ids,
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MetadataImage) and (
            self.topics == other.topics
            and self.configs == other.configs
            and self.brokers == other.brokers
            and self.controllers == other.controllers
            and self.client_quotas == other.client_quotas
            and self.acls == other.acls
            and self.scram == other.scram
            and self.delegation_tokens == other.delegation_tokens
            and self.features == other.features
            and self.producer_ids == other.producer_ids
        )

    __hash__ = None  # type: ignore[assignment]  # it changes

    def replay(self, record: Message) -> None:
        """Apply one committed record; ignore types that do not change the image."""
        replay = self._replays.get(type(record))
        if replay is not None:
            replay(record)

    def prepare(self, record: Message) -> Callable[[], None]:
        """Do the part of a replay that changes nothing; return a function that does the rest.

        For a partition record, of which a batch may have very many, this is nearly all of the work.
        """
        if isinstance(record, PartitionRecord):
            partition = self.topics.partition_from_record(record)
            return partial(self._put_partition, record.topic_id, partition)
        return partial(self.replay, record)

    def take_delta(self) -> MetadataDelta:
        """Return the changes since the last call."""
        delta = self._delta
        if not delta.is_empty:
            self._delta = MetadataDelta()
            return delta
        return MetadataDelta()

    # --- topics ---

    def _replay_topic(self, record: TopicRecord) -> None:
        self.topics.replay_topic(record)
        self._delta.created_topics.add(record.topic_id)

    def _replay_partition(self, record: PartitionRecord) -> None:
        self._put_partition(record.topic_id, self.topics.partition_from_record(record))

    def _put_partition(self, topic_id: bytes, partition: PartitionImage) -> None:
        self.topics.put_partition(topic_id, partition)
        self._touch(topic_id, partition.partition)

    def _replay_partition_change(self, record: PartitionChangeRecord) -> None:
        before, after = self.topics.replay_partition_change(record)
        self._delta.elections.note(before, after)
        self._touch(record.topic_id, record.partition_id)

    def _replay_remove_topic(self, record: RemoveTopicRecord) -> None:
        image = self.topics.replay_remove(record.topic_id)
        self._delta.remove_topic(image)
        if self.configs.forget((TOPIC_RESOURCE, image.name)):
            self._delta.changed_configs.add((TOPIC_RESOURCE, image.name))

    def _replay_clear_elr(self, record: ClearElrRecord) -> None:
        for image in self.topics.replay_clear_elr(record.topic_name):
            for partition in image.partitions:
                self._touch(image.topic_id, partition)

    def _touch(self, topic_id: bytes, partition: int) -> None:
        changed = self._delta.changed_partitions.get(topic_id)
        if changed is None:
            changed = self._delta.changed_partitions[topic_id] = set()
        changed.add(partition)

    # --- brokers and controllers ---

    def _replay_register_broker(self, record: RegisterBrokerRecord) -> None:
        self.brokers[record.broker_id] = broker_from_record(record)
        self._delta.changed_brokers.add(record.broker_id)

    def _replay_change_broker(self, record: BrokerRegistrationChangeRecord) -> None:
        change_broker(self.brokers[record.broker_id], record)
        self._delta.changed_brokers.add(record.broker_id)

    def _replay_fence_broker(self, record: FenceBrokerRecord) -> None:
        self.brokers[record.id].is_fenced = True
        self._delta.changed_brokers.add(record.id)

    def _replay_unfence_broker(self, record: UnfenceBrokerRecord) -> None:
        self.brokers[record.id].is_fenced = False
        self._delta.changed_brokers.add(record.id)

    def _replay_unregister_broker(self, record: UnregisterBrokerRecord) -> None:
        del self.brokers[record.broker_id]
        self._delta.changed_brokers.add(record.broker_id)

    def _replay_register_controller(self, record: RegisterControllerRecord) -> None:
        self.controllers[record.controller_id] = controller_from_record(record)

    # --- the rest ---

    def _replay_config(self, record: ConfigRecord) -> None:
        self._delta.changed_configs.add(self.configs.replay(record))

    def _replay_quota(self, record: ClientQuotaRecord) -> None:
        self.client_quotas.replay(record)
        self._delta.quotas_changed = True

    def _replay_feature(self, record: FeatureLevelRecord) -> None:
        if record.feature_level == 0:
            self.features.pop(record.name, None)
        else:
            self.features[record.name] = record.feature_level
        self._delta.features_changed = True

    def _replay_producer_ids(self, record: ProducerIdsRecord) -> None:
        self.producer_ids.replay(record)
