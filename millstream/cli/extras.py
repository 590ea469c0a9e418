"""Optional dependencies (extras) of parts of Millstream, and the messages about missing ones."""

import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import NamedTuple


class Needed(NamedTuple):
    """A package that a part imports, and the extra that installs it."""

    package: str
    extra: str


NEEDED: Mapping[str, Needed] = {
    "streams": Needed("faust", "streams"),
    "dashboard": Needed("plotly", "spark"),
    "spark-job": Needed("pyspark", "spark"),
}
"""The packages by the command that needs them."""


def missing_for(command: str) -> str | None:
    """Return a message with the missing package of a command; None if none is missing."""
    needed = NEEDED.get(command)
    return None if needed is None else missing(needed, f"millstream {command}")


def missing(needed: Needed, what: str) -> str | None:
    """Return a message with the missing package for `what`; None if none is missing."""
    # A loaded package may be in `sys.modules` without a specification.
    if needed.package in sys.modules or find_spec(needed.package) is not None:
        return None
    return f'{what} needs {needed.package}: pip install "millstream[{needed.extra}]"'
