"""The reasons of failed orders: orders and the revenue lost, by check and code.

An order that failed for two reasons counts under both, so the sums exceed the count of failures.
"""

from pyspark.sql import DataFrame

from spark_analytics.jobs.amounts import sum_e4_sql
from spark_analytics.jobs.topics import ORDERS

QUERY = f"""
    SELECT reason.check, reason.code, count(*) AS orders, {sum_e4_sql("total")} AS revenue_e4
    FROM {{events}}
    LATERAL VIEW explode(array_distinct(reasons)) AS reason
    WHERE topic = '{ORDERS}' AND state = 'FAILED'
    GROUP BY ALL
"""


def transform(events: DataFrame) -> DataFrame:
    """Return check, code, orders, revenue_e4."""
    return events.sparkSession.sql(QUERY, events=events)
