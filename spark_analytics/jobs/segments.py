"""Customer segments by recency, frequency and monetary value (RFM), over the whole history.

Each customer gets 1 to 5 points for each of the three, by the quintiles of all customers; the
points for recency and frequency give the segment. Equal values get equal points.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from spark_analytics.jobs.amounts import sum_e4

_DAY_MS = 86_400_000
_QUINTILES = [0.2, 0.4, 0.6, 0.8]


def transform(history: DataFrame) -> DataFrame:
    """Return the segments of customers from customer_id, ordered_at, total of their orders.

    Recency is in whole days before the newest order of all, not before today, so a replayed history
    has the same result.
    """
    customers = _customers(history)
    limits = customers.agg(
        *[
            f.percentile(name, f.array(*map(f.lit, _QUINTILES))).alias(f"{name}_limits")
            for name in ("recency_days", "frequency", "monetary_e4")
        ]
    )
    scored = customers.crossJoin(f.broadcast(limits)).select(
        "customer_id",
        "recency_days",
        "frequency",
        "monetary_e4",
        (6 - _points("recency_days")).alias("recency_score"),
        _points("frequency").alias("frequency_score"),
        _points("monetary_e4").alias("monetary_score"),
    )
    return scored.withColumn("segment", _segment())


def _customers(history: DataFrame) -> DataFrame:
    newest = history.agg(f.max("ordered_at").alias("newest"))
    age_ms = f.unix_millis("newest") - f.unix_millis("ordered_at")
    orders = history.crossJoin(f.broadcast(newest)).withColumn("age_ms", age_ms)
    return orders.groupBy("customer_id").agg(
        f.floor(f.min("age_ms") / _DAY_MS).alias("recency_days"),
        f.count(f.lit(1)).alias("frequency"),
        sum_e4(f.col("total")).alias("monetary_e4"),
    )


def _points(name: str) -> Column:
    """Return 1 + the count of quintile limits that the value exceeds."""
    exceeded = f.filter(f"{name}_limits", lambda limit: f.col(name) > limit)
    return 1 + f.size(exceeded)


def _segment() -> Column:
    recency, frequency = f.col("recency_score"), f.col("frequency_score")
    return (
        f.when((recency >= 4) & (frequency >= 4), "champions")
        .when((recency >= 3) & (frequency >= 3), "loyal")
        .when(recency >= 4, "new or promising")
        .when((recency <= 2) & (frequency >= 3), "at risk")
        .when(recency <= 2, "hibernating")
        .otherwise("needs attention")
    )
