"""The life of this broker in the cluster: registration, heartbeats, controlled shutdown.

    STARTING --registered--> RECOVERY --caught up, unfenced--> RUNNING
    RUNNING --stop asked for--> PENDING_CONTROLLED_SHUTDOWN --allowed--> SHUTTING_DOWN

One request to the controller is under way at a time: a registration, then a heartbeat every
`broker.heartbeat.interval.ms`, or at once after some changes of state. The names and numbers of the
states are those of Kafka's BrokerState (KIP-631).
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Protocol

from broker.config.broker_config import BrokerConfig
from broker.log.log_directories import LogDirectories
from broker.metadata.delta import MetadataDelta
from broker.metadata.features import SUPPORTED_FEATURES
from broker.server.clock import Clock
from broker.server.cluster.metadata_quorum import AskController, ClusterMetadata
from common.kafka.errors import ErrorCode
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from common.kafka.protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Feature,
    Listener,
)

log = logging.getLogger("millstream.lifecycle")

REGISTRATION_VERSION = 4
HEARTBEAT_VERSION = 1
RETRY_MS = 100
"""The pause between two attempts to register, and two heartbeats of a controlled shutdown."""
WORTH_ANOTHER_TRY = {
    ErrorCode.DUPLICATE_BROKER_REGISTRATION,
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.BROKER_ID_NOT_REGISTERED,
}


class BrokerState(IntEnum):
    """The state of a broker in its life."""

    NOT_RUNNING = 0
    STARTING = 1
    RECOVERY = 2
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6
    SHUTTING_DOWN = 7


class OwnMetadata(ClusterMetadata, Protocol):
    """The metadata as this node has it, and the identity of this node."""

    @property
    def incarnation_id(self) -> bytes:
        """The id of this process: every start of a node has another one."""


class Lifecycle:
    """Owns the broker's registration and its heartbeats. See the module for the states.

    The broker applies the metadata only after it has caught up (`on_caught_up`), so that it does
    not create a log that was deleted again later in the metadata log.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        config: BrokerConfig,
        clock: Clock,
        metadata: OwnMetadata,
        ask: AskController,
        log_directories: LogDirectories,
    ) -> None:
        self._loop = loop
        self._config = config
        self._clock = clock
        self._metadata = metadata
        self._ask_controller = ask
        self._log_directories = log_directories
        self._listeners: list[Listener] = []
        self._timer: asyncio.Handle | None = None
        self._is_asking = False
        self._give_up_ms = 0
        self._told: ErrorCode = ErrorCode.NONE
        self.state = BrokerState.NOT_RUNNING
        self.epoch = -1
        """The epoch of this broker's registration; -1 before there is one."""
        self.is_following = False
        """True if the logs and groups of this broker follow the metadata."""
        self.on_caught_up: Callable[[], None] = lambda: None
        """Called once, when this broker has caught up with the metadata."""
        self.on_fatal: Callable[[str], None] = log.critical
        """Called with the reason when this broker cannot go on."""
        self.on_state: Callable[[BrokerState], None] = lambda state: None
        """Called with every new state."""

    def start(self, endpoints: Sequence[tuple[str, str, int]]) -> None:
        """Register with these listeners (name, host, port) and go on from there."""
        self._listeners = [
            Listener(
                name=name,
                host=host,
                port=port,
                security_protocol=self._config.security.protocol_of(name).number,
            )
            for name, host, port in endpoints
        ]
        self._give_up_ms = self._clock.now_ms() + self._config.registration_timeout_ms
        self._enter(BrokerState.STARTING)
        self._register()

    def stop(self) -> None:
        """Request a controlled shutdown; SHUTTING_DOWN follows when the leaderships have moved."""
        is_known = self.state in {BrokerState.RECOVERY, BrokerState.RUNNING}
        if not is_known or not self._config.controlled_shutdown:
            self.end()
            return
        self._enter(BrokerState.PENDING_CONTROLLED_SHUTDOWN)
        self._schedule(0)

    @property
    def clean_epoch(self) -> int:
        """The broker epoch for the directories at a clean stop; -1 if there is no such epoch."""
        return self._log_directories.clean_broker_epoch if self.epoch == -1 else self.epoch

    def end(self) -> None:
        """Stop all requests and timers."""
        self._cancel()
        if self.state != BrokerState.SHUTTING_DOWN:
            self._enter(BrokerState.SHUTTING_DOWN)

    def _enter(self, state: BrokerState) -> None:
        self.state = state
        self.on_state(state)

    # --- registration ---

    def _register(self) -> None:
        request = BrokerRegistrationRequest(
            broker_id=self._config.node_id,
            cluster_id=self._metadata.cluster_id,
            incarnation_id=self._metadata.incarnation_id,
            listeners=self._listeners,
            features=[
                Feature(name=name, min_supported_version=lowest, max_supported_version=highest)
                for name, (lowest, highest) in SUPPORTED_FEATURES.items()
            ],
            rack=self._config.rack,
            log_dirs=[
                directory.directory_id
                for directory in self._log_directories.directories
                if not directory.is_offline
            ],
            previous_broker_epoch=self._log_directories.clean_broker_epoch,
        )
        self._ask(request, REGISTRATION_VERSION, self._on_registered)

    def _on_registered(self, response: Message) -> None:
        assert isinstance(response, BrokerRegistrationResponse), response
        code = ErrorCode(response.error_code)
        if self.state != BrokerState.STARTING:
            return
        if code == ErrorCode.NONE:
            self.epoch = response.broker_epoch
            self._told = code
            self._enter(BrokerState.RECOVERY)
            self._note_progress()
            return
        if code not in WORTH_ANOTHER_TRY or self._clock.now_ms() >= self._give_up_ms:
            why = _why(code, self._config.node_id)
            self.on_fatal(f"the controller refused to register this broker: {why}")
            return
        if code != self._told:
            self._told = code
            log.warning("not registered yet: %s", _why(code, self._config.node_id))
        self._schedule(RETRY_MS)

    def on_metadata_change(self, delta: MetadataDelta) -> None:
        """Send a heartbeat at once if this broker or another one may wait for this change.

        A broker in controlled shutdown may stop when the others have read that it leads nothing:
        their heartbeats say how far they have read.
        """
        if self.state == BrokerState.RECOVERY:
            self._note_progress()
        elif self.state == BrokerState.PENDING_CONTROLLED_SHUTDOWN or (
            self.state == BrokerState.RUNNING and delta.changed_brokers
        ):
            self._schedule(0)

    def on_directory_offline(self) -> None:
        """Report a failed directory at once: its partitions need other leaders."""
        if self.state == BrokerState.RUNNING:
            self._schedule(0)

    def _note_progress(self) -> None:
        registered = self._metadata.image.brokers.get(self._config.node_id)
        if registered is None or registered.epoch != self.epoch:
            return
        if not self.is_following:
            self.is_following = True
            self.on_caught_up()
        self._schedule(0)

    # --- heartbeats ---

    def _beat(self) -> None:
        request = BrokerHeartbeatRequest(
            broker_id=self._config.node_id,
            broker_epoch=self.epoch,
            current_metadata_offset=self._metadata.applied_offset - 1,
            want_fence=not self.is_following,
            offline_log_dirs=[
                directory.directory_id
                for directory in self._log_directories.directories
                if directory.is_offline
            ],
            want_shut_down=self.state == BrokerState.PENDING_CONTROLLED_SHUTDOWN,
        )
        self._ask(request, HEARTBEAT_VERSION, self._on_beat)

    def _on_beat(self, response: Message) -> None:
        assert isinstance(response, BrokerHeartbeatResponse), response
        code = ErrorCode(response.error_code)
        if self.state == BrokerState.SHUTTING_DOWN:
            return
        if code == ErrorCode.NONE:
            self._on_answered(response)
        elif code == ErrorCode.STALE_BROKER_EPOCH and self._is_replaced():
            self.on_fatal(f"another process has registered as broker {self._config.node_id}")
        elif code == ErrorCode.BROKER_ID_NOT_REGISTERED:
            log.warning("this broker was unregistered; it registers again")
            self._enter(BrokerState.STARTING)
            self._register()
        else:
            log.warning("a heartbeat was refused: %s", code.name)
            is_passing = code in WORTH_ANOTHER_TRY
            self._schedule(RETRY_MS if is_passing else self._config.heartbeat_interval_ms)

    def _is_replaced(self) -> bool:
        """Return whether the metadata has another incarnation of this broker."""
        registered = self._metadata.image.brokers.get(self._config.node_id)
        return registered is not None and registered.incarnation_id != self._metadata.incarnation_id

    def _on_answered(self, response: BrokerHeartbeatResponse) -> None:
        interval_ms = self._config.heartbeat_interval_ms
        if response.should_shut_down and self.state == BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            self.end()
        elif self.state == BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            self._schedule(RETRY_MS)
        elif response.is_fenced:
            self._schedule(RETRY_MS if response.is_caught_up else interval_ms)
        else:
            if self.state == BrokerState.RECOVERY:
                self._enter(BrokerState.RUNNING)
            self._schedule(interval_ms)

    # --- one question at a time ---

    def _ask(
        self, request: Message, api_version: int, on_response: Callable[[Message], None]
    ) -> None:
        self._is_asking = True

        def answered(response: Message) -> None:
            self._is_asking = False
            on_response(response)

        self._ask_controller(
            request, api_version, answered, timeout_ms=self._config.session_timeout_ms
        )

    def _schedule(self, delay_ms: int) -> None:
        self._cancel()
        self._timer = (
            self._loop.call_later(delay_ms / 1000, self._on_time)
            if delay_ms
            else self._loop.call_soon(self._on_time)
        )

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_time(self) -> None:
        self._timer = None
        if self._is_asking:
            # A request is under way; its answer sets the next time.
            self._schedule(RETRY_MS)
        elif self.state == BrokerState.STARTING:
            self._register()
        elif self.state != BrokerState.SHUTTING_DOWN:
            self._beat()


def _why(code: ErrorCode, node_id: int) -> str:
    if code == ErrorCode.DUPLICATE_BROKER_REGISTRATION:
        return (
            f"{code.name}: another process is registered with node.id {node_id}. If it was this "
            "node, its session ends soon, and this process is registered then; if it still runs, "
            "give this node another node.id"
        )
    if code in WORTH_ANOTHER_TRY:
        return f"{code.name}; the controller cannot be reached or has not been elected"
    return code.name
