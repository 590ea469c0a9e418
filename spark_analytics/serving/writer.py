"""The only writer of the serving store."""

import sqlite3
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from spark_analytics.serving.layout import connect_writer

Row = Mapping[str, Any]

_ORDER_COLUMNS = (
    "order_id", "version", "state", "customer_id", "country", "ordered_ms", "total_e4",
    "created_ms", "fraud_ms", "inventory_ms", "order_details_ms", "decided_ms", "validated_ms",
    "failed_ms", "paid_ms", "shipped_ms", "cancelled_ms", "shown_ms",
)  # fmt: skip
_FACTS = ("customer_id", "country", "ordered_ms", "total_e4")
_TIMES = _ORDER_COLUMNS[7:-1]


# The published views, and the key columns of each. Single orders are not published: the topics of
# the pipeline have them.
PUBLISHED_KEYS = {
    "revenue": ("grain", "window_start_ms", "state", "country"),
    "products": ("product_id",),
    "verdicts": ("check_name", "result", "code"),
    "failures": ("check_name", "code"),
    "closed_windows": ("grain", "window_start_ms", "state", "country"),
}


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The result of one micro-batch: new keys, and rows of each view."""

    query_id: str
    batch_id: int
    event_keys: list[tuple[str, int]] = field(default_factory=list)
    check_keys: list[tuple[str, str]] = field(default_factory=list)
    views: Mapping[str, list[Row]] = field(default_factory=dict)
    set_aside: list[tuple[str, int, int, str]] = field(default_factory=list)
    newest_ordered_ms: int | None = None


class ServingWriter:
    """Commits micro-batches atomically. Its methods may be called from any thread."""

    def __init__(self, path: Path) -> None:
        self._connection = connect_writer(path)
        self._lock = Lock()
        with self._lock:
            self._connection.execute(
                "INSERT INTO properties VALUES ('store_id', ?) ON CONFLICT DO NOTHING",
                (uuid.uuid4().hex,),
            )

    @property
    def store_id(self) -> str:
        """The unique id of the store, set at its creation."""
        return str(self.property("store_id"))

    def property(self, name: str) -> Any:
        """Return one property, None if it was never set."""
        with self._lock:
            row = self._connection.execute(
                "SELECT value FROM properties WHERE name = ?", (name,)
            ).fetchone()
        return None if row is None else row[0]

    def set_properties(self, **values: Any) -> None:
        """Set properties that belong to no batch."""
        with self._lock:
            self._set(values)

    def is_committed(self, query_id: str, batch_id: int) -> bool:
        """Return True if the store has this batch of this query."""
        with self._lock:
            row = self._connection.execute(
                "SELECT batch_id FROM batches WHERE query_id = ?", (query_id,)
            ).fetchone()
        return row is not None and batch_id <= row[0]

    def known_events(self, keys: Iterable[tuple[str, int]]) -> set[tuple[str, int]]:
        """Return the keys (order id, version) that are already counted."""
        query = "SELECT 1 FROM order_events WHERE order_id = ? AND version = ?"
        return self._known(query, keys)

    def known_checks(self, keys: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
        """Return the keys (order id, check) that are already counted."""
        query = "SELECT 1 FROM order_checks WHERE order_id = ? AND check_name = ?"
        return self._known(query, keys)

    def _known(self, query: str, keys: Iterable[tuple[str, Any]]) -> set[tuple[str, Any]]:
        with self._lock:
            return {key for key in keys if self._connection.execute(query, key).fetchone()}

    def commit(self, result: BatchResult, *, timestamp_ms: int) -> int:
        """Store a batch atomically; return the new revision."""
        with self._lock, _Transaction(self._connection):
            revision = self._next_revision()
            self._insert_keys(result)
            self._add_to_views(result.views, revision)
            self._merge_orders(result.views.get("funnel", ()), timestamp_ms)
            self._connection.execute(
                "INSERT INTO batches VALUES (?, ?) "
                "ON CONFLICT DO UPDATE SET batch_id = excluded.batch_id",
                (result.query_id, result.batch_id),
            )
            if result.newest_ordered_ms is not None:
                self._connection.execute(
                    "INSERT INTO properties VALUES ('newest_ordered_ms', ?) "
                    "ON CONFLICT DO UPDATE SET value = max(value, excluded.value)",
                    (result.newest_ordered_ms,),
                )
            self._set({"revision": revision, "committed_ms": timestamp_ms})
        return revision

    def _next_revision(self) -> int:
        row = self._connection.execute(
            "SELECT value FROM properties WHERE name = 'revision'"
        ).fetchone()
        return 1 if row is None else int(row[0]) + 1

    def _insert_keys(self, result: BatchResult) -> None:
        insert = self._connection.executemany
        # Never OR IGNORE: with an existing key the batch would count an event twice.
        insert("INSERT INTO order_events VALUES (?, ?)", result.event_keys)
        insert("INSERT INTO order_checks VALUES (?, ?)", result.check_keys)
        insert("INSERT OR IGNORE INTO set_aside VALUES (?, ?, ?, ?)", result.set_aside)

    def _add_to_views(self, views: Mapping[str, list[Row]], revision: int) -> None:
        self._add(
            "INSERT INTO revenue VALUES (:grain, :window_start_ms, :state, :country, :orders, "
            ":revenue_e4, :late_orders, :revision) ON CONFLICT DO UPDATE SET "
            "orders = orders + excluded.orders, revenue_e4 = revenue_e4 + excluded.revenue_e4, "
            "late_orders = late_orders + excluded.late_orders, revision = excluded.revision",
            views.get("revenue", ()),
            revision,
        )
        self._add(
            "INSERT INTO products VALUES (:product_id, :orders, :quantity, :revenue_e4, "
            ":revision) ON CONFLICT DO UPDATE SET orders = orders + excluded.orders, "
            "quantity = quantity + excluded.quantity, "
            "revenue_e4 = revenue_e4 + excluded.revenue_e4, revision = excluded.revision",
            views.get("products", ()),
            revision,
        )
        self._add(
            "INSERT INTO verdicts VALUES (:check, :result, :code, :orders, :revision) "
            "ON CONFLICT DO UPDATE SET orders = orders + excluded.orders, "
            "revision = excluded.revision",
            views.get("verdicts", ()),
            revision,
        )
        self._add(
            "INSERT INTO failures VALUES (:check, :code, :orders, :revenue_e4, :revision) "
            "ON CONFLICT DO UPDATE SET orders = orders + excluded.orders, "
            "revenue_e4 = revenue_e4 + excluded.revenue_e4, revision = excluded.revision",
            views.get("failures", ()),
            revision,
        )
        self._add(
            "INSERT INTO product_names VALUES (:product_id, :description, :updated_ms) "
            "ON CONFLICT DO UPDATE SET description = excluded.description, "
            "updated_ms = excluded.updated_ms WHERE excluded.updated_ms >= updated_ms",
            views.get("product_names", ()),
            revision,
        )

        # Rows of one query each, which may repeat a row after a crash: the same row, or one with
        # fewer orders if the query's state was lost with its checkpoint.
        self._add(
            "INSERT INTO closed_windows VALUES (:grain, :window_start_ms, :state, "
            ":country, :orders, :revenue_e4, :revision) ON CONFLICT DO UPDATE SET "
            "orders = excluded.orders, revenue_e4 = excluded.revenue_e4, "
            "revision = excluded.revision WHERE excluded.orders > orders",
            views.get("closed_windows", ()),
            revision,
        )
        self._add(
            "INSERT OR REPLACE INTO latencies VALUES (:order_id, :check, :result, :placed_ms, "
            ":checked_latency_ms, :decided_latency_ms, :revision)",
            views.get("latencies", ()),
            revision,
        )

    def _add(self, statement: str, rows: Iterable[Row], revision: int) -> None:
        self._connection.executemany(statement, ({**row, "revision": revision} for row in rows))

    def _merge_orders(self, rows: Iterable[Row], timestamp_ms: int) -> None:
        self._connection.executemany(
            _MERGE_ORDER, ([*(row.get(name) for name in _ORDER_COLUMNS[:-1]), None] for row in rows)
        )
        # The page's freshness is measured by the time when an order's creation got here.
        self._connection.executemany(
            "UPDATE orders SET shown_ms = ? "
            "WHERE order_id = ? AND shown_ms IS NULL AND created_ms IS NOT NULL",
            ((timestamp_ms, row["order_id"]) for row in rows if row.get("created_ms") is not None),
        )

    def replace_segments(self, rows: Iterable[Row]) -> None:
        """Replace all customer segments."""
        with self._lock, _Transaction(self._connection):
            revision = self._next_revision()
            self._connection.execute("DELETE FROM customer_segments")
            self._connection.executemany(
                "INSERT INTO customer_segments VALUES (:customer_id, :recency_days, :frequency, "
                ":monetary_e4, :recency_score, :frequency_score, :monetary_score, :segment)",
                rows,
            )
            self._set({"revision": revision})

    def changed_rows(self, view: str, after_revision: int) -> tuple[list[str], list[tuple[Any]]]:
        """Return the columns of a view, and its rows that changed after a revision."""
        assert view in PUBLISHED_KEYS, view
        with self._lock:
            cursor = self._connection.execute(
                f"SELECT * FROM {view} WHERE revision > ? ORDER BY revision", (after_revision,)
            )
            return [column[0] for column in cursor.description], cursor.fetchall()

    def _set(self, values: Mapping[str, Any]) -> None:
        self._connection.executemany(
            "INSERT INTO properties VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
            values.items(),
        )

    def close(self) -> None:
        with self._lock:
            self._connection.close()


class _Transaction:
    """BEGIN IMMEDIATE, then COMMIT, or ROLLBACK on an error."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._connection.execute("COMMIT" if kind is None else "ROLLBACK")


def _merge_order() -> str:
    """Return the statement that merges a row of the funnel into the stored one."""
    parts = [
        "state = CASE WHEN coalesce(excluded.version, 0) > coalesce(version, 0) "
        "THEN excluded.state ELSE state END",
        "version = nullif(max(coalesce(version, 0), coalesce(excluded.version, 0)), 0)",
        *[f"{name} = coalesce({name}, excluded.{name})" for name in _FACTS],
        *[
            f"{name} = min(coalesce({name}, excluded.{name}), coalesce(excluded.{name}, {name}))"
            for name in _TIMES
        ],
    ]
    values = ", ".join("?" for _ in _ORDER_COLUMNS)
    return f"INSERT INTO orders VALUES ({values}) ON CONFLICT DO UPDATE SET {', '.join(parts)}"


_MERGE_ORDER = _merge_order()
