"""Answers to clients between the end of a broker's process and the election of the next leaders.

Only the controller decides that a broker is gone. But a broker that fetches from another one sees
the connection break at the same moment as the clients, which ask another broker for the leaders at
once. Two rules make the first answer correct:

- A broker whose connection broke is *in doubt* until it is reached again or fenced, or until
  DOUBT_MS are over. An answer that would name it as a leader waits that long: some milliseconds, or
  an election of the quorum if the process was the active controller too. A client that gets the
  old leader again uses it, and librdkafka asks again only a second later.
- A broker that is fenced leads nothing, and is still *named* with its address for
  `broker.session.timeout.ms`, again from its next registration on, unless it is unregistered.
  librdkafka (2.10 to 2.16 at least) drops a broker that is not named, together with the partitions
  that it is about to move to the leader named in the same answer, and from 2.12 on it may wait for
  ever for a coordinator that it has dropped (`docs/known-client-bugs.md`). Apache Kafka names a
  broker that has crashed until its session ends, and leaves its partitions without a leader as
  long; after a controlled shutdown it does not name it at all.

A broker that has just started has seen nobody go: it names fenced brokers that have replicas.
"""

from collections.abc import Iterable

from broker.metadata.delta import MetadataDelta
from broker.server.clock import Clock
from broker.server.cluster.metadata_quorum import ClusterMetadata, MetadataWaits
from broker.server.network.later import Later

DOUBT_MS = 1_000


class Departures:
    """Owns the time at which each broker was lost, and the time at which it was fenced."""

    def __init__(
        self, clock: Clock, metadata: ClusterMetadata, waits: MetadataWaits, named_ms: int
    ) -> None:
        """`named_ms` is broker.session.timeout.ms."""
        self._named_ms = named_ms
        self._clock = clock
        self._metadata = metadata
        self._waits = waits
        self._lost_at_ms: dict[int, int] = {}
        self._known: set[int] | None = None
        """The brokers that have been alive once; None until the first change."""
        self._fenced_at_ms: dict[int, int] = {}

    # --- in doubt ---

    def on_lost(self, broker_id: int) -> None:
        """Put a broker in doubt: a connection to it broke, or could not be made."""
        self._lost_at_ms[broker_id] = self._clock.now_ms()

    def on_reached(self, broker_id: int) -> None:
        """End the doubt: the broker has answered."""
        if self._lost_at_ms.pop(broker_id, None) is not None:
            self._waits.look()

    @property
    def has_doubts(self) -> bool:
        """True if `when_known` may have to wait."""
        return bool(self._lost_at_ms)

    def when_known(self, leaders: Iterable[int]) -> Later:
        """Return a Later that is done when none of the leaders is in doubt."""
        in_doubt = sorted(filter(self._is_in_doubt, self._lost_at_ms.keys() & set(leaders)))
        return self._waits.until(
            lambda: not any(map(self._is_in_doubt, in_doubt)), timeout_ms=DOUBT_MS
        )

    def _is_in_doubt(self, broker_id: int) -> bool:
        lost_at_ms = self._lost_at_ms.get(broker_id)
        if lost_at_ms is None:
            return False
        image = self._metadata.image.brokers.get(broker_id)
        if image is None or image.is_fenced or self._clock.now_ms() - lost_at_ms >= DOUBT_MS:
            del self._lost_at_ms[broker_id]
            return False
        return True

    # --- named ---

    def apply(self, delta: MetadataDelta) -> None:
        """Follow which brokers are fenced."""
        if not delta.changed_brokers:
            return
        if self._known is None:
            self._known = self._with_replicas()
        now_ms, brokers = self._clock.now_ms(), self._metadata.image.brokers
        for broker_id in sorted(delta.changed_brokers):
            image = brokers.get(broker_id)
            if image is None or not image.is_fenced:
                self._fenced_at_ms.pop(broker_id, None)
            elif broker_id in self._known:
                self._fenced_at_ms[broker_id] = now_ms
            if image is None:
                self._known.discard(broker_id)
            elif not image.is_fenced:
                self._known.add(broker_id)

    def _with_replicas(self) -> set[int]:
        topics = self._metadata.image.topics.by_name.values()
        partitions = (partition for topic in topics for partition in topic.partitions.values())
        return {replica for partition in partitions for replica in partition.replicas}

    def named(self) -> set[int]:
        """Return the fenced brokers that are still named."""
        before_ms = self._clock.now_ms() - self._named_ms
        for broker_id in [id_ for id_, at in self._fenced_at_ms.items() if at <= before_ms]:
            del self._fenced_at_ms[broker_id]
        return set(self._fenced_at_ms)
