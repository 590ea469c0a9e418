"""The tables of the serving store, and its opening.

These tables keep a restart from counting an event twice:

- `batches`: the last micro-batch of each streaming query, committed in the same transaction as the
  figures of the batch. It identifies a batch that Spark repeats after a crash.
- `order_events` and `order_checks`: every (order id, version) and (order id, check) counted so far.
  They identify an event that is delivered twice, or read again after the loss of a checkpoint,
  however much later.

Every changed row of a view gets the commit's `revision`, by which the publisher and the dashboard
find the new rows.
"""

import sqlite3
from pathlib import Path

LAYOUT_VERSION = 2
_BUSY_TIMEOUT_SECONDS = 10.0

_TABLES = """
CREATE TABLE IF NOT EXISTS properties (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batches (query_id TEXT PRIMARY KEY, batch_id INTEGER NOT NULL)
    WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS order_events (
    order_id TEXT, version INTEGER, PRIMARY KEY (order_id, version)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS order_checks (
    order_id TEXT, check_name TEXT, PRIMARY KEY (order_id, check_name)) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS orders (
    order_id TEXT PRIMARY KEY, version INTEGER, state TEXT,
    customer_id TEXT, country TEXT, ordered_ms INTEGER, total_e4 INTEGER,
    created_ms INTEGER, fraud_ms INTEGER, inventory_ms INTEGER, order_details_ms INTEGER,
    decided_ms INTEGER, validated_ms INTEGER, failed_ms INTEGER, paid_ms INTEGER,
    shipped_ms INTEGER, cancelled_ms INTEGER, shown_ms INTEGER) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS orders_by_creation ON orders (created_ms);

CREATE TABLE IF NOT EXISTS revenue (
    grain TEXT, window_start_ms INTEGER, state TEXT, country TEXT,
    orders INTEGER NOT NULL, revenue_e4 INTEGER NOT NULL, late_orders INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    PRIMARY KEY (grain, window_start_ms, state, country)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS revenue_by_revision ON revenue (revision);

CREATE TABLE IF NOT EXISTS products (
    product_id TEXT PRIMARY KEY, orders INTEGER NOT NULL, quantity INTEGER NOT NULL,
    revenue_e4 INTEGER NOT NULL, revision INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS products_by_revenue ON products (revenue_e4 DESC);
CREATE INDEX IF NOT EXISTS products_by_revision ON products (revision);
CREATE TABLE IF NOT EXISTS product_names (
    product_id TEXT PRIMARY KEY, description TEXT NOT NULL, updated_ms INTEGER NOT NULL)
    WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS verdicts (
    check_name TEXT, result TEXT, code TEXT, orders INTEGER NOT NULL, revision INTEGER NOT NULL,
    PRIMARY KEY (check_name, result, code)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS failures (
    check_name TEXT, code TEXT, orders INTEGER NOT NULL, revenue_e4 INTEGER NOT NULL,
    revision INTEGER NOT NULL, PRIMARY KEY (check_name, code)) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS customer_segments (
    customer_id TEXT PRIMARY KEY, recency_days INTEGER, frequency INTEGER, monetary_e4 INTEGER,
    recency_score INTEGER, frequency_score INTEGER, monetary_score INTEGER, segment TEXT)
    WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS closed_windows (
    grain TEXT, window_start_ms INTEGER, state TEXT, country TEXT, orders INTEGER NOT NULL,
    revenue_e4 INTEGER NOT NULL, revision INTEGER NOT NULL,
    PRIMARY KEY (grain, window_start_ms, state, country)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS closed_windows_by_revision ON closed_windows (revision);
CREATE TABLE IF NOT EXISTS latencies (
    order_id TEXT, check_name TEXT, result TEXT NOT NULL, placed_ms INTEGER NOT NULL,
    checked_latency_ms INTEGER NOT NULL, decided_latency_ms INTEGER NOT NULL,
    revision INTEGER NOT NULL, PRIMARY KEY (order_id, check_name)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS latencies_by_time ON latencies (placed_ms);
CREATE INDEX IF NOT EXISTS latencies_by_revision ON latencies (revision);

CREATE TABLE IF NOT EXISTS set_aside (
    topic TEXT, "partition" INTEGER, "offset" INTEGER, problem TEXT NOT NULL,
    PRIMARY KEY (topic, "partition", "offset")) WITHOUT ROWID;
"""


class UnreadableStoreError(Exception):
    """The file is no serving store, or one of another layout."""


def connect_writer(path: Path) -> sqlite3.Connection:
    """Open the store for writing; create it if it does not exist."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # One thread at a time uses the connection, but not always the same thread.
    connection = sqlite3.connect(
        path, timeout=_BUSY_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA journal_mode = WAL")
    # Spark never repeats a committed batch, so the commit must survive a power failure.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("BEGIN IMMEDIATE")
    _check_layout(connection, path)
    for statement in _TABLES.split(";"):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {LAYOUT_VERSION}")
    connection.execute("COMMIT")
    return connection


def connect_reader(path: Path) -> sqlite3.Connection | None:
    """Open the store for reading; return None if it does not exist."""
    if not path.exists():
        return None
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=_BUSY_TIMEOUT_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    # Not mode=ro: after a clean end of the writer a reader has to create the WAL's index again.
    connection.execute("PRAGMA query_only = ON")
    connection.row_factory = sqlite3.Row
    if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
        connection.close()
        return None
    _check_layout(connection, path)
    return connection


def _check_layout(connection: sqlite3.Connection, path: Path) -> None:
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    if found not in (0, LAYOUT_VERSION):
        raise UnreadableStoreError(f"{path} has layout {found}, this program {LAYOUT_VERSION}")
