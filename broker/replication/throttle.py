"""Replication throttles: how fast replicas that are not in sync may be filled (KIP-73).

`leader.replication.throttled.rate` and `follower.replication.throttled.rate` limit the bytes of the
partitions named in `*.replication.throttled.replicas`. The rate is the number of bytes in the last
windows divided by their time: from the start of the first counted window until the present, at
least one window. The code that moves bytes records them, also those above the limit, and it checks
the limit before it moves more. In-sync replicas are never throttled: they would fall out of sync.
"""

from collections import deque
from collections.abc import Iterable

WINDOW_MS = 1_000  # replication.quota.window.size.seconds
WINDOW_COUNT = 11  # replication.quota.window.num
NO_LIMIT = 2**63 - 1
ALL_PARTITIONS = frozenset({-1})


class RateLimit:
    """A limit and the bytes moved. Invariant: windows ascend, and expired ones are removed."""

    __slots__ = ("_total_bytes", "_windows", "limit_bytes_per_second", "window_count", "window_ms")

    def __init__(
        self,
        limit_bytes_per_second: int = NO_LIMIT,
        *,
        window_ms: int = WINDOW_MS,
        window_count: int = WINDOW_COUNT,
    ) -> None:
        self.limit_bytes_per_second = limit_bytes_per_second
        self.window_ms = window_ms
        self.window_count = window_count
        self._windows: deque[list[int]] = deque()  # [begin_ms, bytes]
        self._total_bytes = 0

    def record(self, size_bytes: int, now_ms: int) -> None:
        """Count bytes that were moved."""
        self._expire(now_ms)
        windows = self._windows
        if not windows or now_ms - windows[-1][0] >= self.window_ms:
            windows.append([now_ms, 0])
        windows[-1][1] += size_bytes
        self._total_bytes += size_bytes

    def bytes_per_second(self, now_ms: int) -> float:
        """Return the rate up to `now_ms`."""
        self._expire(now_ms)
        if not self._windows:
            return 0.0
        elapsed_ms = max(now_ms - self._windows[0][0], self.window_ms)
        return self._total_bytes * 1_000 / elapsed_ms

    def is_exceeded(self, now_ms: int) -> bool:
        """Return True if the rate is above the limit."""
        return self.bytes_per_second(now_ms) > self.limit_bytes_per_second

    def wait_ms(self, now_ms: int) -> int:
        """Return how long to wait before the next check; 0 if the limit is not exceeded.

        The wait is at most one window, because the limit may be changed meanwhile.
        """
        if not self.is_exceeded(now_ms):
            return 0
        limit = self.limit_bytes_per_second
        if limit <= 0:
            return self.window_ms
        allowed_at_ms = self._windows[0][0] + -(-self._total_bytes * 1_000 // limit)
        return min(max(1, allowed_at_ms - now_ms), self.window_ms)

    def _expire(self, now_ms: int) -> None:
        oldest_ms = now_ms - self.window_ms * self.window_count
        while self._windows and self._windows[0][0] <= oldest_ms:
            self._total_bytes -= self._windows.popleft()[1]


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
