"""The index in a file: SQLite with its full-text search (FTS5).

One transaction takes a batch of documents and the positions they came from. Several instances on
one machine may share the file: SQLite lets one write at a time, and readers are never in the way.
It is not synced with every batch: after a power cut it lacks its last batches and their positions
both, and reads them again.
"""

import asyncio
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from services.search.domain import Document, Found, IndexAwayError, Place, Question

_BUSY_SECONDS = 10.0
_SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS orders (
    row INTEGER PRIMARY KEY,
    order_id TEXT NOT NULL UNIQUE,
    version INTEGER NOT NULL,
    ordered_at_ms INTEGER NOT NULL,
    customer_id TEXT NOT NULL,
    state TEXT NOT NULL,
    summary TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS orders_by_time ON orders (ordered_at_ms, order_id);
CREATE INDEX IF NOT EXISTS orders_by_customer ON orders (customer_id, ordered_at_ms, order_id);
CREATE INDEX IF NOT EXISTS orders_by_state ON orders (state, ordered_at_ms, order_id);
CREATE VIRTUAL TABLE IF NOT EXISTS order_words
    USING fts5 (words, tokenize = 'unicode61 remove_diacritics 0');
CREATE TABLE IF NOT EXISTS positions (
    partition INTEGER PRIMARY KEY,
    next_offset INTEGER NOT NULL
);
"""
_PUT = """
INSERT INTO orders (order_id, version, ordered_at_ms, customer_id, state, summary)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (order_id) DO UPDATE SET version = excluded.version,
    ordered_at_ms = excluded.ordered_at_ms, customer_id = excluded.customer_id,
    state = excluded.state, summary = excluded.summary
WHERE excluded.version > orders.version
RETURNING row
"""
_PUT_POSITION = """
INSERT INTO positions (partition, next_offset) VALUES (?, ?)
ON CONFLICT (partition) DO UPDATE SET next_offset = max(next_offset, excluded.next_offset)
"""

T = TypeVar("T")


class SqliteIndex:
    """One connection to write and one to read, each used by one thread at a time."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._writer: _Connection | None = None
        self._reader: _Connection | None = None

    async def open(self) -> None:
        if self._reader is not None:
            return
        self._writer = await asyncio.to_thread(_Connection, self._file, _SCHEMA)
        self._reader = await asyncio.to_thread(_Connection, self._file, "PRAGMA query_only = ON")

    async def close(self) -> None:
        for connection in (self._writer, self._reader):
            if connection is not None:
                connection.close()

    async def positions(self) -> dict[int, int]:
        return await _run(self._writer, _read_positions)

    async def put(self, documents: Sequence[Document], positions: Mapping[int, int]) -> None:
        await _run(self._writer, lambda database: _put(database, documents, positions))

    async def find(self, question: Question) -> list[Found]:
        return await _run(self._reader, lambda database: _find(database, question))

    async def count(self) -> int:
        return await _run(self._reader, _count)


class _Connection:
    """A connection that goes from thread to thread, never to two at once."""

    def __init__(self, file: Path, script: str) -> None:
        self._lock = threading.Lock()
        with _away_if_broken():
            file.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(
                file, isolation_level=None, timeout=_BUSY_SECONDS, check_same_thread=False
            )
            self._database.executescript(script)

    def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with self._lock, _away_if_broken():
            return work(self._database)

    def close(self) -> None:
        with self._lock:
            self._database.close()


async def _run(connection: _Connection | None, work: Callable[[sqlite3.Connection], T]) -> T:
    if connection is None:
        raise IndexAwayError("the index is not open yet")
    return await asyncio.to_thread(connection.run, work)


@contextmanager
def _away_if_broken() -> Iterator[None]:
    """Turn errors of SQLite (a full disk, a lock, a file that is no database) into
    IndexAwayError."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise IndexAwayError(str(error)) from error


def _read_positions(database: sqlite3.Connection) -> dict[int, int]:
    return dict(database.execute("SELECT partition, next_offset FROM positions"))


def _count(database: sqlite3.Connection) -> int:
    count: int = database.execute("SELECT count(*) FROM orders").fetchone()[0]
    return count


def _put(
    database: sqlite3.Connection, documents: Sequence[Document], positions: Mapping[int, int]
) -> None:
    database.execute("BEGIN IMMEDIATE")
    try:
        for document in documents:
            _put_document(database, document)
        database.executemany(_PUT_POSITION, positions.items())
        database.execute("COMMIT")
    except BaseException:
        database.execute("ROLLBACK")
        raise


def _put_document(database: sqlite3.Connection, document: Document) -> None:
    summary = json.dumps(document.summary, separators=(",", ":"))
    values = (
        document.place.order_id,
        document.version,
        document.place.ordered_at_ms,
        document.customer_id,
        document.state,
        summary,
    )
    put = database.execute(_PUT, values).fetchone()
    if put is not None:
        words = " ".join(document.words)
        database.execute(
            "INSERT OR REPLACE INTO order_words (rowid, words) VALUES (?, ?)", (*put, words)
        )


def _find(database: sqlite3.Connection, question: Question) -> list[Found]:
    conditions, values = ["TRUE"], list[Any]()
    if question.customer_id is not None:
        conditions.append("customer_id = ?")
        values.append(question.customer_id)
    if question.state is not None:
        conditions.append("state = ?")
        values.append(question.state)
    if question.words:
        conditions.append("row IN (SELECT rowid FROM order_words WHERE order_words MATCH ?)")
        values.append(" AND ".join(f'"{word}" *' for word in question.words))
    if question.behind is not None:
        conditions.append("(ordered_at_ms, order_id) < (?, ?)")
        values += question.behind
    found = database.execute(
        f"SELECT ordered_at_ms, order_id, summary FROM orders WHERE {' AND '.join(conditions)} "
        "ORDER BY ordered_at_ms DESC, order_id DESC LIMIT ?",
        (*values, question.limit + 1),
    )
    return [Found(Place(at_ms, order_id), json.loads(text)) for at_ms, order_id, text in found]
