"""Stores that close their databases.

Faust only drops its references to a database. A traceback of a crashed app is enough to keep the
database open and locked, and then neither the next app nor a later assignment of the partition can
open it.
"""

from contextlib import suppress
from pathlib import Path
from typing import Any

from faust.stores import rocksdb
from rocksdict import DbClosedError

_opened: dict[Path, Any] = {}
"""The open databases of this process by folder, including those of a crashed app."""


class ClosingStore(rocksdb.Store):
    """The rows of one table in RocksDB, with a database for each partition."""

    def _open_for_partition(self, partition: int) -> Any:
        folder = Path(self.partition_path(partition))
        _close(folder)
        database = super()._open_for_partition(partition)
        _opened[folder] = database
        return database

    async def stop(self) -> None:
        """Close all databases of this store."""
        for partition in self._dbs:
            _close(Path(self.partition_path(partition)))
        await super().stop()

    def revoke_partitions(self, table: Any, tps: Any) -> None:
        """Close the databases of revoked partitions."""
        given_up = [tp.partition for tp in tps if tp.topic in table.changelog_topic.topics]
        super().revoke_partitions(table, tps)
        for partition in given_up:
            _close(Path(self.partition_path(partition)))


def _close(folder: Path) -> None:
    database = _opened.pop(folder, None)
    if database is not None:
        with suppress(DbClosedError):
            database.close()
