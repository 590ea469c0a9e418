"""Keeps the pauses of the garbage collector short.

Nearly all objects of a node are freed by their reference count; the collector only finds cycles. A
full collection visits every live object: 20 to 90 ms with 10,000 partitions, or while a request of
200,000 entries is answered. The objects that survive a long collection are most likely metadata, or
are freed by their count later: they are frozen, and the next full collection visits only newer
objects. With Python's own thresholds these may be 150,000 objects, which take 80 ms: an answer
about 100,000 groups creates that many at once. Full collections are therefore three times as
frequent here, and each visits a third as many objects.

Objects that are known to stay, such as the groups of a shard that is being loaded, are never
visited: they are made while the collector is disabled, and then frozen (`spared`). Otherwise
100,000 groups and as many transactional ids cost a hundred full collections, some of 30 ms.

A frozen cycle is not freed when it becomes unreachable: these are a few objects of connections that
were open at the time of a freeze. All frozen objects are therefore collected once an hour.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

FULL = 2
LONG_SECONDS = 0.005
EVERYTHING_SECONDS = 3_600.0
FULL_AFTER = 3
"""A full collection follows this many collections of the middle generation; Python has 10."""


class Collector:
    """A callback of `gc`: see the module."""

    def __init__(
        self,
        now: Callable[[], float],
        *,
        freeze: Callable[[], None] = gc.freeze,
        unfreeze: Callable[[], None] = gc.unfreeze,
    ) -> None:
        self._now = now
        self._freeze = freeze
        self._unfreeze = unfreeze
        self._started = 0.0
        self._looked_at_everything = now()
        self._thresholds = gc.get_threshold()
        self._is_on = False

    def start(self) -> None:
        """Collect, and freeze the remaining objects; called before any request is served."""
        gc.collect()
        self._freeze()
        gc.set_threshold(*self._thresholds[:2], FULL_AFTER)
        gc.callbacks.append(self.on_collection)
        self._is_on = True

    @contextmanager
    def spared(self) -> Iterator[None]:
        """Disable the collector while long-lived objects are made, and freeze all objects then."""
        if not self._is_on:
            yield
            return
        gc.disable()
        try:
            yield
        finally:
            self._freeze()
            gc.enable()

    def stop(self) -> None:
        """Restore the collector's own settings."""
        if self._is_on:
            self._is_on = False
            gc.callbacks.remove(self.on_collection)
            gc.set_threshold(*self._thresholds)

    def on_collection(self, phase: str, about: dict[str, Any]) -> None:
        """Handle the start or the end of a collection."""
        if about["generation"] != FULL:
            return
        now = self._now()
        if phase == "start":
            self._started = now
        elif now - self._started >= LONG_SECONDS:
            if now - self._looked_at_everything < EVERYTHING_SECONDS:
                self._freeze()
            else:
                # The next collection visits all objects, takes long, and freezes the survivors.
                self._looked_at_everything = now
                self._unfreeze()
