"""Files that are gone for readers and wait under another name to be removed.

A removed segment is first renamed to `.deleted` and a removed partition to `-delete`; the bytes go
after `file.delete.delay.ms`, because unlinking gigabytes can block and a reader may be under way.
What a crash leaves behind is removed at the next start.
"""

from heapq import heappop, heappush

from broker.log.storage import Storage, remove_tree

DELETED_EXTENSION = ".deleted"


class DelayedDeletion:
    """The paths that wait, the earliest first."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._waiting: list[tuple[int, str]] = []

    def schedule(self, path: str, due_ms: int) -> None:
        """Remove a path, and all below it, at a wall-clock time."""
        heappush(self._waiting, (due_ms, path))

    def next_due_ms(self) -> int | None:
        """Give when there is something to remove next."""
        return self._waiting[0][0] if self._waiting else None

    def remove_due(self, timestamp_ms: int, limit: int | None = None) -> int:
        """Remove what is due, the first of it if there is a limit; gives how many paths."""
        removed = 0
        while self._waiting and self._waiting[0][0] <= timestamp_ms and removed != limit:
            remove_tree(self._storage, heappop(self._waiting)[1])
            removed += 1
        return removed
