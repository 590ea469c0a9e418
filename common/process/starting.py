"""What a program does at its start: its log lines, the line that says that it is ready, its memory.

A program that keeps many records for a short time has a garbage collector that runs seldom. Records
are freed by their reference counts. About ten thousand of them wait for the brokers'
answers, or lie in a service's store, each of several objects. With Python's thresholds the
collector visits every one three times before it is freed. These visits take a sixth of the
mirror's time. They take a tenth of the time that the orders service needs for an order.
`collect_seldom` lets the collector run only after many more allocations. It never visits objects
that were loaded before the work began.
"""

import gc
import logging
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_NOTHING: Mapping[str, int] = MappingProxyType({})


def configure_logging(levels: Mapping[str, int] = _NOTHING) -> None:
    """Log to standard error, one event with fields per line; `levels` are those of libraries."""
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
    # aiokafka logs a refused connection many times a second; the programs log it once.
    logging.getLogger("aiokafka").setLevel(logging.ERROR)
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def announce(name: str, url: str) -> None:
    """Say that the program is ready at this address."""
    sys.stdout.write(f"millstream {name} ready on {url}\n")
    sys.stdout.flush()


_NEW_OBJECTS: Final = 50_000
"""How many new objects start a collection; if all of them were in cycles, some megabytes."""


def collect_seldom() -> None:
    """Make the collector run seldom. Call it when all modules are loaded."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, *gc.get_threshold()[1:])
