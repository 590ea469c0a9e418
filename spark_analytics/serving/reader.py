"""The dashboard's queries of the serving store. Every answer is from one snapshot of the store."""

import math
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from threading import Lock
from typing import Any

from spark_analytics.serving.series import (
    EVERYTHING,
    RANGES,
    WINDOWS_MAX,
    Range,
    choose_grain,
    choose_range,
    lay_out,
    moment,
)

CHECKS = ("FRAUD", "INVENTORY", "ORDER_DETAILS")
RESULTS = ("PASS", "FAIL", "ERROR")
TOP_PRODUCTS = 10
RECENT_ORDERS = 1000
_STEPS = {
    "fraud check": "fraud_ms",
    "inventory check": "inventory_ms",
    "order details check": "order_details_ms",
    "decision": "decided_ms",
    "validated or failed": "coalesce(validated_ms, failed_ms)",
    "shown here": "shown_ms",
}

Json = dict[str, Any]


def amount(amount_e4: int | None) -> str:
    """Return an amount as a decimal string with two places."""
    return f"{Decimal(amount_e4 or 0).scaleb(-4):.2f}"


def percentile(ordered: Sequence[int], share: float) -> int | None:
    """Return the smallest value that at least this share of the values does not exceed."""
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)] if ordered else None


class ServingReader:
    """Reads one store over one connection; its methods may be called from any thread."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._lock = Lock()

    def close(self) -> None:
        self._connection.close()

    def properties(self) -> Json:
        """Return revision, committed_ms, heartbeat_ms and the writer's other properties."""
        with self._one_moment():
            return self._properties()

    def _properties(self) -> Json:
        return {row["name"]: row["value"] for row in self._rows("SELECT * FROM properties")}

    @contextmanager
    def _one_moment(self) -> Iterator[None]:
        with self._lock:
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                self._connection.execute("COMMIT")

    def _rows(self, query: str, *values: Any) -> list[Json]:
        return [dict(row) for row in self._connection.execute(query, values)]

    # --- the three documents ---

    def summary(self) -> Json:
        """Return orders, states, checks and revenue_validated, with the demo report's names."""
        with self._one_moment():
            return self._summary()

    def _summary(self) -> Json:
        # An order that was VALIDATED counts as that, whatever its later state.
        states = self._rows(
            "SELECT CASE WHEN validated_ms IS NULL THEN state ELSE 'VALIDATED' END AS state, "
            "count(*) AS orders FROM orders WHERE version IS NOT NULL GROUP BY 1 ORDER BY 1"
        )
        checks = {check: dict.fromkeys(RESULTS, 0) for check in CHECKS}
        for row in self._rows(
            "SELECT check_name, result, sum(orders) AS orders FROM verdicts GROUP BY 1, 2"
        ):
            checks[row["check_name"]][row["result"]] = row["orders"]
        total = self._rows(
            "SELECT sum(revenue_e4) AS revenue FROM revenue "
            "WHERE grain = 'day' AND state = 'VALIDATED'"
        )
        return {
            "orders": sum(row["orders"] for row in states),
            "states": {row["state"]: row["orders"] for row in states},
            "checks": checks,
            "revenue_validated": amount(total[0]["revenue"]),
        }

    def revenue_by_day(self) -> list[Json]:
        """Return key (YYYY-MM-DD), orders, revenue of VALIDATED orders, earliest day first."""
        with self._one_moment():
            rows = self._revenue("window_start_ms")
        return [{**row, "key": moment(row["key"])[:10]} for row in rows]

    def revenue_by_country(self) -> list[Json]:
        """Return key (country), orders, revenue of VALIDATED orders, in order of the key."""
        with self._one_moment():
            return self._revenue("country")

    def _revenue(self, column: str) -> list[Json]:
        rows = self._rows(
            f"SELECT {column} AS key, sum(orders) AS orders, sum(revenue_e4) AS revenue "
            "FROM revenue WHERE grain = 'day' AND state = 'VALIDATED' GROUP BY 1 ORDER BY 1"
        )
        return [{**row, "revenue": amount(row["revenue"])} for row in rows]

    # --- the page ---

    def snapshot(self) -> Json:
        """Return all data of the page."""
        with self._one_moment():
            properties = self._properties()
            return {
                "revision": properties.get("revision", 0),
                "summary": self._summary(),
                "series": self._series(),
                "countries": self._by_revenue(self._revenue("country")),
                "funnel": self._funnel(),
                "verdicts": self._verdicts(),
                "failures": self._failures(),
                "products": self._products(),
                "latency": self._latency(),
                "check_latency": self._check_latency(),
                "segments": self._segments(),
                **self._quality(),
            }

    @staticmethod
    def _by_revenue(rows: list[Json]) -> list[Json]:
        return sorted(rows, key=lambda row: (-Decimal(row["revenue"]), row["key"]))

    def _series(self) -> Json:
        ranges = {**RANGES, EVERYTHING: Range(choose_grain(self._window_starts), None)}
        laid_out = {name: lay_out(self._windows(shown), shown) for name, shown in ranges.items()}
        return {
            "first_shown": choose_range(laid_out, self._order_count()),
            "ranges": {name: self._as_shown(found) for name, found in laid_out.items()},
        }

    def _order_count(self) -> int:
        row = self._rows(
            "SELECT sum(orders) AS orders FROM revenue WHERE grain = 'day' AND state = 'CREATED'"
        )[0]
        return row["orders"] or 0

    def _window_starts(self, grain: str) -> list[int]:
        """Return the start times of the windows with orders, limited to a number to show."""
        rows = self._rows(
            "SELECT DISTINCT window_start_ms AS start_ms FROM revenue WHERE grain = ? "
            "ORDER BY 1 LIMIT ?",
            grain,
            WINDOWS_MAX + 1,
        )
        return [row["start_ms"] for row in rows]

    def _windows(self, shown: Range) -> list[Json]:
        newest = self._rows(
            "SELECT max(window_start_ms) AS start_ms FROM revenue WHERE grain = ?", shown.grain
        )[0]["start_ms"]
        return self._rows(
            "SELECT window_start_ms AS start_ms, "
            "coalesce(sum(orders) FILTER (WHERE state = 'CREATED'), 0) AS orders, "
            "coalesce(sum(orders) FILTER (WHERE state = 'VALIDATED'), 0) AS validated, "
            "coalesce(sum(orders) FILTER (WHERE state = 'FAILED'), 0) AS failed, "
            "coalesce(sum(revenue_e4) FILTER (WHERE state = 'VALIDATED'), 0) AS revenue_e4, "
            "EXISTS (SELECT 1 FROM closed_windows AS closed WHERE closed.grain = revenue.grain "
            "AND closed.window_start_ms = revenue.window_start_ms) AS is_closed "
            "FROM revenue WHERE grain = ? AND window_start_ms >= ? GROUP BY 1 ORDER BY 1",
            shown.grain,
            shown.first_start_ms(newest or 0),
        )

    @staticmethod
    def _as_shown(laid_out: Json) -> Json:
        windows = [
            {
                "start": moment(window["start_ms"]),
                "orders": window["orders"],
                "validated": window["validated"],
                "failed": window["failed"],
                "revenue": amount(window["revenue_e4"]),
                "closed": bool(window["is_closed"]),
            }
            for window in laid_out["windows"]
        ]
        return {**laid_out, "windows": windows}

    def _funnel(self) -> list[Json]:
        row = self._rows(
            "SELECT count(created_ms) AS accepted, "
            "count(coalesce(fraud_ms, inventory_ms, order_details_ms)) AS checked, "
            'count(fraud_ms + inventory_ms + order_details_ms) AS "checked by all", '
            "count(decided_ms) AS decided, count(validated_ms) AS validated, "
            "count(paid_ms) AS paid, count(shipped_ms) AS shipped FROM orders"
        )[0]
        return [{"step": step, "orders": orders} for step, orders in row.items()]

    def _verdicts(self) -> list[Json]:
        return self._rows(
            'SELECT check_name AS "check", result, code, orders FROM verdicts '
            "WHERE result <> 'PASS' ORDER BY orders DESC, 1, 2, 3"
        )

    def _failures(self) -> list[Json]:
        rows = self._rows(
            'SELECT check_name AS "check", code, orders, revenue_e4 AS revenue FROM failures '
            "ORDER BY orders DESC, 1, 2"
        )
        return [{**row, "revenue": amount(row["revenue"])} for row in rows]

    def _products(self) -> list[Json]:
        rows = self._rows(
            "SELECT product_id AS key, coalesce(description, '') AS description, orders, quantity, "
            "revenue_e4 AS revenue FROM products LEFT JOIN product_names USING (product_id) "
            "ORDER BY revenue_e4 DESC, product_id LIMIT ?",
            TOP_PRODUCTS,
        )
        return [{**row, "revenue": amount(row["revenue"])} for row in rows]

    def _latency(self) -> list[Json]:
        columns = ", ".join(
            f"{column} - created_ms AS step_{number}"
            for number, column in enumerate(_STEPS.values())
        )
        rows = self._rows(
            f"SELECT {columns} FROM orders WHERE coalesce(validated_ms, failed_ms) IS NOT NULL "
            "AND created_ms IS NOT NULL ORDER BY created_ms DESC LIMIT ?",
            RECENT_ORDERS,
        )
        return [
            self._percentiles(step, [row[f"step_{number}"] for row in rows])
            for number, step in enumerate(_STEPS)
        ]

    def _check_latency(self) -> list[Json]:
        """Return the latency of each check, from the join of the streams."""
        rows = self._rows(
            "SELECT check_name, checked_latency_ms FROM latencies ORDER BY placed_ms DESC LIMIT ?",
            RECENT_ORDERS * len(CHECKS),
        )
        return [
            self._percentiles(
                check, [row["checked_latency_ms"] for row in rows if row["check_name"] == check]
            )
            for check in CHECKS
        ]

    @staticmethod
    def _percentiles(step: str, values: list[int | None]) -> Json:
        known = sorted(value for value in values if value is not None)
        shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
        percentiles = {name: percentile(known, share) for name, share in shares.items()}
        return {"step": step, "orders": len(known), **percentiles}

    def _segments(self) -> list[Json]:
        rows = self._rows(
            "SELECT segment, count(*) AS customers, sum(frequency) AS orders, "
            "sum(monetary_e4) AS revenue FROM customer_segments GROUP BY 1 ORDER BY 4 DESC, 1"
        )
        return [{**row, "revenue": amount(row["revenue"])} for row in rows]

    def _quality(self) -> Json:
        row = self._rows(
            "SELECT (SELECT count(*) FROM set_aside) AS set_aside, (SELECT sum(late_orders) "
            "FROM revenue WHERE grain = 'hour' AND state = 'CREATED') AS late_orders"
        )[0]
        return {"set_aside": row["set_aside"], "late_orders": row["late_orders"] or 0}
