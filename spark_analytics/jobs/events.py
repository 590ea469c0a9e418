"""The schema between decoding and the views: one row per record of any input topic.

The columns of the other topics are null. `problem` is null unless the record is no event.
"""

from pyspark.sql import types as t

AMOUNT = t.DecimalType(18, 4)
"""The type of amounts in the events."""


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
