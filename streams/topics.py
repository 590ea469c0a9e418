"""The topics this program reads and writes, created where they are missing.

Topics whose keys must meet have the same number of partitions: Faust joins by partition number.
The pipeline's own topics are created like the services create them, whoever starts first.
"""

import logging
from collections.abc import Mapping

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import TopicAlreadyExistsError, for_code

from common.kafka.placement import placed
from streams.enrichment import LEVEL_TOPICS
from streams.records import (
    COMPACT,
    CUSTOMERS,
    ORDER_ALERTS,
    ORDER_DECISIONS,
    ORDERS,
    ORDERS_BY_CUSTOMER,
    PARTITION_COUNT,
    SALES_BY_PRODUCT,
    WEEK,
)
from streams.topologies import TABLES

log = logging.getLogger(__name__)

INPUTS = (ORDERS, ORDER_DECISIONS, CUSTOMERS, ORDERS_BY_CUSTOMER, SALES_BY_PRODUCT)


class WrongPartitionCountError(Exception):
    """A topic exists with a number of partitions that joins cannot work with."""


def wanted_topics(application_id: str) -> dict[str, Mapping[str, str]]:
    """Return every topic with the settings it is created with."""
    return {
        **dict.fromkeys(INPUTS, WEEK),
        CUSTOMERS: COMPACT,
        **dict.fromkeys((*LEVEL_TOPICS.values(), ORDER_ALERTS), WEEK),
        **{f"{topic}.dead-letter": WEEK for topic in INPUTS},
        **{f"{application_id}-{name}-changelog": config for name, config in TABLES.items()},
    }


async def ensure_topics(
    bootstrap_servers: str, application_id: str, replication_factor: int = 3
) -> int:
    """Create the topics that are missing; return the replication factor they get."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap_servers)
    await admin.start()
    try:
        broker_ids = [broker["node_id"] for broker in (await admin.describe_cluster())["brokers"]]
        wanted = wanted_topics(application_id)
        existing = set(await admin.list_topics()) & wanted.keys()
        missing = sorted(wanted.keys() - existing)
        replicas = {name: placed(name, broker_ids, replication_factor) for name in missing}
        await _create(admin, [_new_topic(name, wanted[name], replicas[name]) for name in missing])
        # Dead letters meet nobody: whoever was first decided how many partitions they have.
        joined = sorted(name for name in existing if not name.endswith(".dead-letter"))
        if joined:
            for description in await admin.describe_topics(joined):
                count = len(description["partitions"])
                if count and count != PARTITION_COUNT:
                    name = description["topic"]
                    raise WrongPartitionCountError(
                        f"topic {name} has {count} partitions, needs {PARTITION_COUNT}"
                    )
        return min(replication_factor, len(broker_ids))
    finally:
        await admin.close()


def _new_topic(name: str, config: Mapping[str, str], replicas: list[int]) -> NewTopic:
    replication = {"min.insync.replicas": "2"} if len(replicas) >= 3 else {}
    return NewTopic(
        name,
        # Both are said by the replicas.
        num_partitions=-1,
        replication_factor=-1,
        replica_assignments=dict.fromkeys(range(PARTITION_COUNT), replicas),
        topic_configs={**config, **replication},
    )


async def _create(admin: AIOKafkaAdminClient, new_topics: list[NewTopic]) -> None:
    if not new_topics:
        return
    response = await admin.create_topics(new_topics)
    for name, code, *message in response.topic_errors:
        # Another program may have been quicker.
        if code not in (0, TopicAlreadyExistsError.errno):
            raise for_code(code)(f"topic {name}: {message}")
    log.info("topics created count=%d", len(new_topics))
