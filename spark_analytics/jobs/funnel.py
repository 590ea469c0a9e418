"""How far each order has come, and when: orders x validations x decisions, joined by order id.

A join of streams would have to be told how long an order may take, and would drop what takes
longer. Here the events of all topics come in one frame, a micro-batch gives what it knows of each
order, and the serving store merges that with what it knew: the earliest time of each step, the
state of the highest version. Merging is idempotent, so an event that is seen twice does no harm.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from spark_analytics.jobs.topics import CHECKS, DECISIONS, ORDERS, PRODUCTS, VALIDATIONS

STATES = ("CREATED", "VALIDATED", "FAILED", "PAID", "SHIPPED", "CANCELLED")


def step_name(word: str) -> str:
    """Return the column that has the time of a state or a check."""
    return f"{word.lower()}_ms"


def transform(events: DataFrame) -> DataFrame:
    """Return one row per order: order_id, version, state, facts, and the time of each step."""
    by_order = events.where((f.col("topic") != PRODUCTS) & f.col("order_id").isNotNull())
    return by_order.groupBy("order_id").agg(
        f.max("version").alias("version"),
        f.max_by("state", "version").alias("state"),
        f.max("customer_id").alias("customer_id"),
        f.max("country").alias("country"),
        f.max(f.unix_millis("ordered_at")).alias("ordered_ms"),
        f.max((f.col("total") * 10_000).cast("long")).alias("total_e4"),
        *[_first(ORDERS, "state", state, "occurred_at") for state in STATES],
        *[_first(VALIDATIONS, "check", check, "appended_at") for check in CHECKS],
        f.min(_time(f.col("topic") == DECISIONS, "appended_at")).alias("decided_ms"),
    )


def _first(topic: str, column: str, value: str, time: str) -> Column:
    is_step = (f.col("topic") == topic) & (f.col(column) == value)
    return f.min(_time(is_step, time)).alias(step_name(value))


def _time(condition: Column, column: str) -> Column:
    return f.when(condition, f.unix_millis(column))
