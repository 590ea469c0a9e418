"""The latency of each check and of the decision: a join of three streams.

Orders x validations x decisions by order id, each stream with a watermark and each pair with a time
range, so Spark knows how long to keep rows without a match. An order that takes longer than
`WITHIN` has no row here, but it has one in the funnel, which merges by order in the store.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from spark_analytics.jobs.topics import DECISIONS, ORDERS, VALIDATIONS

LATENESS = "1 minute"
"""The watermark delay: one partition may be read later than another."""

WITHIN = "5 minutes"
"""The maximum duration of an order; a check times out after one minute."""

CLOCKS = "10 seconds"
"""The maximum difference between the clocks of services and brokers."""


def transform(orders: DataFrame, validations: DataFrame, decisions: DataFrame) -> DataFrame:
    """Return order_id, check, result, placed_ms, checked_latency_ms, decided_latency_ms."""
    placed = _of(orders, ORDERS).where(f.col("state") == "CREATED")
    placed = placed.select("order_id", f.col("occurred_at").alias("placed_at"))
    checks = _of(validations, VALIDATIONS).select(
        f.col("order_id").alias("checked_id"),
        "check",
        "result",
        f.col("appended_at").alias("checked_at"),
    )
    decided = _of(decisions, DECISIONS).select(
        f.col("order_id").alias("decided_id"), f.col("appended_at").alias("decided_at")
    )
    checked = placed.withWatermark("placed_at", LATENESS).join(
        checks.withWatermark("checked_at", LATENESS), _follows("checked"), "inner"
    )
    # A stream has one event time, so that of the check becomes a number.
    checked = checked.select(
        "order_id", "check", "result", "placed_at", _milliseconds_until("checked_at")
    )
    whole = checked.join(
        decided.withWatermark("decided_at", LATENESS), _follows("decided"), "inner"
    )
    return whole.select(
        "order_id",
        "check",
        "result",
        f.unix_millis("placed_at").alias("placed_ms"),
        "checked_latency_ms",
        _milliseconds_until("decided_at"),
    )


def _of(events: DataFrame, topic: str) -> DataFrame:
    return events.where((f.col("topic") == topic) & f.col("problem").isNull())


def _follows(step: str) -> Column:
    return f.expr(
        f"order_id = {step}_id AND {step}_at >= placed_at - INTERVAL {CLOCKS}"
        f" AND {step}_at <= placed_at + INTERVAL {WITHIN}"
    )


def _milliseconds_until(time: str) -> Column:
    elapsed = f.unix_millis(time) - f.unix_millis("placed_at")
    return elapsed.alias(time.replace("_at", "_latency_ms"))
