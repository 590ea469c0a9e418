"""BrokerHeartbeat: a broker is alive, and asks to serve, be fenced, or stop (KIP-631).

How a heartbeat changes the state of a broker:

    state                request        next state
    FENCED               shut down      SHUTDOWN_NOW
    FENCED               serve          UNFENCED once it has read its own registration
    FENCED               be fenced      unchanged
    UNFENCED             be fenced      FENCED; with shut down, SHUTDOWN_NOW
    UNFENCED             shut down      SHUTDOWN_NOW if it leads nothing, else CONTROLLED_SHUTDOWN
    CONTROLLED_SHUTDOWN  any            SHUTDOWN_NOW once it leads nothing and the other brokers
                                        have read that; until then unchanged
"""

from enum import Enum, auto

from broker.metadata.control.leadership.broker_changes import (
    begin_controlled_shutdown,
    fail_directories,
    fence_broker,
    leads_any,
    unfence_broker,
)
from broker.metadata.control.sessions import NO_OFFSET
from broker.metadata.control.view import ClusterView, Decision, Moment
from broker.metadata.image import BrokerImage
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from common.kafka.protocol.records.metadata import BrokerRegistrationChangeRecord


class BrokerState(Enum):
    """The state of a broker; see the table of the module."""

    FENCED = auto()
    UNFENCED = auto()
    CONTROLLED_SHUTDOWN = auto()
    SHUTDOWN_NOW = auto()


IS_FENCED = frozenset({BrokerState.FENCED, BrokerState.SHUTDOWN_NOW})


def handle_broker_heartbeat(
    view: ClusterView, request: BrokerHeartbeatRequest, api_version: int, moment: Moment
) -> Decision:
    """Note that a broker is alive, and change its state as it asks if that is possible."""
    broker = view.registered(request.broker_id, request.broker_epoch)
    now = current_state(view, broker)
    records = fail_directories(view, broker, frozenset(request.offline_log_dirs))
    # Failed directories come first: the broker must not become a leader from a failed directory.
    # Its next heartbeat, after it has read these records, changes its state.
    then = now if records else next_state(view, broker, request)
    records += _transition(view, broker, now, then)
    if then in IS_FENCED:
        view.sessions.end(broker.broker_id)
    else:
        session = view.sessions.touch(broker, moment.now_ms, request.current_metadata_offset)
        if then is BrokerState.CONTROLLED_SHUTDOWN and session.shutdown_offset == NO_OFFSET:
            session.shutdown_offset = moment.next_offset + len(records) - 1
    if not records:
        records += _cordon(broker, request.cordoned_log_dirs)
    response = BrokerHeartbeatResponse(
        is_caught_up=request.current_metadata_offset >= broker.epoch,
        is_fenced=then in IS_FENCED,
        should_shut_down=then is BrokerState.SHUTDOWN_NOW,
    )
    return Decision(response, records)


def current_state(view: ClusterView, broker: BrokerImage) -> BrokerState:
    """Return the current state of a broker."""
    if broker.is_fenced:
        return BrokerState.FENCED
    session = view.sessions.find(broker.broker_id)
    if session is not None and session.shutdown_offset != NO_OFFSET:
        return BrokerState.CONTROLLED_SHUTDOWN
    return BrokerState.UNFENCED


def next_state(
    view: ClusterView, broker: BrokerImage, request: BrokerHeartbeatRequest
) -> BrokerState:
    """Return the state of a broker after a heartbeat, by the table of the module."""
    match current_state(view, broker):
        case BrokerState.FENCED:
            return _next_when_fenced(broker, request)
        case BrokerState.UNFENCED:
            return _next_when_unfenced(view, broker, request)
        case _:
            return _next_in_shutdown(view, broker)


def _next_when_fenced(broker: BrokerImage, request: BrokerHeartbeatRequest) -> BrokerState:
    if request.want_shut_down:
        return BrokerState.SHUTDOWN_NOW
    is_caught_up = request.current_metadata_offset >= broker.epoch
    return BrokerState.UNFENCED if is_caught_up and not request.want_fence else BrokerState.FENCED


def _next_when_unfenced(
    view: ClusterView, broker: BrokerImage, request: BrokerHeartbeatRequest
) -> BrokerState:
    if request.want_fence:
        return BrokerState.SHUTDOWN_NOW if request.want_shut_down else BrokerState.FENCED
    if not request.want_shut_down:
        return BrokerState.UNFENCED
    if leads_any(view, broker.broker_id):
        return BrokerState.CONTROLLED_SHUTDOWN
    return BrokerState.SHUTDOWN_NOW


def _next_in_shutdown(view: ClusterView, broker: BrokerImage) -> BrokerState:
    session = view.sessions.find(broker.broker_id)
    assert session is not None, broker
    if leads_any(view, broker.broker_id):
        return BrokerState.CONTROLLED_SHUTDOWN
    if session.shutdown_offset > view.sessions.lowest_active_offset():
        return BrokerState.CONTROLLED_SHUTDOWN
    return BrokerState.SHUTDOWN_NOW


def _transition(
    view: ClusterView, broker: BrokerImage, now: BrokerState, then: BrokerState
) -> list[Message]:
    if now is then:
        return []
    match then:
        case BrokerState.UNFENCED:
            return unfence_broker(view, broker)
        case BrokerState.CONTROLLED_SHUTDOWN:
            return begin_controlled_shutdown(view, broker)
        case _:
            return [] if broker.is_fenced else fence_broker(view, broker)


def _cordon(broker: BrokerImage, wanted: list[bytes] | None) -> list[Message]:
    if wanted is None or set(wanted) == set(broker.cordoned_log_dirs or ()):
        return []
    return [
        BrokerRegistrationChangeRecord(
            broker_id=broker.broker_id, broker_epoch=broker.epoch, cordoned_log_dirs=wanted
        )
    ]
