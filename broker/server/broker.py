"""Everything one broker owns, in one place: what handlers work on.

`Broker` wires the parts together and has no rules of its own. It is single-threaded: the event loop
is its only owner.
"""

import asyncio
import logging
from collections.abc import Callable

from broker.config.broker_config import BrokerConfig
from broker.errors import ErrorCode, KafkaError
from broker.log.log_directories import LogDirectories
from broker.metadata.delta import MetadataDelta
from broker.metadata.image import MetadataImage
from broker.model import TopicPartition
from broker.server.clock import Clock, Random
from broker.server.cluster.auto_topics import AutoTopics
from broker.server.cluster.dynamic_settings import DynamicSettings
from broker.server.cluster.lifecycle import Lifecycle
from broker.server.cluster.metadata_waits import MetadataWaits
from broker.server.coordinators.groups import Groups
from broker.server.coordinators.producer_ids import ProducerIds
from broker.server.metrics import Metrics
from broker.server.network.connection import Connection
from broker.server.network.listener import Listener
from broker.server.quorum.metadata_log import METADATA_PARTITION
from broker.server.quorum.quorum import Quorum
from broker.server.replication.partitions import ParkedFetch, Partitions
from broker.server.replication.replicas import Replicas
from broker.server.storage.cleaner import Cleaner
from broker.server.storage.flusher import Flusher
from broker.server.storage.housekeeping import Housekeeping
from broker.server.storage.mover import Mover

log = logging.getLogger("millrace.broker")


class Broker:
    """The parts of one broker. Invariant: `partitions` holds what the metadata says it leads.

    It follows the metadata from the moment it has caught up (`follow`), not before: a log that was
    created and deleted in the past leaves no trace on the way.
    """

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock,
        random_source: Random,
        log_directories: LogDirectories,
        quorum: Quorum,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.config = config
        self.clock = clock
        self.random = random_source
        self.log_directories = log_directories
        self.quorum = quorum
        self.metrics = Metrics()
        self.flusher = Flusher(self, loop)
        self.partitions = Partitions(
            loop,
            node_id=config.node_id,
            image=lambda: quorum.image,
            on_flush_wanted=self.flusher.schedule,
        )
        self.replicas = Replicas(self)
        self.groups = Groups(self, loop)
        self.housekeeping = Housekeeping(self, loop)
        self.mover = Mover(self, loop)
        self.lifecycle = Lifecycle(self, loop)
        self.producer_ids = ProducerIds(self)
        self.dynamic_settings = DynamicSettings(self)
        self.waits = MetadataWaits(self, loop)
        self.auto_topics = AutoTopics(self)
        self.listeners: dict[str, Listener] = {}
        self._advertised: dict[str, tuple[str, int]] = {}
        self._parked: dict[Connection, dict[ParkedFetch, None]] = {}
        self.is_following = False
        """Whether the logs and groups of this broker follow the metadata."""
        self.cleaner: Cleaner | None = None
        """Made when the background work begins."""
        self.on_follow: Callable[[], None] = lambda: None
        """Called when everything this broker leads is open."""
        self.on_fatal: Callable[[str], None] = log.critical
        """Told why this broker cannot go on; the node stops."""

    @property
    def cluster(self) -> MetadataImage:
        """The metadata of the cluster, as far as this node knows it to be committed."""
        return self.quorum.image

    @property
    def cluster_id(self) -> str:
        """The id of this cluster."""
        return self.quorum.cluster_id

    # --- the metadata ---

    def follow(self) -> None:
        """Begin to follow the metadata: all that it says now, then every change."""
        self.is_following = True
        self.dynamic_settings.refresh()
        self.replicas.open_all()
        self.groups.follow_partitions()
        self.on_follow()

    def on_metadata_change(self, delta: MetadataDelta) -> None:
        """Follow what a batch of records, or a snapshot, has changed."""
        if self.is_following:
            self.dynamic_settings.apply(delta)
            self.replicas.apply(delta)
            self.groups.follow_partitions()
            for deleted in delta.deleted_topics:
                self.groups.on_topic_deleted(deleted.name, deleted.topic_id)
            self.waits.look()
        self.lifecycle.on_metadata_change(delta)

    def on_settings_change(self) -> None:
        """Put new settings to work where they are not read each time."""
        for listener in self.listeners.values():
            listener.max_connections = self.config.max_connections
            listener.max_connections_per_ip = self.config.max_connections_per_ip
        if self.cleaner is not None:
            self.cleaner.change(self.config.cleaner)

    # --- listeners and connections ---

    def add_listener(self, name: str, listener: Listener, advertised: tuple[str, int]) -> None:
        """Serve one more listener."""
        self.listeners[name] = listener
        self._advertised[name] = advertised

    def advertised(self, listener_name: str) -> tuple[str, int]:
        """Return the host and port that clients of a listener are told to use."""
        return self._advertised[listener_name]

    def connection_count(self) -> int:
        """Return how many client connections are open."""
        return sum(len(listener.connections) for listener in self.listeners.values())

    def on_connection_closed(self, connection: Connection) -> None:
        """Forget everything that waits on a connection."""
        self.listeners[connection.peer.listener_name].forget(connection)
        for fetch in self._parked.pop(connection, {}):
            fetch.cancel()
        self.groups.on_closed(connection)

    def park(self, connection: Connection, fetch: ParkedFetch, wait_ms: int) -> None:
        """Let a fetch wait for records, at most `wait_ms`, and no longer than its connection."""
        of_connection = self._parked.setdefault(connection, {})
        for done in [parked for parked in of_connection if parked.is_done]:
            del of_connection[done]
        of_connection[fetch] = None
        self.partitions.park(fetch, wait_ms)

    # --- storage ---

    def on_storage_failure(self, topic: str, partition: int, error: OSError) -> KafkaError:
        """Take the partition's log directory offline, and return the refusal for the client."""
        log.error("storage failed topic=%s partition=%d error=%s", topic, partition, error)
        directory = self.log_directories.directory_of(TopicPartition(topic, partition))
        if directory is not None:
            for lost in self.log_directories.take_offline(directory.path, error):
                self.partitions.remove(lost)
            if self.log_directories.get(METADATA_PARTITION) is None:
                self.on_fatal(f"the log directory of the metadata has failed: {error}")
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
