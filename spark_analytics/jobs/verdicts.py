"""The verdicts of the checks, and the reasons of failed orders, by check and code.

An order that failed for two reasons counts under both, so the sums exceed the count of failures.
"""

from pyspark.sql import DataFrame

from spark_analytics.jobs.events import sum_e4_sql
from spark_analytics.jobs.topics import ORDERS, VALIDATIONS

QUERY = f"""
    SELECT check, result, coalesce(code, '') AS code, count(*) AS orders
    FROM {{events}}
    WHERE topic = '{VALIDATIONS}'
    GROUP BY ALL
"""
FAILURES_QUERY = f"""
    SELECT reason.check, reason.code, count(*) AS orders, {sum_e4_sql("total")} AS revenue_e4
    FROM {{events}}
    LATERAL VIEW explode(array_distinct(reasons)) AS reason
    WHERE topic = '{ORDERS}' AND state = 'FAILED'
    GROUP BY ALL
"""


def transform(events: DataFrame) -> DataFrame:
    """Return check, result, code (empty for PASS), orders."""
    return events.sparkSession.sql(QUERY, events=events)


def failures(events: DataFrame) -> DataFrame:
    """Return check, code, orders, revenue_e4: the failed orders and their lost revenue."""
    return events.sparkSession.sql(FAILURES_QUERY, events=events)
