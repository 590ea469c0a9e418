"""The active controller of a node while it leads the quorum.

`take` follows each change of the leader: a leadership of this node starts a controller on the
current image; any other leadership ends the controller of this node, and its waiting requests are
refused. A leader probes the brokers that may be gone (`failure_probe`).

The records of one decision are one batch. A batch of very many records is encoded in steps, so that
other requests are served in between.
"""

import asyncio
from collections.abc import Callable, Generator, Sequence

from broker.config.broker_config import BrokerConfig
from broker.metadata.control.view import Moment
from broker.metadata.image import MetadataImage
from broker.raft.config import NEVER_MS
from broker.raft.output import LeaderChange
from broker.records.build import batch_of_encoded
from broker.records.record import encode_record
from broker.server.clock import Clock
from broker.server.network.connection import Connection
from broker.server.quorum.controller.active_controller import ActiveController, OnResponse, Shell
from broker.server.quorum.controller.controller_rules import ControllerRules
from broker.server.quorum.controller.failure_probe import FailureProbe
from broker.server.quorum.controller.kraft_upgrade import KraftUpgrade, names_kraft_version
from broker.server.quorum.raft.raft_shell import RaftShell
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from common.kafka.protocol.messages.update_features import UpdateFeaturesRequest
from common.kafka.protocol.records.metadata import encode_metadata_record


class Leadership:
    """Owns the active controller. `pump` is called when there is work to carry out."""

    def __init__(
        self,
        config: BrokerConfig,
        rules: ControllerRules,
        raft: RaftShell,
        *,
        image: Callable[[], MetadataImage],
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        pump: Callable[[], None],
    ) -> None:
        self._node_id = config.node_id
        self._detects_failures_fast = config.quorum.detects_failures_fast
        self._rules = rules
        self._raft = raft
        self._image = image
        self._clock = clock
        self._loop = loop
        self._pump = pump
        self._active: ActiveController | None = None
        self._upgrade = KraftUpgrade(raft, config.node_id, rules.refuse)
        self._probe = FailureProbe(loop, config.quorum.request_timeout_ms, image, self._lose_broker)

    @property
    def is_serving(self) -> bool:
        """True if the active controller is in this process, and ready."""
        return self._active is not None and self._active.is_serving

    @property
    def has_work(self) -> bool:
        """True if `advance` would decide on a request."""
        return self._active is not None and self._active.has_work

    def next_deadline_ms(self) -> int:
        """Return when `advance` has work to do without a new commit."""
        return NEVER_MS if self._active is None else self._active.next_deadline_ms()

    def take(self, change: LeaderChange) -> None:
        """Follow a change of the leader."""
        self.end()
        node = self._raft.node
        is_ours = change.leader_id == self._node_id and node.is_leader
        if is_ours and node.leader_epoch == change.leader_epoch:
            shell = Shell(self._moment, self._append, self._rules.refuse, self._soon)
            controller = self._rules.new_controller(self._image())
            self._active = ActiveController(controller, change.leader_epoch, shell)

    def advance(self) -> None:
        """Answer committed requests, and decide on others until records have to be committed."""
        if self._active is not None:
            self._active.advance(self._raft.applied_offset, self._clock.now_ms())
            self._upgrade.advance()

    def end(self) -> None:
        """Refuse all waiting requests: this node is not the leader."""
        active, self._active = self._active, None
        if active is not None:
            active.end()
            self._upgrade.end()

    def close(self) -> None:
        """End the controller and all probes."""
        self.end()
        self._probe.close()

    # --- what is asked ---

    def submit(self, request: Message, api_version: int, on_response: OnResponse) -> None:
        """Hand a request to the active controller; answer NOT_CONTROLLER if it is elsewhere."""
        if self._active is None or not self._active.is_serving:
            error = KafkaError(ErrorCode.NOT_CONTROLLER, "This is not the active controller.")
            on_response(self._rules.refuse(request, api_version, error))
            return
        if isinstance(request, BrokerRegistrationRequest):
            on_response = self._watch_registration(request.broker_id, on_response)
        if isinstance(request, UpdateFeaturesRequest) and names_kraft_version(request):
            self._upgrade.submit(request, api_version, on_response, self._active.submit)
        else:
            self._active.submit(request, api_version, on_response)
        self._pump()

    def _watch_registration(self, broker_id: int, on_response: OnResponse) -> OnResponse:
        """Probe the broker with an id that another process wants to register."""

        def watched(response: Message) -> None:
            on_response(response)
            assert isinstance(response, BrokerRegistrationResponse), response
            is_taken = response.error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
            if is_taken and self._detects_failures_fast:
                self._probe.look_after(broker_id)

        return watched

    # --- brokers that may be gone ---

    def on_heartbeat(self, connection: Connection, broker_id: int) -> None:
        """Record the connection of a broker, whose end may be the end of the broker."""
        if self.is_serving and self._detects_failures_fast:
            self._probe.on_heartbeat(connection, broker_id)

    def on_closed(self, connection: Connection) -> None:
        """Handle the end of a connection to the controller."""
        self._probe.on_closed(connection)

    def look_after_brokers(self) -> None:
        """Probe all brokers: one may have died together with the controller before."""
        if self._detects_failures_fast:
            for broker_id in self._image().brokers:
                if broker_id != self._node_id:
                    self._probe.look_after(broker_id)

    def _lose_broker(self, broker_id: int) -> None:
        if self._active is not None:
            self._active.lose_broker(broker_id)
            self._pump()

    # --- time ---

    def expire_tokens(self) -> None:
        """Remove expired tokens if this node leads: the time has been moved."""
        if self._active is not None:
            self._active.expire_tokens()
            self._pump()

    # --- what the active controller needs ---

    def _moment(self) -> Moment:
        clock = self._clock
        return Moment(clock.now_ms(), clock.timestamp_ms(), self._raft.log.end_offset)

    def _soon(self, work: Callable[[], None]) -> None:
        def go_on() -> None:
            work()
            self._pump()

        self._loop.call_soon(go_on)

    def _append(self, records: Sequence[Message]) -> Generator[None, None, int]:
        batch = yield from batch_in_steps(records, self._clock.timestamp_ms())
        return self._raft.append(batch).offset


RECORDS_PER_STEP = 512
"""One record takes about seven microseconds."""


def batch_in_steps(records: Sequence[Message], timestamp_ms: int) -> Generator[None, None, bytes]:
    """Make one batch of all records."""
    payload = bytearray()
    for index, record in enumerate(records):
        if index and not index % RECORDS_PER_STEP:
            yield
        payload += encode_record(index, 0, None, encode_metadata_record(record), ())
    return batch_of_encoded(payload, record_count=len(records), timestamp_ms=timestamp_ms)
