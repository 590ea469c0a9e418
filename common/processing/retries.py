"""How long to wait before something is tried again."""

_FIRST_DELAY_MS = 200
_LAST_DELAY_MS = 30_000
_DOUBLINGS_MAX = 20


def retry_delay_ms(attempts: int) -> int:
    """Return how long to wait before the next attempt, after so many that failed."""
    return min(_FIRST_DELAY_MS << min(attempts, _DOUBLINGS_MAX), _LAST_DELAY_MS)
