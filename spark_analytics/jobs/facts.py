"""The columns of every event that the driver gets: an Arrow table, one row per event. Pure.

The store finds the repeated events in it, and the files beside the store are written from it: the
history, and the files for the stateful queries.
"""

import pyarrow as pa
import pyarrow.compute as pc

from spark_analytics.jobs.repeats import Position, RecordKey

COLUMNS = (
    *("topic", "partition", "offset", "appended_at", "problem"),
    *("order_id", "version", "state", "customer_id", "country", "total"),
    *("ordered_at", "occurred_at", "check", "result"),
)
_ORDERED_MS = "ordered_ms"


def columns() -> list[str]:
    """Return the columns to select from the frame of events, in SQL."""
    return [*COLUMNS, f"unix_millis(ordered_at) AS {_ORDERED_MS}"]


def record_keys(facts: pa.Table) -> list[RecordKey]:
    """Return the key of every record, in order."""
    values = [facts.column(name).to_pylist() for name in RecordKey._fields]
    return [RecordKey(*row) for row in zip(*values, strict=True)]


def new_facts(facts: pa.Table, repeated: list[Position]) -> pa.Table:
    """Return the events without problems and repetitions."""
    if repeated:
        again = set(repeated)
        places = zip(
            *(facts.column(name).to_pylist() for name in ("topic", "partition", "offset")),
            strict=True,
        )
        facts = facts.filter(pa.array([place not in again for place in places], pa.bool_()))
    return facts.filter(pc.is_null(facts.column("problem")))
