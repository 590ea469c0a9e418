"""A garbage collector that runs seldom, for programs that keep many records for a short time.

Records are freed by their reference counts. About ten thousand of them wait for the brokers'
answers, or lie in a service's store, each of several objects. With Python's thresholds the
collector visits every one three times before it is freed: a sixth of a mirror's time, a tenth of
what an order costs the orders service. So it runs only when many more objects exist, and never
visits what was loaded before the work began.
"""

import gc
from typing import Final

_NEW_OBJECTS: Final = 50_000
"""After so many more a collection comes: with cycles in all of them, some megabytes."""


def collect_seldom() -> None:
    """Make the collector run seldom. Call it when all modules are loaded."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, *gc.get_threshold()[1:])
