"""Why orders failed: orders and the revenue lost, by check and code.

An order that failed for two reasons counts under both, so the sums are more than the failures.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_analytics.jobs.amounts import sum_e4
from spark_analytics.jobs.topics import ORDERS


def transform(events: DataFrame) -> DataFrame:
    """Return check, code, orders, revenue_e4."""
    failed = events.where((f.col("topic") == ORDERS) & (f.col("state") == "FAILED"))
    reasons = failed.select("total", f.explode(f.array_distinct("reasons")).alias("reason"))
    return reasons.groupBy(
        f.col("reason.check").alias("check"), f.col("reason.code").alias("code")
    ).agg(f.count(f.lit(1)).alias("orders"), sum_e4(f.col("total")).alias("revenue_e4"))
