"""Orders and revenue per minute, hour and day of `ordered_at`, by state and country.

An order counts once in each state that it reaches. The windows are event time, cut in UTC; the time
zone of a session has no effect, because the arithmetic is on milliseconds since 1970.

The watermark trails the newest `ordered_at`. A window before it counts as complete; a later order
of that window is counted all the same, also as late.
"""

from pyspark.sql import DataFrame

from spark_analytics.jobs.events import sum_e4_sql
from spark_analytics.jobs.topics import ORDERS

UNKNOWN_COUNTRY = "unknown"

QUERY = f"""
    SELECT
        grain,
        window_start_ms,
        state,
        country,
        count(*) AS orders,
        {sum_e4_sql("total")} AS revenue_e4,
        count_if(window_start_ms + size_ms <= :watermark_ms) AS late_orders
    FROM (
        SELECT
            grain,
            size_ms,
            unix_millis(ordered_at) - pmod(unix_millis(ordered_at), size_ms) AS window_start_ms,
            state,
            coalesce(country, '{UNKNOWN_COUNTRY}') AS country,
            total
        FROM {{events}}
        LATERAL VIEW explode(map('minute', 60000, 'hour', 3600000, 'day', 86400000))
            AS grain, size_ms
        WHERE topic = '{ORDERS}'
    )
    GROUP BY ALL
"""


def transform(events: DataFrame, watermark_ms: int | None = None) -> DataFrame:
    """Return grain, window_start_ms, state, country, orders, revenue_e4, late_orders."""
    return events.sparkSession.sql(QUERY, {"watermark_ms": watermark_ms}, events=events)
