"""Orders and revenue per minute, hour and day of `ordered_at`, by state and country.

An order counts once in each state it reaches. The windows are event time, cut in UTC; time zones
of sessions have no say, so the arithmetic is on milliseconds since 1970.

The watermark trails the newest `ordered_at` seen. A window whose end it has passed is taken for
complete; an order that comes later is counted all the same, and counted as late.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_analytics.jobs.amounts import sum_e4
from spark_analytics.jobs.topics import ORDERS

GRAINS_MS = {"minute": 60_000, "hour": 3_600_000, "day": 86_400_000}
UNKNOWN_COUNTRY = "unknown"


def transform(events: DataFrame, watermark_ms: int | None = None) -> DataFrame:
    """Return grain, window_start_ms, state, country, orders, revenue_e4, late_orders."""
    ordered_ms = f.unix_millis("ordered_at")
    grains = f.array(
        *[
            f.struct(
                f.lit(grain).alias("grain"),
                f.lit(size_ms).alias("size_ms"),
                (ordered_ms - f.pmod(ordered_ms, f.lit(size_ms))).alias("start_ms"),
            )
            for grain, size_ms in GRAINS_MS.items()
        ]
    )
    windowed = events.where(f.col("topic") == ORDERS).select(
        f.explode(grains).alias("window"),
        "state",
        f.coalesce("country", f.lit(UNKNOWN_COUNTRY)).alias("country"),
        "total",
    )
    is_late = f.col("window.start_ms") + f.col("window.size_ms") <= f.lit(watermark_ms)
    return windowed.groupBy(
        f.col("window.grain").alias("grain"),
        f.col("window.start_ms").alias("window_start_ms"),
        "state",
        "country",
    ).agg(
        f.count(f.lit(1)).alias("orders"),
        sum_e4(f.col("total")).alias("revenue_e4"),
        f.count_if(is_late).alias("late_orders"),
    )
