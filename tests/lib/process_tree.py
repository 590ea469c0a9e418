"""Find the processes that a program has started, in `/proc`."""

import contextlib
from collections import defaultdict
from pathlib import Path


def processes_below(pid: int) -> dict[int, list[str]]:
    """Return the command of each descendant by process id; some that end now may be missing.

    A zombie has no command and is omitted. Forked processes have their command as one string, so it
    is split at spaces.

    The parent of every process is read. `/proc` also lists the children of each thread, but threads
    may end during the search, and such a list may be incomplete if siblings end (proc(5)).
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
                # The state and the parent follow the name, which may have brackets and spaces.
                parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
                children[int(parent)].append(int(folder.name))
    return children
