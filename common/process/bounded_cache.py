"""A cache with a limit in bytes that drops the least recently used entry. Pure."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """Invariant: the weights of its entries are at most `limit_bytes` together."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._bytes = 0

    @property
    def size_bytes(self) -> int:
        """Return the weights of all entries together."""
        return self._bytes

    def get(self, key: K) -> V | None:
        """Return the value of a key, None if there is none."""
        found = self._entries.get(key)
        if found is None:
            return None
        self._entries.move_to_end(key)
        return found[0]

    def put(self, key: K, value: V, weight_bytes: int) -> None:
        """Set a key's value; one that is heavier than the limit only removes the old one."""
        self._drop(key)
        if weight_bytes > self._limit_bytes:
            return
        self._entries[key] = (value, weight_bytes)
        self._bytes += weight_bytes
        while self._bytes > self._limit_bytes:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: K) -> None:
        found = self._entries.pop(key, None)
        if found is not None:
            self._bytes -= found[1]
