"""The topics that this program reads and writes.

Topics that are joined have the same number of partitions, because Faust joins by partition number.
"""

from common.kafka.topics import COMPACT, WEEK, Topic
from common.processing.dead_letters import dead_letter_topic
from schemas.topics import CUSTOMERS
from streams.enrichment import LEVEL_TOPICS
from streams.records import (
    ORDER_ALERTS,
    ORDER_DECISIONS,
    ORDERS,
    ORDERS_BY_CUSTOMER,
    SALES_BY_PRODUCT,
)
from streams.topologies import TABLES

INPUTS = (ORDERS, ORDER_DECISIONS, CUSTOMERS.name, ORDERS_BY_CUSTOMER, SALES_BY_PRODUCT)


def wanted_topics(application_id: str) -> list[Topic]:
    """Return every topic with the settings it is created with."""
    return [
        *(Topic(name, config=COMPACT if name == CUSTOMERS.name else WEEK) for name in INPUTS),
        *(Topic(name) for name in (*LEVEL_TOPICS.values(), ORDER_ALERTS)),
        *map(dead_letter_topic, INPUTS),
        *(
            Topic(f"{application_id}-{name}-changelog", config=config)
            for name, config in TABLES.items()
        ),
    ]
