"""A bucket of tokens that refills at a constant rate (KIP-599).

It limits what comes in few large amounts: one request may create many partitions. An amount is
taken whole if the bucket is not in debt, so the largest request passes, and those after it wait.
"""

from math import ceil

from broker.quotas.rate import MAX_WAIT_MS


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
