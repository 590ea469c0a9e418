"""Orders and revenue per minute, hour and day by state and country, once each window is complete.

Spark's own windowed aggregation in append mode: the watermark trails the newest `ordered_at`; when
it passes the end of a window, Spark emits the window once and drops its state. Later events of that
window are dropped. So a row is final when it appears, but it lacks late orders; `revenue` counts
these too and is the view to settle accounts by.

An event delivered twice counts twice here, not in `revenue`: Spark could deduplicate with state of
its own, but of three aggregations after one such operator the last never closed a window (Spark
4.2.1).
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from spark_analytics.jobs.events import sum_e4
from spark_analytics.jobs.revenue import UNKNOWN_COUNTRY
from spark_analytics.jobs.topics import ORDERS

_WINDOWS = {"minute": "1 minute", "hour": "1 hour", "day": "1 day"}


def transform(events: DataFrame, allowed_lateness_ms: int) -> DataFrame:
    """Return grain, window_start_ms, state, country, orders, revenue_e4 of closed windows."""
    is_order = (f.col("topic") == ORDERS) & f.col("problem").isNull()
    orders = events.where(is_order).withWatermark(
        "ordered_at", f"{allowed_lateness_ms} milliseconds"
    )
    minutes, hours, days = (_by_window(orders, grain) for grain in _WINDOWS)
    return minutes.union(hours).union(days)


def _by_window(orders: DataFrame, grain: str) -> DataFrame:
    window = f.window("ordered_at", _WINDOWS[grain]).alias("window")
    country: Column = f.coalesce("country", f.lit(UNKNOWN_COUNTRY)).alias("country")
    summed = orders.groupBy(window, "state", country).agg(
        f.count(f.lit(1)).alias("orders"), sum_e4(f.col("total")).alias("revenue_e4")
    )
    return summed.select(
        f.lit(grain).alias("grain"),
        f.unix_millis("window.start").alias("window_start_ms"),
        "state",
        "country",
        "orders",
        "revenue_e4",
    )
