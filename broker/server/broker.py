"""Everything one broker owns, in one place: what handlers work on.

`Broker` wires the parts together and has no rules of its own. It is single-threaded: the event loop
is its only owner.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from broker.config.broker_config import BrokerConfig
from broker.errors import ErrorCode, KafkaError
from broker.log.log_directories import LogDirectories
from broker.metadata.cluster import ClusterState
from broker.model import TopicPartition
from broker.protocol.message import Message
from broker.server.clock import Clock, Random
from broker.server.connection import Connection
from broker.server.flusher import Flusher
from broker.server.groups import Groups
from broker.server.housekeeping import Housekeeping
from broker.server.listener import Listener
from broker.server.metadata_log import METADATA_PARTITION, MetadataLog
from broker.server.metrics import Metrics
from broker.server.mover import Mover
from broker.server.partitions import ParkedFetch, Partitions
from broker.server.topics import Topics

log = logging.getLogger("millrace.broker")

BROKER_EPOCH = 1


class Broker:
    """The parts of one broker. Invariant: `partitions` holds what the metadata says it leads."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock,
        random_source: Random,
        log_directories: LogDirectories,
        metadata_log: MetadataLog,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.config = config
        self.clock = clock
        self.random = random_source
        self.log_directories = log_directories
        self.metadata_log = metadata_log
        self.metrics = Metrics()
        self.flusher = Flusher(self, loop)
        self.partitions = Partitions(loop, on_flush_wanted=self.flusher.schedule)
        self.topics = Topics(self)
        self.groups = Groups(self, loop)
        self.housekeeping = Housekeeping(self, loop)
        self.mover = Mover(self, loop)
        self.listeners: dict[str, Listener] = {}
        self._advertised: dict[str, tuple[str, int]] = {}
        self._parked: dict[Connection, dict[ParkedFetch, None]] = {}
        self._producer_ids = iter(range(0))
        self.on_fatal: Callable[[str], None] = log.critical
        """Told why this broker cannot go on; the node stops."""

    @property
    def cluster(self) -> ClusterState:
        """The replayed metadata."""
        return self.metadata_log.state

    @property
    def cluster_id(self) -> str:
        """The id of this cluster."""
        return self.metadata_log.cluster_id

    def commit(self, records: Sequence[Message]) -> None:
        """Make metadata records true; raises KAFKA_STORAGE_ERROR and then changes none."""
        try:
            self.metadata_log.commit(records, self.clock.timestamp_ms())
        except OSError as error:
            log.error("the metadata log failed error=%s", error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

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

    # --- producers and storage ---

    def next_producer_id(self) -> int:
        """Return a producer id that was never given out before; raises KafkaError."""
        for producer_id in self._producer_ids:
            return producer_id
        block, records = self.cluster.producer_ids.next_block(self.config.node_id, BROKER_EPOCH)
        self.commit(records)
        self._producer_ids = iter(block)
        return next(self._producer_ids)

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
