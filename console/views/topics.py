"""Topics: the list, one topic with its partitions and settings, and changes of them.

The list needs one Metadata, whatever the number of topics; offsets and settings are asked for only
of the topics that are on the page.
"""

from collections.abc import Sequence
from typing import Any, Final

from aiohttp import web

from common.http.problems import ProblemError
from common.kafka.admin import configs, leaders, topics
from common.kafka.admin.client import AdminClient
from common.kafka.admin.configs import ConfigEntry, ConfigSource, Resource, ResourceType
from common.kafka.admin.topics import TopicDescription
from common.kafka.errors import KafkaError
from common.kafka.topics import TopicPartition
from console.answers import Fields, body_of, json_answer
from console.console import CONSOLE

PAGE_TOPICS: Final = 50
_EARLIEST, _LATEST = -2, -1
_MAX_LISTED_PARTITIONS: Final = 2_000
"""Of the topics of one page: the offsets of more are not asked for."""


async def get_topics(request: web.Request) -> web.Response:
    """Return one page of the topics whose names have a text."""
    cluster = request.app[CONSOLE].cluster
    fields = Fields(request.query)
    found = await cluster.fresh(topics.list_topics)
    wanted = fields.text("q", "").casefold()
    with_internal = fields.flag("internal")
    chosen = [
        each
        for each in found
        if wanted in each.name.casefold() and (with_internal or not each.is_internal)
    ]
    number = fields.whole("page", 1, least=1)
    visible = chosen[(number - 1) * PAGE_TOPICS : number * PAGE_TOPICS]
    details = await cluster.fresh(_details, tuple(each.name for each in visible))
    return json_answer(
        {
            "count": len(chosen),
            "page": number,
            "pages": max(1, -(-len(chosen) // PAGE_TOPICS)),
            "topics": [_summary(each) | details.get(each.name, {}) for each in visible],
        }
    )


def _summary(topic: TopicDescription) -> dict[str, Any]:
    partitions = topic.partitions
    return {
        "name": topic.name,
        "is_internal": topic.is_internal,
        "partitions": len(partitions),
        "replicas": max((len(each.replicas) for each in partitions), default=0),
        "under_replicated": sum(len(each.isr) < len(each.replicas) for each in partitions),
        "offline": sum(each.leader_id < 0 for each in partitions),
    }


def _details(client: AdminClient, names: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Return the number of offsets and the policy of each topic, as far as leaders answer."""
    found: dict[str, dict[str, Any]] = {name: {} for name in names}
    if not names:
        return found
    described = topics.describe_topics(client, names)
    partitions = [
        TopicPartition(each.name, part.partition)
        for each in described
        for part in each.partitions
        if part.leader_id >= 0
    ][:_MAX_LISTED_PARTITIONS]
    begins = leaders.list_offsets(client, partitions, _EARLIEST)
    ends = leaders.list_offsets(client, partitions, _LATEST)
    for each in partitions:
        begin, end = begins[each], ends[each]
        if not isinstance(begin, KafkaError) and not isinstance(end, KafkaError):
            before = int(found[each.topic].get("records", "0"))
            found[each.topic]["records"] = str(before + end.offset - begin.offset)
    resources = [Resource(ResourceType.TOPIC, name) for name in names]
    for resource, entries in configs.describe_all(client, resources).items():
        values = {entry.name: entry.value for entry in entries}
        found[resource.name]["policy"] = values.get("cleanup.policy")
        found[resource.name]["retention_ms"] = values.get("retention.ms")
    return found


async def get_topic(request: web.Request) -> web.Response:
    """Return the partitions and the settings of one topic."""
    cluster = request.app[CONSOLE].cluster
    name = request.match_info["topic"]
    described = await cluster.admin.run(_described, name)
    return json_answer(described)


def _described(client: AdminClient, name: str) -> dict[str, Any]:
    (topic,) = topics.describe_topics(client, [name])
    led = [TopicPartition(name, each.partition) for each in topic.partitions if each.leader_id >= 0]
    begins, ends = (leaders.list_offsets(client, led, at) for at in (_EARLIEST, _LATEST))
    entries = configs.describe(client, Resource(ResourceType.TOPIC, name), with_synonyms=False)
    return {
        **_summary(topic),
        "id": topic.topic_id.hex(),
        "parts": [
            {
                "partition": each.partition,
                "leader": each.leader_id,
                "replicas": each.replicas,
                "isr": each.isr,
                "elr": each.elr or [],
                "start": _offset(begins.get(TopicPartition(name, each.partition))),
                "end": _offset(ends.get(TopicPartition(name, each.partition))),
            }
            for each in topic.partitions
        ],
        "settings": settings_of(entries),
    }


def settings_of(entries: Sequence[ConfigEntry]) -> list[dict[str, Any]]:
    """Return settings for the page: first those that somebody has set."""
    shown = [
        {
            "name": each.name,
            "value": None if each.is_sensitive else each.value,
            "is_sensitive": each.is_sensitive,
            "source": each.source.name,
            "is_own": each.source in (ConfigSource.DYNAMIC_TOPIC_CONFIG,
                                      ConfigSource.DYNAMIC_BROKER_CONFIG,
                                      ConfigSource.DYNAMIC_GROUP_CONFIG,
                                      ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG),
        }
        for each in entries
    ]  # fmt: skip
    return sorted(shown, key=lambda each: (not each["is_own"], str(each["name"])))


def _offset(outcome: leaders.ListedOffset | KafkaError | None) -> str | None:
    if outcome is None or isinstance(outcome, KafkaError):
        return None
    return str(outcome.offset)


async def create_topic(request: web.Request) -> web.Response:
    """Create a topic: name, partitions, replicas, settings; -1 is the cluster's default."""
    fields = Fields(body_of(await request.read()))
    name = fields.text("name")
    await request.app[CONSOLE].cluster.admin.run(
        topics.create_topic,
        name,
        partition_count=fields.whole("partitions", -1, least=-1, most=100_000),
        replication_factor=fields.whole("replicas", -1, least=-1, most=1_000),
        configs=fields.mapping("settings", _is_text),
    )
    return json_answer({"name": name}, 201)


async def delete_topic(request: web.Request) -> web.Response:
    """Delete a topic, if the body repeats its name."""
    name = request.match_info["topic"]
    if Fields(body_of(await request.read())).text("name") != name:
        raise ProblemError(422, f"Repeat the name to delete the topic: {name}")
    await request.app[CONSOLE].cluster.admin.run(topics.delete_topics, [name])
    return json_answer({"name": name})


async def add_partitions(request: web.Request) -> web.Response:
    """Add partitions up to a count."""
    name = request.match_info["topic"]
    count = Fields(body_of(await request.read())).whole("count", least=1, most=100_000)
    await request.app[CONSOLE].cluster.admin.run(topics.create_partitions, {name: count}, {})
    return json_answer({"name": name, "partitions": count})


async def alter_settings(request: web.Request) -> web.Response:
    """Set settings of a topic, or remove those whose value is null."""
    name = request.match_info["topic"]
    fields = Fields(body_of(await request.read()))
    changes = fields.mapping("settings", lambda each: each is None or isinstance(each, str))
    changes = {key.strip(): value for key, value in changes.items()}
    resource = Resource(ResourceType.TOPIC, name)
    await request.app[CONSOLE].cluster.admin.run(configs.alter, {resource: changes})
    return json_answer({"name": name})


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


ROUTES: Final = (
    web.get("/api/topics", get_topics),
    web.post("/api/topics", create_topic),
    web.get("/api/topics/{topic}", get_topic),
    web.delete("/api/topics/{topic}", delete_topic),
    web.post("/api/topics/{topic}/partitions", add_partitions),
    web.patch("/api/topics/{topic}/settings", alter_settings),
)
