"""A cache that forgets what was asked for longest ago when it holds too many bytes. Pure."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """Invariant: the weights of what it holds are at most `limit_bytes` together."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._held: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._bytes = 0

    def get(self, key: K) -> V | None:
        """Return what is held, None for what is not."""
        found = self._held.get(key)
        if found is None:
            return None
        self._held.move_to_end(key)
        return found[0]

    def put(self, key: K, value: V, weight_bytes: int) -> None:
        """Hold a value; one that is heavier than the limit is not held."""
        if weight_bytes > self._limit_bytes:
            return
        self._drop(key)
        self._held[key] = (value, weight_bytes)
        self._bytes += weight_bytes
        while self._bytes > self._limit_bytes:
            self._drop(next(iter(self._held)))

    def _drop(self, key: K) -> None:
        found = self._held.pop(key, None)
        if found is not None:
            self._bytes -= found[1]
