"""Topics, created where they are missing.

A program creates its topics when it starts, so the first one to start creates those it shares with
others. Topics whose keys must meet have the same number of partitions, so a topic that exists with
another number is refused at start.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import TopicAlreadyExistsError, for_code

from common.kafka.placement import placed

log = logging.getLogger(__name__)

PARTITION_COUNT = 6
_WEEK_MS = 7 * 24 * 3600 * 1000


@dataclass(frozen=True)
class Topic:
    """A topic as it is created when it is missing."""

    name: str
    partition_count: int = PARTITION_COUNT
    config: dict[str, str] = field(default_factory=lambda: {"retention.ms": str(_WEEK_MS)})
    beside: str = ""
    """The topic that is written in the same transactions: it is placed like that one."""


def compacted(name: str, partition_count: int = PARTITION_COUNT, *, beside: str = "") -> Topic:
    return Topic(name, partition_count, {"cleanup.policy": "compact"}, beside)


class WrongPartitionCountError(Exception):
    """A topic exists with a number of partitions that the pipeline cannot work with."""


async def ensure_topics(
    bootstrap_servers: str, topics: Iterable[Topic], *, replication_factor: int
) -> None:
    """Create the topics that are missing, with as many replicas, or one on each broker."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap_servers)
    await admin.start()
    try:
        broker_ids = [broker["node_id"] for broker in (await admin.describe_cluster())["brokers"]]
        wanted = {topic.name: topic for topic in topics}
        existing = set(await admin.list_topics())
        missing = [topic for topic in wanted.values() if topic.name not in existing]
        replicas = [
            placed(topic.beside or topic.name, broker_ids, replication_factor) for topic in missing
        ]
        await _create(admin, list(map(_new_topic, missing, replicas)))
        await _check_partition_counts(admin, wanted, existing & wanted.keys())
    finally:
        await admin.close()


def _new_topic(topic: Topic, replicas: list[int]) -> NewTopic:
    replication = {"min.insync.replicas": "2"} if len(replicas) >= 3 else {}
    return NewTopic(
        topic.name,
        # Both are said by the replicas.
        num_partitions=-1,
        replication_factor=-1,
        replica_assignments=dict.fromkeys(range(topic.partition_count), replicas),
        topic_configs={**topic.config, **replication},
    )


async def _create(admin: AIOKafkaAdminClient, new_topics: list[NewTopic]) -> None:
    if not new_topics:
        return
    response = await admin.create_topics(new_topics)
    for name, code, *message in response.topic_errors:
        # Another service may have been quicker.
        if code not in (0, TopicAlreadyExistsError.errno):
            raise for_code(code)(f"topic {name}: {message}")
        if code == 0:
            log.info("topic created topic=%s", name)


async def _check_partition_counts(
    admin: AIOKafkaAdminClient, wanted: dict[str, Topic], names: set[str]
) -> None:
    if not names:
        return
    for description in await admin.describe_topics(sorted(names)):
        count = len(description["partitions"])
        topic = wanted[description["topic"]]
        if count and count != topic.partition_count:
            raise WrongPartitionCountError(
                f"topic {topic.name} has {count} partitions, needs {topic.partition_count}"
            )
