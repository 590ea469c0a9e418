"""Which processes a program has started, from `/proc`."""

import contextlib
from collections.abc import Iterator
from pathlib import Path


def processes_below(pid: int) -> dict[int, list[str]]:
    """Return the command of each process below one, by id; those that end meanwhile may lack.

    One that has ended and was not waited for yet has no command, and is none any more. Those that
    were forked name theirs in one piece: so words are what spaces part.
    """
    found = {}
    for child in _children(pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            command = Path(f"/proc/{child}/cmdline").read_bytes().decode()
            words = command.replace("\0", " ").split()
            if words:
                found[child] = words
            found |= processes_below(child)
    return found


def _children(pid: int) -> Iterator[int]:
    """A thread has the children that it started."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            yield from map(int, (thread / "children").read_text().split())
