"""The names of the pipeline's topics and checks, as the jobs use them."""

ORDERS = "orders"
VALIDATIONS = "order-validations"
DECISIONS = "order-decisions"
PRODUCTS = "products"
INPUTS = (ORDERS, VALIDATIONS, DECISIONS, PRODUCTS)

RESULTS = "order-analytics"
"""Where the views go: key the row's key, value the whole row, compacted."""

CHECKS = ("FRAUD", "INVENTORY", "ORDER_DETAILS")
