"""What a change of the metadata means for the files of this node: logs come, change, go.

The image is always right and the files follow it: `open_all` begins with the whole image, `apply`
goes on with what a batch of records, or a snapshot, has changed. A log is here for every partition
that has this broker among its replicas; what it does there is its `Partition`'s role.

What is not known to be deleted is never deleted: a log goes when the metadata says of its topic id
that it was deleted, or that its replica is elsewhere. Any other that is in the way of a partition
is set aside, and the partition stays offline until somebody has decided about it; a replica that
has a leader and is not in sync begins anew beside it.

A replica whose disk has failed stays offline while that disk does: a second log of it elsewhere
would be in the way when the disk is back.

Roles change at once. The files of very many partitions come and go in steps (`file_steps`), in the
order of the changes, and each looks at the image again when its turn comes: a change that was taken
back meanwhile is none. Until then a partition is expected (`Partitions.expect`), and whoever asks
for it is told to ask again.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial

from broker.errors import KafkaError
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
from broker.server.cluster.dynamic_settings import DynamicSettings
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.cluster.resources import TOPIC
from broker.server.replication.commits import AwaitsCommit
from broker.server.replication.file_steps import FileSteps
from broker.server.replication.partitions import Partition, Partitions

log = logging.getLogger("millrace.replicas")

NO_TOPIC_ID = bytes(16)
RESERVED_DIRECTORIES = (LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY)
"""What stands for a directory's id where there is none."""


