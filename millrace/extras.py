"""Extras that parts of Millrace need beyond the distribution, told by name where one is missing."""

import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import NamedTuple


class Needed(NamedTuple):
    """A package that a part imports, and the extra that brings it."""

    package: str
    extra: str


NEEDED: Mapping[str, Needed] = {
    "streams": Needed("faust", "streams"),
    "dashboard": Needed("plotly", "spark"),
    "spark-job": Needed("pyspark", "spark"),
}
"""By the command that needs it."""


def missing_for(command: str) -> str | None:
    """Say what a command lacks, and how it is installed; None when all is there."""
    needed = NEEDED.get(command)
    return None if needed is None else missing(needed, f"millrace {command}")


def missing(needed: Needed, what: str) -> str | None:
    """Say what is missing for `what`, and how it is installed; None when all is there."""
    # A package that is loaded may have taken its place among the modules without a specification.
    if needed.package in sys.modules or find_spec(needed.package) is not None:
        return None
    return f'{what} needs {needed.package}: pip install "millrace[{needed.extra}]"'
