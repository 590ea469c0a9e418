"""One node's part in the metadata quorum: the owner of its Raft node, log and image.

Everything happens on the event loop, one input at a time: a message of another node, a timer, a
request to the controller. An input is carried out at once (`_go_on`): persist, send, apply, notify
of the changes, answer the waiting requests, decide on the next request, until no work is left. On a
node that is its own quorum a request to `channel` is therefore answered before `ask` returns.

The disk is written inline: metadata changes are rare, and a group commit is one fdatasync. A disk
that fails, or a record that cannot be replayed, ends the node (`on_fatal`) without a retry.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple

from broker.config.broker_config import BrokerConfig
from broker.log.partition_log import PartitionLog
from broker.log.storage import Storage
from broker.metadata.image import MetadataImage
from broker.raft.config import NEVER_MS, RaftConfig
from broker.raft.node import RaftNode
from broker.raft.quorum_state import NO_NODE
from broker.raft.voter_set import Endpoint, VoterSet
from broker.records.errors import CorruptBatch
from broker.server.authorization.audit import Audit
from broker.server.authorization.guard import guard_of
from broker.server.clock import Clock, Random, monotonic_seconds, random_uuid
from broker.server.distribution import Distribution
from broker.server.login.node_tls import TO_CONTROLLERS, NodeTls
from broker.server.network.client_connection import ClientSettings, client_settings
from broker.server.quorum.controller.active_controller import OnResponse
from broker.server.quorum.controller.controller_channel import ControllerChannel
from broker.server.quorum.controller.controller_dispatch import (
    ControllerDispatcher,
)
from broker.server.quorum.controller.controller_listeners import ControllerListeners
from broker.server.quorum.controller.controller_rules import (
    ControllerRules,
    controller_config,
    controller_rules,
)
from broker.server.quorum.controller.describe import describe_controllers, describe_quorum
from broker.server.quorum.controller.leadership import Leadership
from broker.server.quorum.metadata_machine import MetadataMachine
from broker.server.quorum.metadata_snapshots import MetadataSnapshots
from broker.server.quorum.quorum_activity import ElectionTimes, QuorumActivity
from broker.server.quorum.raft.peers import Peers
from broker.server.quorum.raft.raft_shell import RaftShell
from broker.server.quorum.voters import configured_voters, controller_endpoints
from broker.server.settings.descriptions import (
    ControllerSettings,
    SettingsDescriptions,
)
from common.kafka.errors import KafkaError
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.add_raft_voter import AddRaftVoterRequest
from common.kafka.protocol.messages.describe_cluster import DescribeClusterRequest
from common.kafka.protocol.messages.describe_quorum import DescribeQuorumRequest
from common.kafka.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from common.kafka.protocol.wire import ZERO_UUID, DecodeError

_log = logging.getLogger("millstream.quorum")

MANY_RECORDS = 1_000
"""The records of a topic of this many partitions: writing, applying and following them takes some
milliseconds each, and the loop serves other requests between these steps."""


class MetadataDisk(NamedTuple):
    """The place of the metadata log on a node."""

    log: PartitionLog
    directory: str
    storage: Storage
    cluster_id: str
    directory_id: bytes = ZERO_UUID
    """The id of the log directory, which is part of a voter's identity."""
    initial_voters: VoterSet = VoterSet()
    """The voters if neither the log nor `controller.quorum.voters` names any."""