class Replicas:
    """Owns which logs are here. Invariant: those the image says, or a disk has failed."""

    def __init__(  # noqa: PLR0913 - what it works on, named by the caller
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
        """Of the topics that were deleted before this node followed the metadata."""
        replication = settings.static.replication
        self._replication = ReplicationSettings(replication.lag_time_max_ms, replication.backoff_ms)
        self.on_role: Callable[[Partition], None] = lambda partition: None
        """Told when a partition leads, or follows, in a new epoch, and when it is here no more."""
        self.on_opened: Callable[[list[TopicPartition]], None] = lambda opened: None
        """Told which partitions are open that were not when their change was followed."""
        self._steps = FileSteps(loop)
        self._steps.on_done = self._tell
        self._opened: list[TopicPartition] = []

    # --- the image says what is here ---

    def note_deleted(self, delta: MetadataDelta) -> None:
        """Take notice of what was deleted before `open_all`."""
        self._deleted_ids |= delta.deleted_ids

    def open_all(self) -> None:
        """Have what the image says; what else lies here is kept, and named."""
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
        """Name what is assigned elsewhere or gone: it may be all there is, so nobody deletes it."""
        topics = self._metadata.image.topics
        for stray in self._log_directories.all():
            topic, number = stray.topic_partition
            image = topics.by_name.get(topic)
            assigned = None if image is None else image.partitions.get(number)
            is_known = assigned is not None and self._node_id in assigned.replicas
            if not is_known and topic != CLUSTER_METADATA:
                log.warning("not assigned to this node: directory=%s", stray.directory)

    def _name_missing_directories(self) -> None:
        """Say why what the cluster has put into a directory that is not here has no leader."""
        directories = self._log_directories.directories
        known = {*RESERVED_DIRECTORIES, *(directory.directory_id for directory in directories)}
        missing: Counter[bytes] = Counter()
        for image in self._metadata.image.topics.by_name.values():
            for partition in image.partitions.values():
                places = zip(partition.replicas, partition.directories, strict=False)
                missing.update(
                    place for node, place in places if node == self._node_id and place not in known
                )
        for directory_id, count in sorted(missing.items()):
            log.error(
                "no log directory here has the id of one with partitions directory.id=%s "
                "partitions=%d: they have no leader until it is in log.dirs again, or "
                "directory.id is put right in %s",
                encode_uuid(directory_id),
                count,
                " or ".join(f"{directory.path}/{META_PROPERTIES}" for directory in directories),
            )

    def apply(self, delta: MetadataDelta) -> None:
        """Agree with what changed."""
        topics = self._metadata.image.topics
        for deleted in delta.deleted_topics:
            for number in deleted.partitions:
                self._remove(TopicPartition(deleted.name, number), deleted.topic_id)
            log.info("topic deleted topic=%s", deleted.name)
        for topic_id, numbers in delta.changed_partitions.items():
            image = topics.by_id.get(topic_id)
            if image is not None:
                self._follow(image, sorted(numbers))
        for resource_type, name in delta.changed_configs:
            if resource_type == TOPIC:
                self._update_config(name)
        self._opened.clear()  # Whoever has this called knows of them.
        if delta.deleted_topics:
            self._on_deleted()

    def update_configs(self) -> None:
        """Give every log its settings anew, after the defaults of this node have changed."""
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
        """Return the epoch of a broker that may be in sync, None of one that may not."""
        broker = self._metadata.image.brokers.get(broker_id)
        return broker.epoch if broker is not None and broker.is_active else None

    # --- one partition ---

    def _follow(self, image: TopicImage, numbers: Iterable[int]) -> None:
        """Lead each, follow its leader, or drop it; those that are not here yet, in steps."""
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
        """Open what the image names by now."""
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
            # Clients are answered KAFKA_STORAGE_ERROR until the directory is well again.
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
        """Whether its log is in a directory that is none of those here which are well.

        One that failed as it was opened has not told its id.
        """
        directories = self._log_directories.directories
        if not any(directory.is_offline for directory in directories):
            return False
        places = dict(zip(partition.replicas, partition.directories, strict=False))
        place = places.get(self._node_id, UNASSIGNED_DIRECTORY)
        online = [each.directory_id for each in directories if not each.is_offline]
        return place not in RESERVED_DIRECTORIES and place not in online

    def _is_filled_by_another(self, partition: PartitionImage) -> bool:
        """Whether all that this replica should have is to come from its leader."""
        return partition.leader not in {NO_LEADER, self._node_id} and (
            self._node_id not in partition.isr
        )

    def forget(self, lost: Iterable[TopicPartition]) -> None:
        """Serve no more what lay in a log directory that has failed."""
        for topic_partition in lost:
            removed = self._partitions.remove(topic_partition)
            if removed is not None:
                self.on_role(removed)

    def _set_aside_another(self, image: TopicImage, topic_partition: TopicPartition) -> None:
        """Keep a log that another topic of this name has left, for all that is known here."""
        earlier = self._log_directories.get(topic_partition)
        if earlier is None or earlier.topic_id in {NO_TOPIC_ID, image.topic_id}:
            return
        reason = (
            f"its topic id is {encode_uuid(earlier.topic_id)}, and the cluster's topic "
            f"{image.name} has {encode_uuid(image.topic_id)}"
        )
        self._log_directories.set_aside(topic_partition, reason)

    def _remove(self, topic_partition: TopicPartition, topic_id: bytes) -> None:
        """Serve it no more, from now on; its files follow."""
        self.forget((topic_partition,))
        self._partitions.expect_no_more(topic_partition)
        if self._log_directories.directory_of(topic_partition) is not None:
            self._steps.do((partial(self._remove_files, topic_partition, topic_id),))

    def _remove_files(self, topic_partition: TopicPartition, topic_id: bytes) -> None:
        """Have no files of it, unless it has come back meanwhile."""
        if self._assigned(topic_id, topic_partition) is not None:
            return
        found = self._log_directories.get(topic_partition)
        if found is not None and found.topic_id in {NO_TOPIC_ID, topic_id}:
            try:
                self._log_directories.delete(topic_partition, self._clock.timestamp_ms())
            except OSError as error:
                self._on_failure(*topic_partition, error)

    def stop(self) -> None:
        """Leave nothing half done: what is deleted is not there when the node starts again."""
        self._steps.finish()
