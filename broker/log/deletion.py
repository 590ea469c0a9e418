"""Files that readers no longer use and that are deleted later.

A removed segment is first renamed to `.deleted`, and a removed partition to `-delete`. The files
are deleted after `file.delete.delay.ms`, because unlinking gigabytes can block and a reader may
still use them. After a crash, the next start removes them.
"""

from heapq import heappop, heappush

from broker.log.storage import Storage, remove_tree

DELETED_EXTENSION = ".deleted"


class DelayedDeletion:
    """The paths to delete, the earliest first."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._waiting: list[tuple[int, str]] = []

    def schedule(self, path: str, due_ms: int) -> None:
        """Schedule the deletion of a path, and of all below it, at a wall-clock time."""
        heappush(self._waiting, (due_ms, path))

    def next_due_ms(self) -> int | None:
        """Return the time of the next deletion; None if nothing waits."""
        return self._waiting[0][0] if self._waiting else None

    def remove_due(self, timestamp_ms: int, limit: int | None = None) -> int:
        """Delete the paths that are due, at most `limit`; return their number."""
        removed = 0
        while self._waiting and self._waiting[0][0] <= timestamp_ms and removed != limit:
            remove_tree(self._storage, heappop(self._waiting)[1])
            removed += 1
        return removed
