"""Topics, created where they are missing.

A program creates its topics when it starts, so the first one to start creates those it shares with
others. Where the replicas lie is left to the cluster.
"""

import logging
from collections.abc import Iterable, Mapping

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import NodeNotReadyError, TopicAlreadyExistsError, for_code

from common.credentials.access import KafkaAccess
from common.kafka.topics import Topic

log = logging.getLogger(__name__)


class WrongPartitionCountError(Exception):
    """A topic exists with a number of partitions that the pipeline cannot work with."""


async def ensure_topics(
    kafka: KafkaAccess, topics: Iterable[Topic], *, replication_factor: int
) -> int:
    """Create the topics that are missing; return the number of replicas that new topics get.

    That is `replication_factor`, or the number of brokers where there are fewer. Raise KafkaError,
    also while the cluster has no broker, and WrongPartitionCountError.
    """
    admin = AIOKafkaAdminClient(**kafka.aiokafka())
    await admin.start()
    try:
        replicas = min(replication_factor, len((await admin.describe_cluster())["brokers"]))
        if not replicas:
            raise NodeNotReadyError("the cluster has no broker at this moment")
        wanted = {topic.name: topic for topic in topics}
        existing = set(await admin.list_topics())
        missing = [topic for topic in wanted.values() if topic.name not in existing]
        await _create(admin, [_new_topic(topic, replicas) for topic in missing])
        counted = {topic.name for topic in wanted.values() if topic.is_counted}
        await _check_partition_counts(admin, wanted, existing & counted)
        return replicas
    finally:
        await admin.close()


def _new_topic(topic: Topic, replicas: int) -> NewTopic:
    replication = {"min.insync.replicas": "2"} if replicas >= 3 else {}
    return NewTopic(
        topic.name,
        num_partitions=topic.partition_count,
        replication_factor=replicas,
        topic_configs={**topic.config, **replication},
    )


async def _create(admin: AIOKafkaAdminClient, new_topics: list[NewTopic]) -> None:
    if not new_topics:
        return
    response = await admin.create_topics(new_topics)
    for name, code, *message in response.topic_errors:
        # Another program may have been quicker.
        if code not in (0, TopicAlreadyExistsError.errno):
            raise for_code(code)(f"topic {name}: {message}")
        if code == 0:
            log.info("topic created topic=%s", name)


async def _check_partition_counts(
    admin: AIOKafkaAdminClient, wanted: Mapping[str, Topic], names: set[str]
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
