"""The topics that several parts of the pipeline share.

A topic that only one service writes for itself (a changelog, a repartition topic) is declared in
that service.
"""

from common.kafka.topics import Topic, compacted

ORDERS = Topic("orders")
ORDER_VALIDATIONS = Topic("order-validations")
ORDER_DECISIONS = Topic("order-decisions")
ORDER_COMMANDS = Topic("order-commands")
PAYMENTS = Topic("payments")
ORDER_CONFIRMATIONS = Topic("order-confirmations")
CUSTOMERS = compacted("customers")
PRODUCTS = compacted("products")
WAREHOUSE_INVENTORY = compacted("warehouse-inventory")
