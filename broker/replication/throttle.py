"""Replication throttles: how fast replicas that are not in sync may be filled (KIP-73).

`leader.replication.throttled.rate` and `follower.replication.throttled.rate` limit the bytes of the
partitions named in `*.replication.throttled.replicas`. The code that moves bytes records them, also
those above the limit, and it checks the limit before it moves more. In-sync replicas are never
throttled: they would fall out of sync.
"""

from collections.abc import Iterable

from broker.quotas.rate import RateLimit

ALL_PARTITIONS = frozenset({-1})


class ReplicationThrottle:
    """One side, leader or follower, of one broker."""

    __slots__ = ("_replicas", "is_used", "rate")

    def __init__(self, rate: RateLimit | None = None) -> None:
        self.rate = rate or RateLimit()
        self.is_used = False
        """True if any partition is throttled; if not, callers skip the check per partition."""
        self._replicas: dict[str, frozenset[int]] = {}

    def throttle(self, topic: str, partitions: Iterable[int]) -> None:
        """Throttle these partitions of a topic: ALL_PARTITIONS for all, an empty set for none."""
        chosen = frozenset(partitions)
        if chosen:
            self._replicas[topic] = chosen
        else:
            self._replicas.pop(topic, None)
        self.is_used = bool(self._replicas)

    def is_throttled(self, topic: str, partition: int) -> bool:
        """Return True if a partition is throttled, so that its bytes count."""
        chosen = self._replicas.get(topic)
        return chosen is not None and (partition in chosen or chosen >= ALL_PARTITIONS)

    def must_wait(self, topic: str, partition: int, *, is_in_sync: bool, now_ms: int) -> bool:
        """Return True if a replica must not receive bytes of a partition at this time."""
        return (
            not is_in_sync and self.is_throttled(topic, partition) and self.rate.is_exceeded(now_ms)
        )


def replicas_on(broker_id: int, setting: str) -> frozenset[int]:
    """Return the partitions that `*.replication.throttled.replicas` names for a broker.

    The setting is "*" for all, or a list of partition:broker.
    """
    if setting.strip() == "*":
        return ALL_PARTITIONS
    pairs = [pair.split(":") for pair in setting.replace(" ", "").split(",") if pair]
    return frozenset(int(partition) for partition, broker in pairs if int(broker) == broker_id)
