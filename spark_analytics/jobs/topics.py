"""The names of the pipeline's topics and checks."""

ORDERS = "orders"
VALIDATIONS = "order-validations"
DECISIONS = "order-decisions"
PRODUCTS = "products"
INPUTS = (ORDERS, VALIDATIONS, DECISIONS, PRODUCTS)

RESULTS = "order-analytics"
"""The compacted topic of the views: the key is the row's key, the value the whole row."""

CHECKS = ("FRAUD", "INVENTORY", "ORDER_DETAILS")
