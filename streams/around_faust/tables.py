"""Tables: rows in RocksDB, every change in a changelog topic first.

Faust's own table writes its store first and sends the change without waiting, so a crash or a
failed send leaves the store ahead of the changelog, and the next owner of the partition lacks rows
whose records count as handled. Its recovery has known defects (offsets that are one too low; events
of one table that are applied to another during a rebalance, together with their offsets). So:

1. **The changelog comes first.** Rows are committed to it in one transaction with the sent records
   and the input's position (`writer`), and only then written to the store. Hence: position
   = changelog, store <= changelog.
2. **The changelog is the state.** When a rebalance is over, before any record is handled, the
   rows of every active partition are read from the changelog, first to last record, and the
   store is made equal to it: rows that differ are replaced, rows that the changelog lacks are
   removed. Before that, `fence` has ended the open transaction of a former owner, whose later
   transactions cannot be committed. Faust's standbys, which keep copies on other instances, are
   only an optimization.
3. **A row contains the offsets that it has applied** (`records.Origin`), so an event that a
   producer has written twice, or a position that was not committed in time, changes nothing.

So each record counts exactly once, and its output is sent exactly once, even if processes die,
freeze or wake up. The price is one read of the compacted changelog at each rebalance.

Its stores close their databases. Faust only drops its references to a database. A traceback of a
crashed app is enough to keep the database open and locked, and then neither the next app nor a
later assignment of the partition can open it.

Faust's table recovery (`Tables`) reads no changelogs into active tables. Faust would first read the
same changelogs up to the record before their end, and wait for ever: rows are written in
transactions, so the last entry of a partition is a marker. Standbys are read by Faust's own code.
"""

import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, cast

import faust
from faust.stores import rocksdb
from faust.tables import TableManager
from faust.tables.recovery import Recovery
from rocksdict import DbClosedError
from yarl import URL

from streams.around_faust.log_reader import LogReader
from streams.micro_batch import Message, MicroBatch, RowKey
from streams.records import Row

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


# Another name than the module's, under which Faust logs every start and stop of a table.
log = logging.getLogger("streams.changelogs")

Fence = Callable[[], Awaitable[int]]
"""Called before a changelog is read: fences its other writers. Returns the generation."""
Restored = Callable[[str, int], Awaitable[None]]
"""Called with the table's name and the generation when its store equals its changelog."""

# Faust's own variable follows the stream, but records also come from `log_reader`.
current_partition: ContextVar[int] = ContextVar("current_partition")

ROCKSDB_OPTIONS = {
    # Faust's defaults are for one large store; this process has a few dozen small ones.
    "driver": "rocksdict",
    "write_buffer_size": 2 << 20,
    "max_write_buffer_number": 2,
    "target_file_size_base": 8 << 20,
    "block_cache_size": 4 << 20,
    "block_cache_compressed_size": 1 << 20,
    "max_open_files": 64,
}


def row_bytes(row: Row) -> bytes:
    """Return a row as bytes for changelog and store; equal rows have the same bytes."""
    return json.dumps(row, separators=(",", ":"), sort_keys=True).encode()


