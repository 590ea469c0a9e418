"""Which groups and topics programs declare: `python -P -m common.processing.declared PACKAGE...`.

Prints them as JSON for programs that cannot import the packages, such as `millstream demo`. Each
package has a module `declared` with a function of that name.
"""

import json
import sys
from importlib import import_module
from typing import NamedTuple


class Declared(NamedTuple):
    """One consumer group, empty if there is none, and the topics that its members read or write."""

    group: str
    topics: tuple[str, ...]


def main(packages: list[str]) -> None:
    """Print what the packages declare."""
    found = [one for package in packages for one in import_module(f"{package}.declared").declared()]
    sys.stdout.write(json.dumps([one._asdict() for one in found]) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
