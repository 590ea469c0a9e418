"""The verdicts of the checks: orders by check, result and the code of the reason."""

from pyspark.sql import DataFrame

from spark_analytics.jobs.topics import VALIDATIONS

QUERY = f"""
    SELECT check, result, coalesce(code, '') AS code, count(*) AS orders
    FROM {{events}}
    WHERE topic = '{VALIDATIONS}'
    GROUP BY ALL
"""


def transform(events: DataFrame) -> DataFrame:
    """Return check, result, code (empty for PASS), orders."""
    return events.sparkSession.sql(QUERY, events=events)
