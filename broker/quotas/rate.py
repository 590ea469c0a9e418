"""A rate in samples, and its limit; and a bucket of tokens.

The rate is the amount in the last windows divided by their time: from the start of the first
counted window until the present, at least one window. Kafka divides by at least all windows but one
(`Rate.windowSize`), so an idle client may send ten seconds' worth at once, and then nothing for ten
seconds. Dividing by the time that has passed holds the same average without that burst.

A bucket of tokens refills at a constant rate (KIP-599). It limits what comes in few large amounts:
one request may create many partitions. An amount is taken whole if the bucket is not in debt, so
the largest request passes, and those after it wait.
"""

from collections import deque
from math import ceil

WINDOW_MS = 1_000  # quota.window.size.seconds
WINDOW_COUNT = 11  # quota.window.num
NO_LIMIT = 2**63 - 1
MAX_WAIT_MS = 2**31 - 1
"""The longest time that an answer can tell."""


class RateLimit:
    """A limit and the amounts used. Invariant: windows ascend, and expired ones are removed."""

    __slots__ = ("_total", "_windows", "limit_per_second", "window_count", "window_ms")

    def __init__(
        self,
        limit_per_second: float = NO_LIMIT,
        *,
        window_ms: int = WINDOW_MS,
        window_count: int = WINDOW_COUNT,
    ) -> None:
        self.limit_per_second = limit_per_second
        self.window_ms = window_ms
        self.window_count = window_count
        self._windows: deque[tuple[int, float]] = deque()  # begin_ms, amount
        self._total: float = 0

    def record(self, amount: float, now_ms: int) -> None:
        """Count an amount that was used."""
        self._expire(now_ms)
        windows = self._windows
        if not windows or now_ms - windows[-1][0] >= self.window_ms:
            windows.append((now_ms, amount))
        else:
            begin_ms, before = windows[-1]
            windows[-1] = (begin_ms, before + amount)
        self._total += amount

    def total(self, now_ms: int) -> float:
        """Return the amount in the windows that count."""
        self._expire(now_ms)
        return self._total

    def per_second(self, now_ms: int) -> float:
        """Return the rate up to `now_ms`."""
        self._expire(now_ms)
        if not self._windows:
            return 0.0
        elapsed_ms = max(now_ms - self._windows[0][0], self.window_ms)
        return self._total * 1_000 / elapsed_ms

    def allows(self, amount: float, now_ms: int) -> bool:
        """Return True if the rate would be within the limit with this amount."""
        self._expire(now_ms)
        begin_ms = self._windows[0][0] if self._windows else now_ms
        elapsed_ms = max(now_ms - begin_ms, self.window_ms)
        return (self._total + amount) * 1_000 <= self.limit_per_second * elapsed_ms

    def is_exceeded(self, now_ms: int) -> bool:
        """Return True if the rate is above the limit."""
        return self.per_second(now_ms) > self.limit_per_second

    def excess_ms(self, now_ms: int) -> int:
        """Return the time until the rate is at the limit, if nothing more is used; 0 if it is."""
        if not self.is_exceeded(now_ms):
            return 0
        if self.limit_per_second <= 0:
            return self.window_ms * self.window_count
        allowed_ms = ceil(min(self._total * 1_000 / self.limit_per_second, MAX_WAIT_MS))
        return min(max(1, self._windows[0][0] + allowed_ms - now_ms), MAX_WAIT_MS)

    def wait_ms(self, now_ms: int) -> int:
        """Return how long to wait before the next check; 0 if the limit is not exceeded.

        The wait is at most one window, because the limit may be changed meanwhile.
        """
        return min(self.excess_ms(now_ms), self.window_ms)

    def _expire(self, now_ms: int) -> None:
        oldest_ms = now_ms - self.window_ms * self.window_count
        windows = self._windows
        while windows and windows[0][0] <= oldest_ms:
            self._total -= windows.popleft()[1]
        if not windows:
            self._total = 0  # fractions leave a rest


class TokenBucket:
    """Invariant: at most `burst` tokens; a debt is a negative number of tokens."""

    __slots__ = ("_at_ms", "_tokens", "_windows_ms", "limit_per_second")

    def __init__(self, limit_per_second: float, *, windows_ms: int, now_ms: int) -> None:
        """The bucket is full with the tokens of `windows_ms`."""
        self.limit_per_second = limit_per_second
        self._windows_ms = windows_ms
        self._tokens = self._burst
        self._at_ms = now_ms

    @property
    def _burst(self) -> float:
        return self.limit_per_second * self._windows_ms / 1_000

    def tokens(self, now_ms: int) -> float:
        """Return the tokens that are left."""
        gained = self.limit_per_second * (now_ms - self._at_ms) / 1_000
        self._tokens = min(self._tokens + gained, self._burst)
        self._at_ms = now_ms
        return self._tokens

    def change(self, limit_per_second: float, now_ms: int) -> None:
        """Set another rate; what the bucket has so far stays, up to the new burst."""
        self.tokens(now_ms)
        self.limit_per_second = limit_per_second

    def record(self, amount: float, now_ms: int) -> None:
        """Take tokens, also those that are not there; a negative amount gives them back."""
        self._tokens = self.tokens(now_ms) - amount

    def excess_ms(self, now_ms: int) -> int:
        """Return the time until the bucket is out of debt; 0 if it is not in debt."""
        tokens = self.tokens(now_ms)
        if tokens >= 0:
            return 0
        return max(1, ceil(min(-tokens * 1_000 / self.limit_per_second, MAX_WAIT_MS)))
