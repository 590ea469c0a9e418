"""The wiring of one broker: makes its parts and gives each what it works on.

This module decides only the order: in which order the parts are made, notified of a change, started
and stopped. No part imports this module; `apis` takes the arguments of the handlers from it. A
broker is single-threaded: the event loop is its only owner.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext

from broker.config.broker_config import BrokerConfig
from broker.coordinator.output import EVERY_TOPIC, TopicRights
from broker.log.log_directories import LogDirectories
from broker.log.partition_log import PartitionLog
from broker.metadata.delta import MetadataDelta
from broker.model import TopicPartition
from broker.quotas.connection_counts import ConnectionCounts
from broker.replication.fetch_session.session_cache import FetchSessionCache
from broker.server.authorization.guard import guard_of
from broker.server.clock import Clock, Random, busy_seconds, monotonic_seconds
from broker.server.cluster.auto_topics import AutoTopics
from broker.server.cluster.departures import Departures
from broker.server.cluster.directory_assignments import DirectoryAssignments
from broker.server.cluster.internal_topics import InternalTopics
from broker.server.cluster.lifecycle import Lifecycle
from broker.server.cluster.metadata_quorum import MetadataWaits
from broker.server.coordinators.end_offsets import EndOffsets
from broker.server.coordinators.groups import Groups
from broker.server.coordinators.producer_ids import ProducerIds
from broker.server.coordinators.shards import ShardParts
from broker.server.coordinators.share_state_calls import ShareStateCalls
from broker.server.coordinators.share_states import ShareStates
from broker.server.coordinators.transaction_verifier import (
    TransactionVerifier,
    VerifierConfig,
)
from broker.server.coordinators.transactions import Transactions
from broker.server.distribution import IdleRatio
from broker.server.login.node_tls import TO_BROKERS
from broker.server.metrics import Metrics
from broker.server.network.client_connection import ClientConnection, client_settings
from broker.server.network.connection import Connection
from broker.server.network.dispatch import Dispatcher, RequestContext
from broker.server.network.listeners import Listeners
from broker.server.network.request_times import RequestTimes
from broker.server.network.slow_requests import slow_requests
from broker.server.peers import Peers
from broker.server.quorum.quorum import Quorum
from broker.server.quotas.quotas import Quotas
from broker.server.replication.isr_requests import IsrRequests
from broker.server.replication.offsets_question import FetcherParts
from broker.server.replication.parked_fetches import ParkedFetches
from broker.server.replication.parked_writes import ParkedWrites
from broker.server.replication.partitions import LedLogs, Partition, Partitions
from broker.server.replication.replica_fetchers import ReplicaFetchers
from broker.server.replication.replicas import Replicas
from broker.server.replication.throttles import Throttles
from broker.server.settings.own_settings import DynamicSettings, OwnSettings
from broker.server.share.acknowledging import Admission
from broker.server.share.led_share_partition import LedParts
from broker.server.share.share_metrics import ShareMetrics
from broker.server.share.share_partitions import SharePartitions, ShareSettings, has_share_groups
from broker.server.share.state_persister import StatePersister
from broker.server.storage.cleaner import Cleaner
from broker.server.storage.failures import StorageFailures
from broker.server.storage.flusher import Flusher
from broker.server.storage.housekeeping import DeletedFiles, Housekeeping
from broker.server.storage.mover import Mover
from broker.server.telemetry.client_telemetry import ClientTelemetry
from broker.server.telemetry.otlp_forwarder import OtlpForwarder
from broker.share.session_cache import ShareSessionCache

MAX_SESSION_ID = 2**31 - 1

log = logging.getLogger("millstream.broker")


class Broker:
    """The parts of one broker. Invariant: `partitions` leads what the metadata assigns to it."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock,
        steady_clock: Clock,
        random_source: Random,
        log_directories: LogDirectories,
        quorum: Quorum,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """A test can move `clock`; what brokers do among themselves has the `steady_clock`."""
        self.config = config
        self.loop = loop
        self.clock = clock
        self.steady_clock = steady_clock
        self.random = random_source
        self.log_directories = log_directories
        self.metadata = quorum
        self.tls = quorum.tls
        self.ask = quorum.ask
        self.on_fatal: Callable[[str], None] = log.critical
        """Called with the reason when this broker cannot go on; the node stops."""
        self.spared: Callable[[], AbstractContextManager[None]] = nullcontext
        """A context whose long-lived new objects the garbage collector does not visit."""
        self.metrics = Metrics()
        self.request_times = RequestTimes()
        self.idle_ratio = IdleRatio(monotonic_seconds(), busy_seconds())
        self.listeners = Listeners(
            ConnectionCounts(
                config.quotas.connections,
                [endpoint.name for endpoint in config.listeners],
                config.replication.listener_name,
            )
        )
        self.guard = guard_of(config, quorum, quorum.audit)
        self.quotas = Quotas(config, quorum, monotonic_seconds)
        self._make_cluster_parts(loop)
        self._make_partitions(loop)
        self._make_replication(loop)
        self._make_background_work(loop)
        self._make_coordinators(loop, random_source)
        self._make_shares(loop)

    def _make_coordinators(self, loop: asyncio.AbstractEventLoop, random_source: Random) -> None:
        config, quorum = self.config, self.metadata
        parts = ShardParts(
            loop, self.clock, quorum, self.partitions, lambda: self.spared(), self.rights_of
        )
        self.share_states = ShareStates(parts, config.share_state, self.failures)
        self.producer_ids = ProducerIds(
            config.node_id, broker_epoch=lambda: self.lifecycle.epoch, ask=self.ask
        )
        settings = client_settings(config, config.security.to_brokers, self.tls.of(TO_BROKERS))

        def new_peers() -> Peers:
            return Peers(
                loop,
                quorum,
                lambda address: ClientConnection(loop, address, settings),
                config.replication.listener_name,
            )

        self.peers = new_peers()
        self.verifier_peers = new_peers()
        self.persister_peers = new_peers()
        self.share_state_calls = ShareStateCalls(loop, self.steady_clock, quorum, self.peers)
        self.end_offsets = EndOffsets(quorum, self.peers)
        self.groups = Groups(parts, config.group, random_source, self.share_state_calls)
        self.verifier = TransactionVerifier(
            self.verifier_peers,
            self.partitions,
            VerifierConfig(
                config.verifies_transactions,
                config.add_partitions_backoff_ms,
                config.add_partitions_backoff_max_ms,
            ),
        )
        self.transactions = Transactions(
            parts, config.transaction, self.producer_ids, new_peers, settings.retry_backoff_ms
        )

    def rights_of(self, context: RequestContext) -> TopicRights:
        """Return which topics the sender of a request may describe."""
        return EVERY_TOPIC if self.guard is None else self.guard.topic_rights(context)

    def _make_shares(self, loop: asyncio.AbstractEventLoop) -> None:
        self.share_settings = ShareSettings(self.config.share_leader, self.metadata)
        self.share_admission = Admission(self.metadata, self.guard)
        self.share_persister = StatePersister(self.steady_clock, self.persister_peers)
        self.shares = SharePartitions(
            LedParts(
                self.clock,
                self.share_persister,
                self.parked_share_fetches,
                self.failures,
                ShareMetrics(),
                settings_of=self.share_settings.of,
            ),
            self.partitions,
            ShareSessionCache(self.config.share_leader.max_share_sessions),
        )

    def _make_cluster_parts(self, loop: asyncio.AbstractEventLoop) -> None:
        self.settings = DynamicSettings(self.config, self.metadata)
        self.settings.on_change = self._on_settings_change
        self.own_settings = OwnSettings(self.settings, self.metadata, self.tls)
        self.waits = MetadataWaits(loop)
        self.departures = Departures(
            self.steady_clock, self.metadata, self.waits, self.config.session_timeout_ms
        )
        self.auto_topics = AutoTopics(
            self.config,
            self.metadata,
            self.ask,
            self.waits,
            is_complete=lambda topic: self.partitions.is_complete(topic),
        )
        self.internal_topics = InternalTopics(self.steady_clock, self.ask)
        self.lifecycle = Lifecycle(
            loop, self.config, self.steady_clock, self.metadata, self.ask, self.log_directories
        )
        self.directory_assignments = DirectoryAssignments(
            loop,
            self.config.node_id,
            self.metadata,
            self.log_directories,
            self.ask,
            broker_epoch=lambda: self.lifecycle.epoch,
        )
        endpoint = self.config.otlp_endpoint
        self.telemetry = ClientTelemetry(
            self.metadata,
            self.clock,
            self.config.telemetry_max_bytes,
            OtlpForwarder(endpoint, monotonic_seconds) if endpoint else None,
        )
        self._slow_requests = slow_requests(
            self.config.slow_request_trace_ms, self.config.node_id, monotonic_seconds
        )
        self.lifecycle.on_caught_up = self._follow
        self.lifecycle.on_fatal = self._fail

    def _make_partitions(self, loop: asyncio.AbstractEventLoop) -> None:
        self.failures = StorageFailures(
            self.log_directories,
            on_lost=lambda lost: self.replicas.forget((lost,)),
            on_offline=lambda: self.lifecycle.on_directory_offline(),
            on_fatal=self._fail,
        )
        self.flusher = Flusher(loop, self.clock, self.log_directories, self.failures)
        self.parked_fetches = ParkedFetches(loop)
        self.parked_share_fetches = ParkedFetches(loop)
        self.parked_produces = ParkedWrites(loop)
        self.parked_deletions = ParkedWrites(loop)
        self.fetch_sessions = FetchSessionCache(
            lambda: self.random.randint(1, MAX_SESSION_ID),
            slots=self.config.replication.fetch_session_slots,
        )
        self.partitions = Partitions(
            self.config.node_id,
            self.metadata,
            self.steady_clock,
            wake=self.parked_fetches.wake,
            on_flush_wanted=self.flusher.schedule,
            tells_followers_at_once=self.config.replication.selects_by_rack,
        )
        self.throttles = Throttles(self.config.node_id, self.config.replication, self.metadata)
        self.led_logs = LedLogs(
            self.partitions, self.steady_clock, self.failures, self.throttles.leader
        )
        self.deleted_files = DeletedFiles(self.log_directories, self.clock)
        self.replicas = Replicas(
            loop,
            self.settings,
            self.metadata,
            self.partitions,
            self.log_directories,
            self.steady_clock,
            on_deleted=self.deleted_files.remove_due,
            on_failure=self.failures.on_failure,
        )
        self.replicas.on_role = self._on_role
        self.replicas.on_opened = self._on_opened

    def _make_replication(self, loop: asyncio.AbstractEventLoop) -> None:
        self.isr_requests = IsrRequests(
            loop,
            self.steady_clock,
            self.partitions,
            self.ask,
            self.metrics,
            broker_epoch=lambda: self.lifecycle.epoch,
        )
        parts = FetcherParts(
            loop,
            self.steady_clock,
            self.config.replication,
            client_settings(self.config, self.config.security.to_brokers, self.tls.of(TO_BROKERS)),
            self.config.node_id,
            broker_epoch=lambda: self.lifecycle.epoch,
            on_failed=self._on_follower_failed,
            on_moved=self.partitions.on_high_watermark,
            on_bytes=self.metrics.note_replicated_in,
            throttle=self.throttles.follower,
            on_lost=self.departures.on_lost,
            on_reached=self.departures.on_reached,
        )
        self.replica_fetchers = ReplicaFetchers(parts, self.metadata)

    def _on_role(self, partition: Partition) -> None:
        """Handle a partition that leads or follows in a new epoch, or that is removed."""
        self.isr_requests.forget(partition)
        self.replica_fetchers.follow(partition)
        self.shares.on_role(partition)

    def _on_follower_failed(self, partition: Partition, error: OSError) -> None:
        self.failures.on_failure(*partition.topic_partition, error)

    def _make_background_work(self, loop: asyncio.AbstractEventLoop) -> None:
        self.housekeeping = Housekeeping(
            self.config, self.clock, self.log_directories, self.deleted_files
        )
        self.mover = Mover(
            loop,
            self.steady_clock,
            self.log_directories,
            self.failures,
            self.throttles.moves,
            on_moved=self._on_moved,
        )
        self.cleaner = Cleaner(
            loop, self.config.cleaner, self.clock, self._logs, self.deleted_files, self.failures
        )

    def _fail(self, why: str) -> None:
        self.on_fatal(why)

    # --- the metadata ---

    def _follow(self) -> None:
        """Begin to follow the metadata: first the whole image, then every change."""
        self.settings.refresh()
        self.throttles.follow_all()
        self.telemetry.follow()
        self.quotas.follow()
        self.replicas.open_all()
        self.directory_assignments.look_at_all()
        self._follow_coordinators()
        # Every partition that this broker leads is open.
        self.listeners.start(self.config.listen_backlog)

    def on_metadata_change(self, delta: MetadataDelta) -> None:
        """Apply the changes of a batch of records, or of a snapshot."""
        self.departures.apply(delta)
        for topic in delta.deleted_topics:
            self.metrics.traffic.forget(topic.name, topic.topic_id)
        if self.lifecycle.is_following:
            self.settings.apply(delta)
            self.throttles.apply(delta)
            self.telemetry.apply(delta)
            self.quotas.apply(delta)
            self.replicas.apply(delta)
            self.directory_assignments.apply(delta)
            if delta.changed_brokers:
                self.partitions.on_brokers_changed()
                self.replica_fetchers.on_brokers_changed(iter(self.partitions))
                self.transactions.sender.on_brokers_changed()
                self.verifier_peers.on_brokers_changed()
                self.persister_peers.on_brokers_changed()
                self.peers.on_brokers_changed()
            if delta.changed_configs:
                self.share_settings.forget()
            if delta.features_changed and not has_share_groups(self.metadata):
                self.shares.end_all()
            self._follow_coordinators()
            self.groups.on_metadata_change(delta)
            self.share_states.on_metadata_change(delta)
            self.waits.look()
        else:
            self.replicas.note_deleted(delta)
        self.lifecycle.on_metadata_change(delta)

    def _on_opened(self, opened: list[TopicPartition]) -> None:
        """Start the partitions that were opened after the change that created them."""
        if opened:
            self.directory_assignments.look_at(opened)
            self._follow_coordinators()
            self.waits.look()

    def _follow_coordinators(self) -> None:
        """Load the shards of the internal partitions that this broker leads."""
        self.groups.follow_partitions()
        self.share_states.follow_partitions()
        self.transactions.follow_partitions()
        self.transactions.sender.on_metadata_change()

    def _on_settings_change(self) -> None:
        """Pass new settings to the parts that do not read them each time."""
        settings = self.settings.current
        self.tls.change(settings.security)
        self.replicas.update_configs()
        self.throttles.change(settings.replication)
        self.replica_fetchers.resize(settings.replication.fetcher_count, self.partitions)
        self.listeners.limit(settings.quotas.connections)
        self.quotas.change(settings.quotas)
        self.cleaner.change(settings.cleaner)
        self.groups.change(settings.group)
        self.verifier.enable(settings.verifies_transactions)
        self.log_directories.change_producers(
            settings.producer_id_expiration_ms, verifies_transactions=settings.verifies_transactions
        )

    # --- connections and logs ---

    def on_connection_closed(self, connection: Connection) -> None:
        """Drop a connection that has closed."""
        self.listeners.forget(connection)
        self.shares.on_connection_closed(connection)
        self.telemetry.forget(connection)

    def _logs(self) -> Iterator[PartitionLog]:
        return (partition.log for partition in self.partitions)

    def _on_moved(self, moved: PartitionLog) -> None:
        self.directory_assignments.look_at([moved.topic_partition])
        partition = self.partitions.find(*moved.topic_partition)
        if partition is not None:
            partition.use_log(moved)
        self.deleted_files.remove_due()

    # --- start and stop ---

    def start_background(self, tasks: asyncio.TaskGroup) -> None:
        """Start the background work."""
        config = self.config
        offsets_ms = config.group.offsets_retention_check_interval_ms
        idle_ms = config.connections_max_idle_ms
        self.housekeeping.start()
        self.housekeeping.every(
            "high watermarks",
            config.replication.high_watermark_checkpoint_interval_ms,
            self.log_directories.checkpoint_high_watermarks,
        )
        lag_ms = config.replication.lag_time_max_ms
        self.housekeeping.every("isr", max(1, lag_ms // 2), self.isr_requests.look_for_laggards)
        self.housekeeping.every("offsets", offsets_ms, self.groups.expire_offsets)
        self.housekeeping.every("client metrics", 10_000, self.telemetry.expire)
        if idle_ms >= 0:
            self.housekeeping.every(
                "idle", max(100, idle_ms // 10), lambda: self.listeners.close_idle(idle_ms)
            )
        self.flusher.start(tasks)
        self.mover.start()
        self.cleaner.start(tasks)

    def watch(self, dispatcher: Dispatcher) -> None:
        """Have slow requests told to OpenTelemetry, if the settings ask for that."""
        if self._slow_requests is not None:
            dispatcher.watch_with(self._slow_requests.watch)

    def stop(self) -> None:
        """Stop all parts."""
        log.info("stopping: no new connections")
        self.listeners.stop_accepting()
        self.housekeeping.stop()
        self.replicas.stop()
        self.deleted_files.stop()
        self.flusher.stop()
        self.mover.stop()
        self.isr_requests.stop()
        self.replica_fetchers.stop()
        self.cleaner.stop()
        self.groups.stop()
        self.share_states.stop()
        self.share_state_calls.stop()
        self.peers.stop()
        self.transactions.stop()
        self.verifier_peers.stop()
        self.shares.stop()
        self.share_persister.stop()
        self.persister_peers.stop()
        self.telemetry.stop()
        self.listeners.close_connections()
        if self._slow_requests is not None:
            self._slow_requests.close()
