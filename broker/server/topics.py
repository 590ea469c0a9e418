"""What a change of the metadata means for the files of this node: logs come, change, go."""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from broker.errors import ErrorCode, KafkaError
from broker.log.config import LogConfig
from broker.log.partition_log import PartitionLog
from broker.metadata.image import TopicImage
from broker.metadata.topic_names import CONSUMER_OFFSETS
from broker.metadata.topics import TOPIC_RESOURCE, CreatedTopic, TopicControl, TopicDefaults
from broker.model import TopicPartition
from broker.protocol.messages.create_partitions import CreatePartitionsTopic
from broker.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig
from broker.server.clock import random_uuid

if TYPE_CHECKING:
    from broker.server.broker import Broker

log = logging.getLogger("millrace.topics")


class Topics:
    """Changes topics: asks the pure `TopicControl`, commits its records, then moves the files."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker

    @property
    def _control(self) -> TopicControl:
        return self._broker.cluster.topics

    def defaults(self) -> TopicDefaults:
        """Return what a request that says -1 gets on this node."""
        config = self._broker.config
        return TopicDefaults(
            partition_count=config.partition_count,
            replication_factor=config.replication_factor,
            broker_ids=(config.node_id,),
        )

    def open_all(self) -> None:
        """Lead every partition the metadata names, making a log where a crash came before it."""
        for image in self._control.by_name.values():
            self._open(image)

    def ensure(self, name: str) -> TopicImage:
        """Return the topic `name`, creating it with the defaults; raises KafkaError."""
        image = self._control.by_name.get(name)
        if image is None:
            self.create(self._automatic(name))
            image = self._control.by_name[name]
        return image

    def _automatic(self, name: str) -> CreatableTopic:
        config = self._broker.config
        if name != CONSUMER_OFFSETS:
            return CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)
        settings = {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(config.offsets_segment_bytes),
        }
        return CreatableTopic(
            name=name,
            num_partitions=config.offsets_partition_count,
            replication_factor=1,
            configs=[
                CreatableTopicConfig(name=key, value=value) for key, value in settings.items()
            ],
        )

    def create(self, topic: CreatableTopic, *, validate_only: bool = False) -> CreatedTopic:
        """Create a topic and answer when it can be served; raises KafkaError."""
        created = self._control.create(
            topic, topic_id=random_uuid().bytes, defaults=self.defaults()
        )
        if not validate_only:
            self._broker.commit(created.records)
            self._open(self._control.by_id[created.topic_id])
            log.info("topic created topic=%s partitions=%d", topic.name, created.partition_count)
        return created

    def add_partitions(self, topic: CreatePartitionsTopic, *, validate_only: bool) -> None:
        """Raise a topic's partition count; raises KafkaError."""
        records = self._control.add_partitions(topic, self.defaults())
        if not validate_only:
            self._broker.commit(records)
            self._open(self._control.named(topic.name))
            log.info("partitions added topic=%s partitions=%d", topic.name, topic.count)

    def delete(self, image: TopicImage) -> None:
        """Delete a topic: its metadata first, then its files; raises KafkaError."""
        self._broker.commit(self._control.delete(image.topic_id))
        for partition in self._broker.partitions.remove_topic(image.name):
            self._broker.log_directories.delete(
                partition.topic_partition, self._broker.clock.timestamp_ms()
            )
        self._broker.housekeeping.remove_deleted_files()
        self._broker.groups.on_topic_deleted(image.name, image.topic_id)
        log.info("topic deleted topic=%s", image.name)

    def change_settings(self, image: TopicImage, wanted: Mapping[str, str]) -> None:
        """Make the topic's own settings exactly `wanted`; raises KafkaError(INVALID_CONFIG)."""
        config = LogConfig.from_settings(wanted, self._broker.config.log)
        resource = (TOPIC_RESOURCE, image.name)
        self._broker.commit(self._broker.cluster.configs.change(resource, wanted))
        for partition in self._broker.partitions.topic(image.name):
            partition.log.update_config(config)

    def config_of(self, name: str) -> LogConfig:
        """Return a topic's settings over the broker's defaults."""
        own = self._broker.cluster.configs.settings_of(TOPIC_RESOURCE, name)
        return LogConfig.from_settings(own, self._broker.config.log)

    def _open(self, image: TopicImage) -> None:
        config = self.config_of(image.name)
        for partition in image.partitions.values():
            topic_partition = TopicPartition(image.name, partition.partition)
            if self._broker.partitions.find(*topic_partition) is not None:
                continue
            found = self._create_log(topic_partition, image.topic_id, config)
            found.become_leader(partition.leader_epoch)
            found.advance_high_watermark(found.log_end_offset)
            self._broker.partitions.add(found)

    def _create_log(
        self, topic_partition: TopicPartition, topic_id: bytes, config: LogConfig
    ) -> PartitionLog:
        try:
            return self._broker.log_directories.create(
                topic_partition, topic_id, config, self._broker.clock.timestamp_ms()
            )
        except OSError as error:
            log.error("cannot create a log topic_partition=%s error=%s", topic_partition, error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
