"""Topics, created where they are missing.

A program creates its topics when it starts, so the first one to start creates those it shares with
others. Where the replicas lie is left to the cluster.
"""

import logging
from collections.abc import Iterable, Mapping

from aiokafka.errors import NodeNotReadyError, for_code

from common.credentials.access import KafkaAccess
from common.kafka.admin.topic_requests import creatable_topic
from common.kafka.client.cluster import KafkaClient
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from common.kafka.protocol.messages.metadata import MetadataResponse
from common.kafka.topics import Topic

log = logging.getLogger(__name__)

_TIMEOUT_MS = 30_000


class WrongPartitionCountError(Exception):
    """A topic exists with a number of partitions that the pipeline cannot work with."""


async def ensure_topics(
    kafka: KafkaAccess, topics: Iterable[Topic], *, replication_factor: int
) -> int:
    """Create the topics that are missing; return the number of replicas that new topics get.

    That is `replication_factor`, or the number of brokers where there are fewer. Raise aiokafka's
    KafkaError, also while the cluster has no broker, OSError, and WrongPartitionCountError.
    """
    client = KafkaClient(kafka.bootstrap_servers, kafka.security)
    try:
        found = await client.metadata(None)
        replicas = min(replication_factor, len(found.brokers))
        if not replicas:
            raise NodeNotReadyError("the cluster has no broker at this moment")
        wanted = {topic.name: topic for topic in topics}
        counts = {topic.name or "": len(topic.partitions) for topic in found.topics}
        missing = [topic for topic in wanted.values() if topic.name not in counts]
        await create_missing(client, found, [_new_topic(topic, replicas) for topic in missing])
        _check_partition_counts(wanted, counts)
        return replicas
    except KafkaError as error:
        # Those who call this have consumers of aiokafka, and handle its errors.
        raise for_code(error.code)(str(error)) from error
    finally:
        await client.close()


async def create_missing(
    client: KafkaClient, cluster: MetadataResponse, topics: list[CreatableTopic]
) -> None:
    """Create topics; one that exists is left as it is. Raise KafkaError or ConnectionFailed."""
    if not topics:
        return
    request = CreateTopicsRequest(topics=topics, timeout_ms=_TIMEOUT_MS)
    answer = await client.ask(request, CreateTopicsResponse, cluster.controller_id)
    for topic in answer.topics:
        # Another program may have been quicker.
        if topic.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            code = ErrorCode(topic.error_code)
            raise KafkaError(code, f"topic {topic.name}: {topic.error_message or code.name}")
        if topic.error_code == ErrorCode.NONE:
            log.info("topic created topic=%s", topic.name)


def _new_topic(topic: Topic, replicas: int) -> CreatableTopic:
    replication = {"min.insync.replicas": "2"} if replicas >= 3 else {}
    return creatable_topic(
        topic.name,
        partition_count=topic.partition_count,
        replication_factor=replicas,
        configs={**topic.config, **replication},
    )


def _check_partition_counts(wanted: Mapping[str, Topic], counts: Mapping[str, int]) -> None:
    for topic in wanted.values():
        count = counts.get(topic.name)
        if topic.is_counted and count and count != topic.partition_count:
            raise WrongPartitionCountError(
                f"topic {topic.name} has {count} partitions, needs {topic.partition_count}"
            )
