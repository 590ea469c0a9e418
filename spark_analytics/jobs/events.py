"""The schema between decoding and the views: one row per record of any input topic.

The columns of the other topics are null. `problem` is null unless the record is no event.
"""

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t

AMOUNT = t.DecimalType(18, 4)
"""The type of amounts in the events."""


def sum_e4(amount: Column) -> Column:
    """Return the sum of amounts as an integer of 1/10000: exact, and within 64 bits.

    It is 0 without amounts.
    """
    return f.coalesce((f.sum(amount) * 10_000).cast("long"), f.lit(0))


def sum_e4_sql(amount: str) -> str:
    """Return `sum_e4` as SQL."""
    return f"coalesce(cast(sum({amount}) * 10000 AS bigint), 0)"


def _struct(**fields: t.DataType) -> t.StructType:
    return t.StructType([t.StructField(name, kind) for name, kind in fields.items()])


REASON = _struct(check=t.StringType(), code=t.StringType())
LINE = _struct(product_id=t.StringType(), quantity=t.LongType(), unit_price=AMOUNT)

EVENT = _struct(
    # The record.
    topic=t.StringType(),
    partition=t.IntegerType(),
    offset=t.LongType(),
    appended_at=t.TimestampType(),
    problem=t.StringType(),
    # OrderEvent; the order id is in all but products.
    order_id=t.StringType(),
    version=t.IntegerType(),
    state=t.StringType(),
    customer_id=t.StringType(),
    country=t.StringType(),
    ordered_at=t.TimestampType(),
    created_at=t.TimestampType(),
    occurred_at=t.TimestampType(),
    total=AMOUNT,
    reasons=t.ArrayType(REASON),
    lines=t.ArrayType(LINE),
    # OrderValidation.
    check=t.StringType(),
    result=t.StringType(),
    code=t.StringType(),
    # OrderDecision.
    decision=t.StringType(),
    # Product.
    product_id=t.StringType(),
    description=t.StringType(),
    updated_at=t.TimestampType(),
)
