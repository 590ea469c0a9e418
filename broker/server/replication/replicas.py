"""Creates, changes and removes the logs of this node as the metadata changes.

The files follow the metadata image: `open_all` begins with the whole image, `apply` continues with
the changes of a batch of records, or of a snapshot. There is a log for every partition that has
this broker among its replicas; the role of the replica is in its `Partition`.

A log is removed only if the metadata says that its topic id was deleted, or that its replica is on
another broker. Any other log that is in the way of a partition is set aside, and the partition
stays offline until an operator has decided about the log; a replica that has a leader and is not in
sync starts with an empty log beside it.

A replica whose disk has failed stays offline as long as that disk: a second log in another
directory would conflict with the first when the disk is back.

Roles change at once. The files of very many partitions are created and removed in steps
(`file_steps`), in the order of the changes. Each step reads the image again when its turn comes, so
that a change that was reverted has no effect. Before its step a partition is expected
(`Partitions.expect`), and requests for it get an error that clients retry.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial

from broker.log.checkpoints import META_PROPERTIES, encode_uuid
from broker.log.config import LogConfig
from broker.log.log_directories import LogDirectories
from broker.metadata.delta import MetadataDelta
from broker.metadata.image import NO_LEADER, PartitionImage, TopicImage
from broker.metadata.parts.brokers import (
    LOST_DIRECTORY,
    MIGRATING_DIRECTORY,
    UNASSIGNED_DIRECTORY,
)
from broker.metadata.topic_names import CLUSTER_METADATA
from broker.model import TopicPartition
from broker.replication.replica import Replica, ReplicationSettings
from broker.server.clock import Clock
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.replication.file_steps import FileSteps
from broker.server.replication.partitions import AwaitsCommit, Partition, Partitions
from broker.server.settings.config_entries import TOPIC
from broker.server.settings.own_settings import DynamicSettings
from common.kafka.errors import KafkaError

log = logging.getLogger("millstream.replicas")

NO_TOPIC_ID = bytes(16)
RESERVED_DIRECTORIES = (LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY)
"""The reserved ids that stand for no directory."""


class Replicas:
    """Owns the logs. Invariant: they are those of the image, except on failed disks."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        settings: DynamicSettings,
        metadata: ClusterMetadata,
        partitions: Partitions,
        log_directories: LogDirectories,
        clock: Clock,
        *,
        on_deleted: Callable[[], None],
        on_failure: Callable[[str, int, OSError], object],
    ) -> None:
        self._settings = settings
        self._node_id = settings.static.node_id
        self._metadata = metadata
        self._partitions = partitions
        self._log_directories = log_directories
        self._clock = clock
        self._on_deleted = on_deleted
        self._on_failure = on_failure
        self._deleted_ids: set[bytes] = set()
        """The ids of the topics that were deleted before this node followed the metadata."""
        replication = settings.static.replication
        self._replication = ReplicationSettings(replication.lag_time_max_ms, replication.backoff_ms)
        self.on_role: Callable[[Partition], None] = lambda partition: None
        """Called when a partition leads or follows in a new epoch, and when it is removed."""
        self.on_opened: Callable[[list[TopicPartition]], None] = lambda opened: None
        """Called with the partitions that were opened in later turns than their change."""
        self._steps = FileSteps(loop)
        self._steps.on_done = self._tell
        self._opened: list[TopicPartition] = []

    # --- the image says what is here ---

    def note_deleted(self, delta: MetadataDelta) -> None:
        """Record the topics that were deleted before `open_all`."""
        self._deleted_ids |= delta.deleted_ids

    def open_all(self) -> None:
        """Open the logs of the image; other logs are kept, and named in the log."""
        self._delete_what_is_known_to_be()
        for image in self._metadata.image.topics.by_name.values():
            for partition in image.partitions.values():
                if self._node_id in partition.replicas:
                    self._begin(image, partition)
        self._warn_of_strays()
        self._name_missing_directories()

    def _delete_what_is_known_to_be(self) -> None:
        for found in list(self._log_directories.all()):
            if found.topic_id in self._deleted_ids:
                log.info("topic deleted meanwhile topic_partition=%s", found.topic_partition)
                self._remove_files(found.topic_partition, found.topic_id)
        self._deleted_ids.clear()

    def _warn_of_strays(self) -> None:
        """Log the names of logs that are not assigned here; they are never deleted."""
        topics = self._metadata.image.topics
        for stray in self._log_directories.all():
            topic, number = stray.topic_partition
            image = topics.by_name.get(topic)
            assigned = None if image is None else image.partitions.get(number)
            is_known = assigned is not None and self._node_id in assigned.replicas
            if not is_known and topic != CLUSTER_METADATA:
                log.warning("not assigned to this node: directory=%s", stray.directory)

    def _name_missing_directories(self) -> None:
        """Log which replicas are assigned to a directory that this node does not have."""
        directories = self._log_directories.directories
        known = {*RESERVED_DIRECTORIES, *(directory.directory_id for directory in directories)}
        missing: Counter[bytes] = Counter()
        leaderless: Counter[bytes] = Counter()
        for image in self._metadata.image.topics.by_name.values():
            for partition in image.partitions.values():
                places = zip(partition.replicas, partition.directories, strict=False)
                own = [
                    place for node, place in places if node == self._node_id and place not in known
                ]
                missing.update(own)
                leaderless.update(own if partition.leader == NO_LEADER else ())
        for directory_id, count in sorted(missing.items()):
            log.error(
                "no log directory here has the id of one with replicas directory.id=%s replicas=%d "
                "without_leader=%d: these replicas are offline until it is in log.dirs again, or "
                "directory.id is put right in %s",
                encode_uuid(directory_id),
                count,
                leaderless[directory_id],
                " or ".join(f"{directory.path}/{META_PROPERTIES}" for directory in directories),
            )

    def apply(self, delta: MetadataDelta) -> None:
        """Apply the changes of the metadata."""
        topics = self._metadata.image.topics
        for deleted in delta.deleted_topics:
            self._remove_topic(deleted)
            log.info("topic deleted topic=%s", deleted.name)
        for topic_id, numbers in delta.changed_partitions.items():
            image = topics.by_id.get(topic_id)
            if image is not None:
                self._follow(image, sorted(numbers))
        for resource_type, name in delta.changed_configs:
            if resource_type == TOPIC:
                self._update_config(name)
        self._opened.clear()  # The caller handles these itself.
        if delta.deleted_topics:
            self._on_deleted()

    def update_configs(self) -> None:
        """Set the settings of every log again, after the defaults of this node have changed."""
        for name in {partition.topic_partition.topic for partition in self._partitions}:
            self._update_config(name)

    def config_of(self, name: str) -> LogConfig:
        """Return a topic's settings over the broker's defaults."""
        own = self._metadata.image.configs.settings_of(TOPIC, name)
        return LogConfig.from_settings(own, self._settings.current.log)

    def _update_config(self, name: str) -> None:
        partitions = list(self._partitions.topic(name))
        if partitions:
            config = self.config_of(name)
            for partition in partitions:
                partition.log.update_config(config)
                self._partitions.update_min_insync_replicas(partition)

    def active_epoch(self, broker_id: int) -> int | None:
        """Return the epoch of a broker that may be in sync, None for one that may not."""
        broker = self._metadata.image.brokers.get(broker_id)
        return broker.epoch if broker is not None and broker.is_active else None

    # --- one partition ---

    def _follow(self, image: TopicImage, numbers: Iterable[int]) -> None:
        """Lead, follow or drop each partition; those that are not open yet, in steps."""
        expected: list[int] = []
        for number in numbers:
            partition = image.partitions[number]
            here = self._partitions.find(image.name, number)
            if self._node_id not in partition.replicas:
                self._remove(TopicPartition(image.name, number), image.topic_id)
            elif here is not None:
                self._take_role(here, partition)
            else:
                expected.append(number)
        if expected:
            self._partitions.expect(image.name, expected)
            self._steps.do(
                partial(self._begin_expected, image.topic_id, TopicPartition(image.name, number))
                for number in expected
            )

    def _begin_expected(self, topic_id: bytes, topic_partition: TopicPartition) -> None:
        """Open the partitions that the image has at this time."""
        image = self._metadata.image.topics.by_id.get(topic_id)
        partition = self._assigned(topic_id, topic_partition)
        if image is None or partition is None or self._partitions.find(*topic_partition):
            return
        self._partitions.expect_no_more(topic_partition)
        self._begin(image, partition)
        self._opened.append(topic_partition)

    def _assigned(self, topic_id: bytes, topic_partition: TopicPartition) -> PartitionImage | None:
        """Return a partition that has this broker among its replicas."""
        image = self._metadata.image.topics.by_id.get(topic_id)
        partition = None if image is None else image.partitions.get(topic_partition.partition)
        is_here = partition is not None and self._node_id in partition.replicas
        return partition if is_here else None

    def _begin(self, image: TopicImage, partition: PartitionImage) -> None:
        here = self._open(image, partition)
        if here is not None:
            self._take_role(here, partition)

    def _take_role(self, here: Partition, partition: PartitionImage) -> None:
        if self._partitions.apply(here, partition):
            self.on_role(here)

    def _tell(self) -> None:
        opened, self._opened = self._opened, []
        self.on_opened(opened)
        self._on_deleted()

    def _open(self, image: TopicImage, partition_image: PartitionImage) -> Partition | None:
        topic_partition = TopicPartition(image.name, partition_image.partition)
        if self._lies_offline(partition_image):
            log.warning("log directory is offline topic_partition=%s", topic_partition)
            return None
        try:
            self._set_aside_another(image, topic_partition)
            if self._is_filled_by_another(partition_image):
                self._log_directories.begin_beside_stray(topic_partition)
            found = self._log_directories.create(
                topic_partition,
                image.topic_id,
                self.config_of(image.name),
                self._clock.timestamp_ms(),
            )
        except (OSError, KafkaError) as error:
            # Clients get KAFKA_STORAGE_ERROR until the directory is online again.
            log.error("cannot open a log topic_partition=%s error=%s", topic_partition, error)
            return None
        replica: Replica[AwaitsCommit] = Replica(
            self._node_id,
            found,
            self.active_epoch,
            self._replication,
            min_insync_replicas=found.config.min_insync_replicas,
        )
        partition = Partition(found, replica)
        self._partitions.add(partition)
        return partition

    def _lies_offline(self, partition: PartitionImage) -> bool:
        """Return whether its log is in none of the directories that are online.

        The id of a directory that failed when it was opened is unknown.
        """
        directories = self._log_directories.directories
        if not any(directory.is_offline for directory in directories):
            return False
        places = dict(zip(partition.replicas, partition.directories, strict=False))
        place = places.get(self._node_id, UNASSIGNED_DIRECTORY)
        online = [each.directory_id for each in directories if not each.is_offline]
        return place not in RESERVED_DIRECTORIES and place not in online

    def _is_filled_by_another(self, partition: PartitionImage) -> bool:
        """Return whether this replica has to copy its whole log from its leader."""
        return partition.leader not in {NO_LEADER, self._node_id} and (
            self._node_id not in partition.isr
        )

    def forget(self, lost: Iterable[TopicPartition]) -> None:
        """Stop serving the partitions of a log directory that has failed."""
        for topic_partition in lost:
            removed = self._partitions.remove(topic_partition)
            if removed is not None:
                self.on_role(removed)

    def _set_aside_another(self, image: TopicImage, topic_partition: TopicPartition) -> None:
        """Set aside a log that belongs to another topic of the same name."""
        earlier = self._log_directories.get(topic_partition)
        if earlier is None or earlier.topic_id in {NO_TOPIC_ID, image.topic_id}:
            return
        reason = (
            f"its topic id is {encode_uuid(earlier.topic_id)}, and the cluster's topic "
            f"{image.name} has {encode_uuid(image.topic_id)}"
        )
        self._log_directories.set_aside(topic_partition, reason)

    def _remove_topic(self, deleted: TopicImage) -> None:
        """Stop serving a topic at once; its files are removed in later steps.

        It may have ten thousand partitions, so each step is made when its turn comes.
        """
        name, topic_id = deleted.name, deleted.topic_id
        self.forget([partition.topic_partition for partition in self._partitions.topic(name)])
        self._partitions.expect_none(name)
        found = (TopicPartition(name, number) for number in deleted.partitions)
        self._steps.do(
            partial(self._remove_files, one, topic_id)
            for one in found
            if self._log_directories.directory_of(one) is not None
        )

    def _remove(self, topic_partition: TopicPartition, topic_id: bytes) -> None:
        """Stop serving a partition at once; its files are removed in a later step."""
        self.forget((topic_partition,))
        self._partitions.expect_no_more(topic_partition)
        if self._log_directories.directory_of(topic_partition) is not None:
            self._steps.do((partial(self._remove_files, topic_partition, topic_id),))

    def _remove_files(self, topic_partition: TopicPartition, topic_id: bytes) -> None:
        """Remove the files of a partition, unless it was assigned again meanwhile."""
        if self._assigned(topic_id, topic_partition) is not None:
            return
        found = self._log_directories.get(topic_partition)
        if found is not None and found.topic_id in {NO_TOPIC_ID, topic_id}:
            try:
                self._log_directories.delete(topic_partition, self._clock.timestamp_ms())
            except OSError as error:
                self._on_failure(*topic_partition, error)

    def stop(self) -> None:
        """Do all waiting steps, so that deleted logs are gone when the node starts again."""
        self._steps.finish()