class Quorum:
    """Set `machine.on_change`, `on_leader_change`, `on_fatal`; then `start` it."""

    def __init__(
        self,
        config: BrokerConfig,
        disk: MetadataDisk,
        *,
        clock: Clock,
        random_source: Random,
        loop: asyncio.AbstractEventLoop,
        rules: ControllerRules | None = None,
    ) -> None:
        log, directory, storage, cluster_id, *_ = disk
        self.config = config
        self.node_id = config.node_id
        self.cluster_id = cluster_id
        self.on_leader_change: Callable[[], None] = lambda: None
        self.on_fatal: Callable[[str], None] = _log.critical
        self._clock = clock
        self.audit = Audit(clock)
        self._loop = loop
        self.incarnation_id = random_uuid().bytes
        """The id of the broker's process: every start of a node has another one."""
        self._rules = rules or controller_rules(
            controller_config(config, cluster_id, storage, self.incarnation_id, lambda: self.node),
            random_source,
        )
        self.tls = NodeTls(config.security, monotonic_seconds)
        """The keys and certificates of the whole node: the quorum is the first to connect."""
        settings = _to_controllers(config, self.tls)
        self._listeners = ControllerListeners(loop, config, lambda: self.image, self.tls, clock)
        self._listeners.bind()
        self.machine = MetadataMachine()
        self._directory = directory
        self.raft = self._open_raft(log, disk, storage, random_source, settings)
        self.raft.on_input = self._pump
        self.snapshots = MetadataSnapshots(
            self.raft.log,
            self.machine,
            config.quorum,
            now_ms=clock.now_ms(),
            voters_at=self.node.voters_at,
        )
        self.elections = ElectionTimes(clock.now_ms())
        self.activity = QuorumActivity(self.raft.log.end_offset, clock.now_ms())
        self.partition_election_times = Distribution()
        """The durations of decisions that elected partitions' leaders, until their commit."""
        self._told = (NO_NODE, -1, False)
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = NEVER_MS
        self._is_pumping = False
        self._is_pump_due = False
        """True if a later turn of the loop is scheduled for the rest of the work."""
        self._stopped: asyncio.Future[None] | None = None
        self.has_stopped = False
        self.channel = self._new_channel(settings)
        self._voter_changes = self._new_channel(settings)
        self._leadership = Leadership(
            config,
            self._rules,
            self.raft,
            image=lambda: self.image,
            clock=clock,
            loop=loop,
            pump=self._pump,
        )
        self.dispatcher = self._dispatcher()
        self._listeners.sink = self.dispatcher
        self._told_voters = self.node.voters

    def _raft_config(self, disk: MetadataDisk) -> RaftConfig:
        return _raft_config(
            self.config, disk, controller_endpoints(self.config, self._listeners.ports)
        )

    def _open_raft(
        self,
        log: PartitionLog,
        disk: MetadataDisk,
        storage: Storage,
        random_source: Random,
        settings: ClientSettings,
    ) -> RaftShell:
        config = self.config
        try:
            return RaftShell(
                self._raft_config(disk),
                log,
                storage,
                directory=self._directory,
                clock=self._clock,
                random_source=random_source,
                peers=Peers(self._loop, settings, config.quorum.request_timeout_ms),
                loop=self._loop,
                listener=self.machine,
                detects_failures_fast=config.quorum.detects_failures_fast,
            )
        except CorruptBatch as error:
            self._listeners.close()
            raise _unreadable(self._directory, error) from error

    def _new_channel(self, settings: ClientSettings) -> ControllerChannel:
        return ControllerChannel(
            self._loop,
            self._clock.now_ms,
            self,
            self.node.endpoint_of,
            settings,
            self._rules.refuse,
        )

    def _dispatcher(self) -> ControllerDispatcher:
        descriptions = SettingsDescriptions(ControllerSettings(self.config, self), self)
        return ControllerDispatcher(
            step=self.raft.step,
            submit=self.submit,
            describe_cluster=self._describe_cluster,
            describe_configs=descriptions.handle,
            metadata=self,
            on_heartbeat=self._leadership.on_heartbeat,
            on_closed=self._leadership.on_closed,
            guard=guard_of(self.config, self, self.audit),
            config=self.config,
        )

    # The state of this node.

    @property
    def image(self) -> MetadataImage:
        """The cluster's metadata, committed and applied."""
        return self.machine.image

    @property
    def node(self) -> RaftNode:
        """The Raft node, for reading only."""
        return self.raft.node

    @property
    def applied_offset(self) -> int:
        """The offset below which the log is applied."""
        return self.raft.applied_offset

    @property
    def leader_id(self) -> int:
        """The id of the quorum's leader, -1 when none is known."""
        return self.node.leader_id

    @property
    def kraft_version(self) -> int:
        """The level of `kraft.version`: 1 if the voters are in the log."""
        return self.node.kraft_version

    @property
    def is_serving(self) -> bool:
        """True if the active controller is in this process, and ready."""
        return self._leadership.is_serving

    @property
    def controller_ports(self) -> dict[str, int]:
        """The port of each controller listener, by its name."""
        return self._listeners.ports

    def describe(self, request: DescribeQuorumRequest, api_version: int) -> Message:
        """Answer DescribeQuorum as far as this node knows."""
        return describe_quorum(request, self.node, self.node_id, api_version, self._clock)

    def _describe_cluster(self, request: DescribeClusterRequest) -> Message:
        return describe_controllers(request, self.cluster_id, self.leader_id, self.node.voters)

    # From start to stop.

    def start(self) -> None:
        """Load the log and snapshots from disk, take up a role, listen.

        Raises OSError, also for a log or a snapshot that cannot be read.
        """
        self._is_pumping = True
        try:
            self.raft.start()
            self._go_on()
            while self.raft.is_applying:
                self._go_on()
        except (CorruptBatch, DecodeError, KafkaError) as error:
            raise _unreadable(self._directory, error) from error
        self._is_pumping = False
        self._listeners.open()
        self._set_timer()

    def begin_stop(self) -> None:
        """Hand a leadership over; `has_stopped` is True when this is done or has timed out."""
        self._stopped = self._loop.create_future()
        if self.has_stopped:
            # The quorum has failed, so there is no leadership to hand over.
            self._stopped.set_result(None)
            return
        self.channel.close()
        self._voter_changes.close()
        self._loop.call_later(self.config.quorum.request_timeout_ms / 1000, self._close)
        self.raft.stop()

    async def wait_stopped(self) -> None:
        """Return when `has_stopped`."""
        assert self._stopped is not None, "begin_stop comes first"
        await self._stopped

    def _close(self) -> None:
        if self.has_stopped:
            return
        self.has_stopped = True
        self._leadership.close()
        if self._timer is not None:
            self._timer.cancel()
        self._listeners.close()
        self.raft.close()
        self.channel.close()
        self._voter_changes.close()
        if self._stopped is not None and not self._stopped.done():
            self._stopped.set_result(None)

    # Inputs.

    def ask(
        self,
        request: Message,
        api_version: int,
        on_response: OnResponse,
        *,
        timeout_ms: int,
        is_sent_once: bool = False,
    ) -> None:
        """Send a request of a broker, or of its client, to the active controller; see the channel.

        A change of the voters has its own channel: its answer may take seconds, and a heartbeat of
        the broker behind some of them would come too late.
        """
        is_slow = isinstance(request, AddRaftVoterRequest | RemoveRaftVoterRequest)
        channel = self._voter_changes if is_slow else self.channel
        channel.ask(
            request, api_version, on_response, timeout_ms=timeout_ms, is_sent_once=is_sent_once
        )

    def submit(self, request: Message, api_version: int, on_response: OnResponse) -> None:
        """Hand a request to the active controller; answer NOT_CONTROLLER if it is elsewhere."""
        if isinstance(request, DescribeQuorumRequest):
            on_response(self.describe(request, api_version))
        elif isinstance(request, AddRaftVoterRequest | RemoveRaftVoterRequest):
            answered = self.raft.step(request)
            if answered.is_done:
                on_response(answered.value)
            else:
                answered.when_done(lambda: on_response(answered.value))
        else:
            self._leadership.submit(request, api_version, on_response)

    def on_moved_time(self) -> None:
        """Do what is due by timestamps alone, after the clock has been moved."""
        self._leadership.expire_tokens()

    def _on_timer(self) -> None:
        self._timer, self._timer_ms = None, NEVER_MS
        self.raft.tick()

    def _set_timer(self) -> None:
        """Set the timer for the next deadline; a timer that fires too early does no harm."""
        due_ms = min(
            self.node.next_deadline_ms(),
            self._leadership.next_deadline_ms(),
            self.snapshots.next_deadline_ms(),
        )
        if due_ms >= self._timer_ms:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms = due_ms
        # One more, because the loop's clock may be a fraction of a millisecond ahead of this one.
        delay_ms = max(due_ms - self._clock.now_ms(), 0) + 1
        self._timer = self._loop.call_later(delay_ms / 1000, self._on_timer)

    # The work that follows an input.

    def _pump(self) -> None:
        """Carry out all work; a nested call leaves its work to the outer one."""
        if self._is_pumping or self.has_stopped:
            return
        self._is_pumping = True
        began_s = monotonic_seconds()
        try:
            self._go_on()
        except Exception as error:  # noqa: BLE001 - the outermost edge of the node's owner
            # The content of the disk, or how much of it was applied, is unknown.
            _log.exception("the metadata quorum failed")
            self._close()
            self.on_fatal(f"the metadata log failed: {error!r}")
            return
        finally:
            self._is_pumping = False
        busy_ms = (monotonic_seconds() - began_s) * 1000
        self.activity.busy_ms.add(busy_ms, self._clock.now_ms())
        self._set_timer()
        if self._stopped is not None and self.node.may_stop:
            self._close()

    def _pump_soon(self) -> None:
        """Carry out the work in the next turn of the loop."""
        if not self._is_pump_due:
            self._is_pump_due = True
            self._loop.call_soon(self._pump_when_due)

    def _pump_when_due(self) -> None:
        self._is_pump_due = False
        self._pump()

    def _go_on(self) -> None:
        while self._go_round():
            pass
        self.snapshots.advance(self._clock.now_ms(), self._clock.timestamp_ms())

    def _go_round(self) -> bool:
        """Do one round of all work; return whether there is more to do at once.

        After very many records the rest gets a separate turn of the loop.
        """
        applied_offset = self.applied_offset
        self.raft.run()
        self._note_log()
        if self.applied_offset - applied_offset >= MANY_RECORDS:
            self._pump_soon()
            return False
        self._tell_of_metadata()
        self._take_leader_changes()
        end_offset = self.raft.log.end_offset
        self._leadership.advance()
        self._note_log()
        self._tell_of_leader()
        if self.raft.is_applying or self.raft.log.end_offset - end_offset >= MANY_RECORDS:
            self._pump_soon()
            return False
        return self.raft.has_work or self._leadership.has_work

    def _note_log(self) -> None:
        node = self.node
        self.activity.note_log(
            self.raft.log.end_offset,
            node.high_watermark,
            self._clock.now_ms(),
            is_leader=node.is_leader,
        )

    def _tell_of_metadata(self) -> None:
        machine = self.machine
        count = machine.elections.all_count
        machine.tell()
        if self.is_serving and machine.elections.all_count > count:
            # This node made the decision, so the batch has the time of its clock.
            latency_ms = self._clock.timestamp_ms() - machine.last_timestamp_ms
            self.partition_election_times.add(max(latency_ms, 0) / 1000)

    def _take_leader_changes(self) -> None:
        changes, self.machine.leader_changes = self.machine.leader_changes, []
        for change in changes:
            _log.info("leader leader_id=%s leader_epoch=%d", change.leader_id, change.leader_epoch)
            self.elections.note(change, self._clock.now_ms())
            self.activity.leader_count += change.leader_id is not None
            self._leadership.take(change)
        if self.node.voters is not self._told_voters:
            self._told_voters = self.node.voters
            _log.info(
                "voters voters=%s kraft_version=%d is_committed=%s",
                list(self.node.voters.ids),
                self.node.kraft_version,
                not self.node.has_uncommitted_voters,
            )

    def _tell_of_leader(self) -> None:
        news = (self.leader_id, self.node.leader_epoch, self.is_serving)
        if news != self._told:
            self._told = news
            if self.is_serving:
                self._leadership.look_after_brokers()
            self.on_leader_change()
            self.channel.on_leader_change()
            self._voter_changes.on_leader_change()


