"""The line on standard output that says that a program is ready."""

import sys


def announce(name: str, url: str) -> None:
    """Say that the program is ready at this address."""
    sys.stdout.write(f"millstream {name} ready on {url}\n")
    sys.stdout.flush()
