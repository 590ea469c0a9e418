"""Brokers that go: what clients are told between the end of a process and the next leader.

That a broker is gone is the controller's decision alone. But a broker that fetches from another one
sees the connection break in the same moment as the clients do, and these ask somebody else at once
who leads now. Two rules make the first answer they get the right one:

- A broker whose connection broke is *in doubt* until it is reached again, or fenced, or DOUBT_MS
  are over. An answer that would name it as a leader waits that long: it is some milliseconds, or an
  election of the quorum when the process was the active controller too. A client that were told of
  the old leader again would believe it, and librdkafka ask again a second later.
- A broker that is fenced is *named* with its address for NAMED_MS, though it leads nothing any
  more, as Apache Kafka names one until its session is over. librdkafka (2.10 to 2.16 at least)
  drops a broker that is not named, and with it the partitions that it is about to move from there
  to the leader it has learned of in the same answer; it finds them again a second later.
"""

from collections.abc import Iterable

from broker.metadata.delta import MetadataDelta
from broker.server.clock import Clock
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.cluster.metadata_waits import MetadataWaits
from broker.server.network.later import Later

DOUBT_MS = 1_000
NAMED_MS = 9_000  # broker.session.timeout.ms


class Departures:
    """Owns when each broker was lost, and when it was fenced."""

    def __init__(self, clock: Clock, metadata: ClusterMetadata, waits: MetadataWaits) -> None:
        self._clock = clock
        self._metadata = metadata
        self._waits = waits
        self._lost_at_ms: dict[int, int] = {}
        self._alive: set[int] = set()
        self._fenced_at_ms: dict[int, int] = {}

    # --- in doubt ---

    def on_lost(self, broker_id: int) -> None:
        """Take note that a connection to a broker broke, or could not be made."""
        self._lost_at_ms[broker_id] = self._clock.now_ms()

    def on_reached(self, broker_id: int) -> None:
        """Take note that a broker has answered, after all."""
        if self._lost_at_ms.pop(broker_id, None) is not None:
            self._waits.look()

    @property
    def has_doubts(self) -> bool:
        """Whether `when_known` might wait."""
        return bool(self._lost_at_ms)

    def when_known(self, leaders: Iterable[int]) -> Later:
        """Return what is done when none of the leaders is in doubt."""
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
        """Follow who is fenced and who is not."""
        now_ms, brokers = self._clock.now_ms(), self._metadata.image.brokers
        for broker_id in sorted(delta.changed_brokers):
            image = brokers.get(broker_id)
            if image is not None and not image.is_fenced:
                self._alive.add(broker_id)
                self._fenced_at_ms.pop(broker_id, None)
            elif broker_id in self._alive:
                self._alive.discard(broker_id)
                self._fenced_at_ms[broker_id] = now_ms

    def named(self) -> set[int]:
        """Return the brokers that are fenced, and named nevertheless."""
        now_ms = self._clock.now_ms()
        for broker_id in [id_ for id_, at in self._fenced_at_ms.items() if now_ms >= at + NAMED_MS]:
            del self._fenced_at_ms[broker_id]
        return set(self._fenced_at_ms)
