"""The controller of a node while it leads the quorum, and what it is asked meanwhile.

`take` follows each change of the leader: with a leadership of this node a controller begins on the
image of that moment, with any other the controller that was here ends, and everything that waits
for it is refused. A leader probes the brokers that may be gone (`failure_probe`).
"""

import asyncio
from collections.abc import Callable, Generator, Sequence

from broker.config.broker_config import BrokerConfig
from broker.errors import ErrorCode, KafkaError
from broker.metadata.control.view import Moment
from broker.metadata.image import MetadataImage
from broker.protocol.message import Message
from broker.protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from broker.raft.config import NEVER_MS
from broker.raft.output import LeaderChange
from broker.server.clock import Clock
from broker.server.network.connection import Connection
from broker.server.quorum.controller.active_controller import ActiveController, OnResponse, Shell
from broker.server.quorum.controller.controller_rules import ControllerRules
from broker.server.quorum.controller.failure_probe import FailureProbe
from broker.server.quorum.metadata_batches import batch_in_steps
from broker.server.quorum.raft.raft_shell import RaftShell


class Leadership:
    """See the module. `pump` is called when there is something to carry out."""

    def __init__(  # noqa: PLR0913 - what a controller works on, named by the quorum
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
        self._probe = FailureProbe(loop, config.quorum.request_timeout_ms, image, self._lose_broker)

    @property
    def is_serving(self) -> bool:
        """True if the active controller is here, and ready."""
        return self._active is not None and self._active.is_serving

    @property
    def has_work(self) -> bool:
        """True if `advance` would decide on something."""
        return self._active is not None and self._active.has_work

    def next_deadline_ms(self) -> int:
        """Return when `advance` has something to do though nothing was committed."""
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
        """Answer what is committed, and decide until something has to be committed again."""
        if self._active is not None:
            self._active.advance(self._raft.applied_offset, self._clock.now_ms())

    def end(self) -> None:
        """Refuse everything that waits: this node does not lead."""
        active, self._active = self._active, None
        if active is not None:
            active.end()

    def close(self) -> None:
        """End, and probe nobody."""
        self.end()
        self._probe.close()

    # --- what is asked ---

    def submit(self, request: Message, api_version: int, on_response: OnResponse) -> None:
        """Hand a request to the active controller; NOT_CONTROLLER when that is not here."""
        if self._active is None or not self._active.is_serving:
            error = KafkaError(ErrorCode.NOT_CONTROLLER, "This is not the active controller.")
            on_response(self._rules.refuse(request, api_version, error))
            return
        if isinstance(request, BrokerRegistrationRequest):
            on_response = self._watch_registration(request.broker_id, on_response)
        self._active.submit(request, api_version, on_response)
        self._pump()

    def _watch_registration(self, broker_id: int, on_response: OnResponse) -> OnResponse:
        """Look after the broker that has an id which another process wants."""

        def watched(response: Message) -> None:
            on_response(response)
            assert isinstance(response, BrokerRegistrationResponse), response
            is_taken = response.error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
            if is_taken and self._detects_failures_fast:
                self._probe.look_after(broker_id)

        return watched

    # --- brokers that may be gone ---

    def on_heartbeat(self, connection: Connection, broker_id: int) -> None:
        """Note the connection of a broker: the end of the connection may be that of the broker."""
        if self.is_serving and self._detects_failures_fast:
            self._probe.on_heartbeat(connection, broker_id)

    def on_closed(self, connection: Connection) -> None:
        """Note that a connection to the controller has ended."""
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
