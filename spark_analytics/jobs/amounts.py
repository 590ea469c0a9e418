"""Sums of money as integers of 1/10000: exact, and within 64 bits."""

from pyspark.sql import Column
from pyspark.sql import functions as f


def sum_e4(amount: Column) -> Column:
    """Return the sum of amounts with four decimal places as an integer, 0 without amounts."""
    return f.coalesce((f.sum(amount) * 10_000).cast("long"), f.lit(0))


def sum_e4_sql(amount: str) -> str:
    """Return `sum_e4` as SQL."""
    return f"coalesce(cast(sum({amount}) * 10000 AS bigint), 0)"
