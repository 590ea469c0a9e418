"""Which processes a program has started, from `/proc`."""

import contextlib
from collections import defaultdict
from pathlib import Path


def processes_below(pid: int) -> dict[int, list[str]]:
    """Return the command of each process below one, by id; those that end meanwhile may be missing.

    A process that has ended and was not waited for has no command, and is left out. Forked
    processes have their command in one piece, so it is split at spaces.

    Everybody is asked for his parent. `/proc` lists the children of each thread of a parent too,
    but threads end while one looks, and with siblings that end such a list may lack some (proc(5)).
    """
    children = _children()
    found = {}
    left = [*children[pid]]
    while left:
        child = left.pop()
        left += children[child]
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            command = Path(f"/proc/{child}/cmdline").read_bytes().decode()
            words = command.replace("\0", " ").split()
            if words:
                found[child] = words
    return found


def _children() -> dict[int, list[int]]:
    """Return the children of every process of this machine."""
    children = defaultdict(list)
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                # Behind the name, which may have brackets and spaces: the state, then the parent.
                parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
                children[int(parent)].append(int(folder.name))
    return children
