"""What sells: orders, quantity and revenue of each product over the VALIDATED orders."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_analytics.jobs.amounts import sum_e4
from spark_analytics.jobs.topics import ORDERS, PRODUCTS


def transform(events: DataFrame) -> DataFrame:
    """Return product_id, orders, quantity, revenue_e4."""
    validated = events.where((f.col("topic") == ORDERS) & (f.col("state") == "VALIDATED"))
    lines = validated.select("order_id", f.explode("lines").alias("line"))
    amount = f.col("line.quantity") * f.col("line.unit_price")
    return lines.groupBy(f.col("line.product_id").alias("product_id")).agg(
        f.count_distinct("order_id").alias("orders"),
        f.sum("line.quantity").alias("quantity"),
        sum_e4(amount).alias("revenue_e4"),
    )


def names(events: DataFrame) -> DataFrame:
    """Return product_id, description, updated_ms: the newest of each product."""
    products = events.where((f.col("topic") == PRODUCTS) & f.col("product_id").isNotNull())
    return products.groupBy("product_id").agg(
        f.max_by("description", "updated_at").alias("description"),
        f.unix_millis(f.max("updated_at")).alias("updated_ms"),
    )
