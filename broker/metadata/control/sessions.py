"""The sessions of brokers: when each was last heard of. Soft state of the active controller.

The controller *fences* a broker when its session ends; until then the broker counts as alive. A new
controller has received no heartbeats, so it gives every unfenced broker a full session when it
becomes active (KIP-631, Kafka's BrokerHeartbeatManager). There is one exception: the node that led
before, if it is a broker too, has been silent since its last answer as the leader. Up to half of
its session has passed then: it may be alive, and needs the time to find the new controller.

The broker in the controller's own process lives as long as the controller, so its session never
ends. A cluster of one node therefore has no deadline.
"""

from dataclasses import dataclass

from broker.metadata.parts.brokers import BrokerImage

NEVER_MS = 2**63 - 1  # no deadline
NO_OFFSET = -1


@dataclass(slots=True)
class Session:
    """The last heartbeat of one broker, and the offset at which its controlled shutdown began."""

    last_contact_ms: int
    can_end: bool = True
    metadata_offset: int = NO_OFFSET
    shutdown_offset: int = NO_OFFSET


class Sessions:
    """The sessions of the unfenced brokers, by id."""

    def __init__(self, session_timeout_ms: int, own_incarnation_id: bytes | None) -> None:
        self.session_timeout_ms = session_timeout_ms
        self._own_incarnation_id = own_incarnation_id
        self._sessions: dict[int, Session] = {}

    def touch(self, broker: BrokerImage, now_ms: int, metadata_offset: int = NO_OFFSET) -> Session:
        """Start or extend the session of an unfenced broker."""
        session = self._sessions.get(broker.broker_id)
        if session is None:
            session = self._sessions[broker.broker_id] = Session(now_ms)
        session.can_end = broker.incarnation_id != self._own_incarnation_id
        session.last_contact_ms = now_ms
        session.metadata_offset = metadata_offset
        return session

    def begin(self, broker: BrokerImage, last_contact_ms: int, now_ms: int) -> None:
        """Start a session of a broker that was last heard of by another way than a heartbeat."""
        earliest_ms = now_ms - self.session_timeout_ms // 2
        self.touch(broker, min(max(last_contact_ms, earliest_ms), now_ms))

    def end(self, broker_id: int) -> None:
        """Remove the session of a broker that was fenced or unregistered."""
        self._sessions.pop(broker_id, None)

    def find(self, broker_id: int) -> Session | None:
        """Return the session of a broker, None if it has none."""
        return self._sessions.get(broker_id)

    def is_alive(self, broker_id: int, now_ms: int) -> bool:
        """Return True if a broker was heard of within the session timeout."""
        session = self._sessions.get(broker_id)
        return session is not None and now_ms <= self._deadline_ms(session)

    def next_deadline_ms(self) -> int:
        """Return when the first session ends without further heartbeats."""
        deadlines = map(self._deadline_ms, self._sessions.values())
        return min(deadlines, default=NEVER_MS - 1) + 1

    def first_ended(self, now_ms: int) -> int | None:
        """Return the broker that has been silent for the longest time, if its session has ended."""
        ended = [
            (session.last_contact_ms, broker_id)
            for broker_id, session in self._sessions.items()
            if now_ms > self._deadline_ms(session)
        ]
        return min(ended)[1] if ended else None

    def lowest_active_offset(self) -> int:
        """Return the lowest metadata offset of the brokers that are not shutting down."""
        offsets = (
            session.metadata_offset
            for session in self._sessions.values()
            if session.shutdown_offset == NO_OFFSET
        )
        return min(offsets, default=NEVER_MS)

    def _deadline_ms(self, session: Session) -> int:
        if not session.can_end:
            return NEVER_MS - 1
        return session.last_contact_ms + self.session_timeout_ms
