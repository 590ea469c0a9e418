"""The sales: orders, quantity and revenue of each product over the VALIDATED orders."""

from pyspark.sql import DataFrame

from spark_analytics.jobs.events import sum_e4_sql
from spark_analytics.jobs.topics import ORDERS, PRODUCTS

QUERY = f"""
    SELECT
        line.product_id,
        count(DISTINCT order_id) AS orders,
        sum(line.quantity) AS quantity,
        {sum_e4_sql("line.quantity * line.unit_price")} AS revenue_e4
    FROM {{events}}
    LATERAL VIEW explode(lines) AS line
    WHERE topic = '{ORDERS}' AND state = 'VALIDATED'
    GROUP BY ALL
"""
NAMES_QUERY = f"""
    SELECT
        product_id,
        max_by(description, updated_at) AS description,
        unix_millis(max(updated_at)) AS updated_ms
    FROM {{events}}
    WHERE topic = '{PRODUCTS}' AND product_id IS NOT NULL
    GROUP BY ALL
"""


def transform(events: DataFrame) -> DataFrame:
    """Return product_id, orders, quantity, revenue_e4."""
    return events.sparkSession.sql(QUERY, events=events)


def names(events: DataFrame) -> DataFrame:
    """Return product_id, description, updated_ms: the newest of each product."""
    return events.sparkSession.sql(NAMES_QUERY, events=events)