def _to_controllers(config: BrokerConfig, tls: NodeTls) -> ClientSettings:
    return client_settings(config, config.security.to_controllers, tls.of(TO_CONTROLLERS))


def _raft_config(
    config: BrokerConfig, disk: MetadataDisk, endpoints: tuple[Endpoint, ...]
) -> RaftConfig:
    times, configured = config.quorum, configured_voters(config)
    return RaftConfig(
        node_id=config.node_id,
        voters=configured if configured.nodes else disk.initial_voters,
        cluster_id=disk.cluster_id,
        directory_id=disk.directory_id,
        endpoints=endpoints,
        bootstrap_servers=config.bootstrap_servers,
        is_controller=config.is_controller,
        joins_by_itself=times.joins_by_itself,
        election_timeout_ms=times.election_timeout_ms,
        election_backoff_max_ms=times.election_backoff_max_ms,
        fetch_timeout_ms=times.fetch_timeout_ms,
        request_timeout_ms=times.request_timeout_ms,
        retry_backoff_ms=times.retry_backoff_ms,
        fetch_max_bytes=times.fetch_max_bytes,
        snapshot_max_bytes=times.fetch_snapshot_max_bytes,
    )


def _unreadable(directory: str, error: Exception) -> OSError:
    return OSError(f"the metadata in {directory} cannot be read: {error}; restore it from a backup")
