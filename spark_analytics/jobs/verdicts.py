"""What the checks said: orders by check, result and the code of the reason."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_analytics.jobs.topics import VALIDATIONS


def transform(events: DataFrame) -> DataFrame:
    """Return check, result, code (empty for PASS), orders."""
    verdicts = events.where(f.col("topic") == VALIDATIONS)
    return verdicts.groupBy("check", "result", f.coalesce("code", f.lit("")).alias("code")).agg(
        f.count(f.lit(1)).alias("orders")
    )
