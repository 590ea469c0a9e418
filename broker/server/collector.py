"""How the garbage collector is kept from stopping the node for long.

Nearly everything here is freed by its reference count; the collector only looks for cycles, and a
full collection looks at every object that lives: 20 to 90 ms with 10,000 partitions, or while a
request of 200,000 entries is answered. What has survived one that took long is most likely
metadata, or is freed by its count: it is frozen, and never looked at again. So a full collection
looks at what is new since the last. With Python's own thresholds these may be 150,000 objects, and
80 ms: an answer about 100,000 groups is so many at once. So it comes three times as often here, and
looks at a third each time.

Of what is known to stay, as the groups of a shard that is being loaded, nothing is looked at even
once: it is made while the collector rests, and frozen (`spared`). Otherwise 100,000 groups and as
many transactional ids cost a hundred full collections, some of 30 ms.

A frozen cycle that dies stays: a few objects of a closed connection, of those that were open when
something large was asked for. So all of it is looked at once an hour, if anything was frozen.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

FULL = 2
LONG_SECONDS = 0.005
EVERYTHING_SECONDS = 3_600.0
FULL_AFTER = 3
"""After so many collections of the middle generation comes a full one; Python has 10."""


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
        """Collect, and freeze what is left; before anybody is served, who would wait for it."""
        gc.collect()
        self._freeze()
        gc.set_threshold(*self._thresholds[:2], FULL_AFTER)
        gc.callbacks.append(self.on_collection)
        self._is_on = True

    @contextmanager
    def spared(self) -> Iterator[None]:
        """Collect nothing while something is made that stays, and freeze all there is then."""
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
        """Leave the collector as it was."""
        if self._is_on:
            self._is_on = False
            gc.callbacks.remove(self.on_collection)
            gc.set_threshold(*self._thresholds)

    def on_collection(self, phase: str, about: dict[str, Any]) -> None:
        """Take note of a collection that begins or has ended."""
        if about["generation"] != FULL:
            return
        now = self._now()
        if phase == "start":
            self._started = now
        elif now - self._started >= LONG_SECONDS:
            if now - self._looked_at_everything < EVERYTHING_SECONDS:
                self._freeze()
            else:
                # The next one looks at everything, takes long, and what survives it is frozen.
                self._looked_at_everything = now
                self._unfreeze()