class ChangelogTable(faust.Table[bytes, bytes]):
    """A table whose keys are strings and whose rows are JSON; made by `app.Table`."""

    log_reader: LogReader
    fence: Fence
    generation: Callable[[], int]
    restored: Restored
    batch: MicroBatch
    """The effects of the records in progress."""

    def row(self, key: str) -> Row | None:
        """Return a row in the partition of the current record."""
        partition = current_partition.get()
        made = self.batch.row(partition, key)
        return self.local_row(key, partition) if made is None else made

    def changes(self, rows: Mapping[RowKey, Row]) -> list[Message]:
        """Return rows as records for the changelog."""
        topic = self.changelog_topic_name
        return [
            Message(topic, key.encode(), row_bytes(row), [], partition)
            for (partition, key), row in rows.items()
        ]

    def keep(self, rows: Mapping[RowKey, Row]) -> None:
        """Write rows to the store that are already in the changelog."""
        for (partition, key), row in rows.items():
            self._database(partition).put(key.encode(), row_bytes(row))

    def local_rows(self, partitions: Iterable[int] | None = None) -> Iterable[tuple[str, Row]]:
        """Yield all rows of these partitions, for views; by default of the active ones."""
        held = self.active_partitions() if partitions is None else partitions
        for partition in sorted(held):
            for key, value in self._rows(partition):
                yield key.decode(), json.loads(value)

    def local_row(self, key: str, partition: int) -> Row | None:
        """Return one row of a partition, outside of any agent."""
        value = self._database(partition).get(key.encode())
        return None if value is None else cast(Row, json.loads(value))

    def active_partitions(self) -> set[int]:
        actives = self.app.assignor.assigned_actives()
        return {one.partition for one in actives if one.topic == self.changelog_topic_name}

    # -- called by Faust

    def _new_store_by_url(self, url: str | URL) -> Any:
        return ClosingStore(
            url,
            self.app,
            self,
            table_name=self.name,
            key_type=self.key_type,
            key_serializer=self.key_serializer,
            value_serializer=self.value_serializer,
            value_type=self.value_type,
            loop=self.loop,
            options=self.options,
        )

    def apply_changelog_batch(self, batch: Iterable[Any]) -> None:
        """Apply the events of a standby, except those that Faust passes to the wrong table."""
        own = [event for event in batch if event.message.topic == self.changelog_topic_name]
        super().apply_changelog_batch(own)

    async def on_recovery_completed(self, active_tps: set[Any], standby_tps: set[Any]) -> None:
        """Make the store equal to the changelog before Faust delivers records."""
        partitions = sorted(one.partition for one in active_tps)
        try:
            generation = await self.fence()
            if partitions:
                await self._restore(partitions, generation)
            await super().on_recovery_completed(active_tps, standby_tps)
            await self.restored(self.name, generation)
        # Faust ignores an error of this method, so the app is crashed here; a new one replaces it.
        except Exception as error:
            log.exception("table not restored table=%s", self.name)
            await self.app.crash(error)

    # -- internal

    async def _restore(self, partitions: list[int], generation: int) -> None:
        rows = await self.log_reader.last_values(self.changelog_topic_name, partitions)
        if generation != self.generation():
            # Faust continues although a newer rebalance has begun; the store may be ahead of it.
            log.info("table not restored, its assignment is over table=%s", self.name)
            return
        changed = 0
        for partition in partitions:
            store = self._database(partition)
            wanted = rows[partition]
            present = dict(self._rows(partition))
            for key in present.keys() - wanted.keys():
                store.delete(key)
                changed += 1
            for key, value in wanted.items():
                if present.get(key) != value:
                    store.put(key, value)
                    changed += 1
        log.info(
            "table restored table=%s partitions=%s rows=%d repaired=%d",
            self.name,
            partitions,
            sum(map(len, rows.values())),
            changed,
        )

    def _database(self, partition: int) -> Any:
        # Outside of an agent, Faust offers no way to choose the partition.
        store: Any = self.data
        return store._db_for_partition(partition)  # noqa: SLF001

    def _rows(self, partition: int) -> Iterable[tuple[bytes, bytes]]:
        store: Any = self.data
        rows: Iterable[tuple[bytes, bytes]]
        rows = store._visible_items(self._database(partition))  # noqa: SLF001
        return rows


class _Recovery(Recovery):
    def need_recovery(self) -> bool:
        return False


class Tables(TableManager):
    """Faust's recovery for all tables of an app."""

    @property
    def recovery(self) -> Any:
        if self._recovery is None:
            self._recovery = _Recovery(self.app, self, beacon=self.beacon, loop=self.loop)
        return self._recovery

    async def on_start(self) -> None:
        """Start like Faust, but without its initial wait of one second."""
        await self._update_channels()
        await self.recovery.start()
