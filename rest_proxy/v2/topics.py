"""`/topics` and `/brokers`: lists of topics, partitions and brokers."""

from typing import Any

from aiohttp import web

from rest_proxy.kafka.metadata import EARLIEST, LATEST, TOPIC_RESOURCE, Partition, Topic
from rest_proxy.proxy import PROXY
from rest_proxy.refusals import not_found
from rest_proxy.web.answers import answer
from rest_proxy.web.media import JSON, V2, answered_type


def shown(request: web.Request, body: Any) -> web.Response:
    """Answer with the media type that the caller accepts."""
    return answer(body, content_type=answered_type(request.headers.get("Accept"), V2, JSON))


async def get_topics(request: web.Request) -> web.Response:
    return shown(request, [each.name for each in await request.app[PROXY].brokers.topics()])


async def get_topic(request: web.Request) -> web.Response:
    proxy = request.app[PROXY]
    topic = await proxy.brokers.topic(request.match_info["topic"])
    configs = await proxy.brokers.configs(TOPIC_RESOURCE, topic.name)
    return shown(
        request,
        {
            "name": topic.name,
            "configs": {each.name: each.value for each in sorted(configs)},
            "partitions": [_partition(each) for each in topic.partitions],
        },
    )


async def get_partitions(request: web.Request) -> web.Response:
    topic = await request.app[PROXY].brokers.topic(request.match_info["topic"])
    return shown(request, [_partition(each) for each in topic.partitions])


async def get_partition(request: web.Request) -> web.Response:
    topic, partition_id = await _named(request)
    return shown(request, _partition(topic.partition(partition_id)))


async def get_offsets(request: web.Request) -> web.Response:
    topic, partition_id = await _named(request)
    topic.partition(partition_id)
    place = (topic.name, partition_id)
    brokers = request.app[PROXY].brokers
    first = await brokers.offsets([place], EARLIEST)
    end = await brokers.offsets([place], LATEST)
    return shown(request, {"beginning_offset": first[place], "end_offset": end[place]})


async def get_brokers(request: web.Request) -> web.Response:
    cluster = await request.app[PROXY].brokers.cluster()
    return shown(request, {"brokers": [each.broker_id for each in cluster.brokers]})


async def _named(request: web.Request) -> tuple[Topic, int]:
    partition_id = partition_of(request)
    return await request.app[PROXY].brokers.topic(request.match_info["topic"]), partition_id


def partition_of(request: web.Request) -> int:
    """Return the partition of the path; raises RestError, 404."""
    text = request.match_info["partition"]
    if not (text.isascii() and text.isdigit() and int(text) < 1 << 31):
        raise not_found()
    return int(text)


def _partition(partition: Partition) -> dict[str, Any]:
    return {
        "partition": partition.partition_id,
        "leader": partition.leader,
        "replicas": [
            {
                "broker": broker,
                "leader": broker == partition.leader,
                "in_sync": broker in partition.isr,
            }
            for broker in partition.replicas
        ],
    }


ROUTES = [
    web.get("/topics", get_topics),
    web.get("/topics/{topic}", get_topic),
    web.get("/topics/{topic}/partitions", get_partitions),
    web.get("/topics/{topic}/partitions/{partition}", get_partition),
    web.get("/topics/{topic}/partitions/{partition}/offsets", get_offsets),
    web.get("/brokers", get_brokers),
]
