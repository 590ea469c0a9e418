"""How the garbage collector is kept from looking at every record that is on its way.

Records are freed by their reference counts. Some ten thousand of them are between a source's task
and what the brokers say of them, or lie in a service's store, each of several objects, and with
Python's thresholds every one is looked at three times before it is gone: a sixth of a mirror's
time, a tenth of what an order costs the orders service. So the collector comes when many more
objects are there, and never looks at what was loaded before the work began.
"""

import gc
from typing import Final

_NEW_OBJECTS: Final = 50_000
"""After so many more a collection comes: with cycles in all of them, some megabytes."""


def collect_seldom() -> None:
    """Have the collector come seldom from now on: when all modules are loaded."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, *gc.get_threshold()[1:])
