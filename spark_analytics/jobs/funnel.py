"""The progress of each order over time: orders x validations x decisions, joined by order id.

A join of streams needs a limit for the duration of an order, and would drop longer ones. Here the
events of all topics are in one frame, a micro-batch returns its knowledge of each order, and the
serving store merges that into its row: the earliest time of each step, the state of the highest
version. Merging is idempotent, so a repeated event does no harm.
"""

from pyspark.sql import DataFrame

from spark_analytics.jobs.topics import CHECKS, DECISIONS, ORDERS, PRODUCTS, VALIDATIONS

STATES = ("CREATED", "VALIDATED", "FAILED", "PAID", "SHIPPED", "CANCELLED")


def step_name(word: str) -> str:
    """Return the name of the column with the time of a state or a check."""
    return f"{word.lower()}_ms"


def _first(topic: str, column: str, value: str, time: str) -> str:
    is_step = f"topic = '{topic}' AND {column} = '{value}'"
    return f"min(unix_millis({time})) FILTER (WHERE {is_step}) AS {step_name(value)}"


_STEPS = ",\n        ".join(
    [
        *[_first(ORDERS, "state", state, "occurred_at") for state in STATES],
        *[_first(VALIDATIONS, "check", check, "appended_at") for check in CHECKS],
    ]
)
QUERY = f"""
    SELECT
        order_id,
        max(version) AS version,
        max_by(state, version) AS state,
        max(customer_id) AS customer_id,
        max(country) AS country,
        max(unix_millis(ordered_at)) AS ordered_ms,
        max(cast(total * 10000 AS bigint)) AS total_e4,
        {_STEPS},
        min(unix_millis(appended_at)) FILTER (WHERE topic = '{DECISIONS}') AS decided_ms
    FROM {{events}}
    WHERE topic != '{PRODUCTS}' AND order_id IS NOT NULL
    GROUP BY order_id
"""


def transform(events: DataFrame) -> DataFrame:
    """Return one row per order: order_id, version, state, facts, and the time of each step."""
    return events.sparkSession.sql(QUERY, events=events)
