"""How the programs' log lines look, and the line that says that a program is ready."""

import logging
import sys
from collections.abc import Mapping
from types import MappingProxyType

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
