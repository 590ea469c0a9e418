"""Asks for topics: partitions, settings, offsets, reassignments, open transactions."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import partial

from common.kafka.admin.configs import ConfigEntry, Resource, ResourceType, describe_all
from common.kafka.admin.leaders import (
    EARLIEST,
    LATEST,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    ListedOffset,
    list_offsets,
)
from common.kafka.admin.reassignments import Reassignment, list_reassignments
from common.kafka.admin.topics import (
    PartitionDescription,
    TopicDescription,
    describe_topics,
    list_topics,
)
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.topics import TopicPartition
from explain.asking.cluster import Directories, ask_directories, behind
from explain.asking.questions import Questions
from explain.asking.transactions import open_transactions
from explain.causes.partition import THROTTLES
from explain.facts import Cluster, Partition, Topic

MIN_ISR = "min.insync.replicas"
SIMILAR = 3
TOPICS_AT_ONCE = 500
"""In a question for settings, so that each is answered soon."""


def similar_to(name: str, known: Collection[str]) -> tuple[str, ...]:
    """Return the names that may have been meant."""
    return tuple(get_close_matches(name, sorted(known), n=SIMILAR))


def described_topic(questions: Questions, name: str) -> TopicDescription | Topic:
    """Return a topic, or the facts of one that is not there. Raise KafkaError otherwise."""
    try:
        return describe_topics(questions.client, [name])[0]
    except KafkaError as error:
        unknown = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION}
        if error.code not in unknown:
            raise
    there: list[TopicDescription] = questions.ask("the topics", list_topics, [])
    return Topic(name=name, exists=False, similar=similar_to(name, [one.name for one in there]))


def topic_facts(
    questions: Questions,
    cluster: Cluster,
    described: Collection[TopicDescription],
    numbers: Collection[int] | None = None,
) -> tuple[Cluster, dict[str, Topic], Directories]:
    """Ask all about topics, or about some of their partitions; the cluster gets what it shows."""
    settings = _settings(questions, [one.name for one in described])
    topics = {
        one.name: Topic(
            name=one.name,
            settings=settings.get(one.name),
            partitions=tuple(
                _partition(one.name, each, settings.get(one.name))
                for each in one.partitions
                if numbers is None or each.partition in numbers
            ),
        )
        for one in described
    }
    places = {one.name: [each.name.partition for each in one.partitions] for one in topics.values()}
    cluster, directories = ask_directories(questions, cluster, places)
    partitions = [each for one in topics.values() for each in one.partitions]
    known = _with_moves(questions, partitions)
    known = [replace(one, behind=behind(directories, one.name)) for one in known]
    by_name = {one.name: one for one in _with_offsets(questions, cluster, known)}
    return (
        cluster,
        {
            name: replace(one, partitions=tuple(by_name[each.name] for each in one.partitions))
            for name, one in topics.items()
        },
        directories,
    )


def worth_a_look(described: Collection[TopicDescription]) -> list[TopicDescription]:
    """Return all of a few topics; of many, those with a partition that is out of order.

    Of a partition in order nothing would be said, but that its topic's min.insync.replicas is
    above its replicas: of many topics that is left to a question about one.
    """
    if len(described) <= TOPICS_AT_ONCE:
        return list(described)
    return [one for one in described if not all(map(is_in_order, one.partitions))]


def is_in_order(partition: PartitionDescription) -> bool:
    """Tell whether the preferred replica leads, and all are in sync: then none is added either."""
    is_preferred = partition.replicas[:1] == [partition.leader_id]
    return is_preferred and set(partition.isr) >= set(partition.replicas)


def plain_topics(questions: Questions, described: Collection[TopicDescription]) -> dict[str, Topic]:
    """Return topics with their moves, and without what only the leaders know.

    Of the settings there are those that causes of partitions read: a cluster has many topics.
    """
    settings = _settings(questions, [one.name for one in described], (MIN_ISR, *THROTTLES))
    partitions = [
        _partition(one.name, each, settings.get(one.name))
        for one in described
        for each in one.partitions
    ]
    found: dict[str, list[Partition]] = {one.name: [] for one in described}
    for each in _with_moves(questions, partitions):
        found[each.name.topic].append(each)
    return {
        name: Topic(name=name, settings=settings.get(name), partitions=tuple(own))
        for name, own in found.items()
    }


def _settings(
    questions: Questions, names: Collection[str], wanted_names: Collection[str] | None = None
) -> Mapping[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    listed = list(names)
    for start in range(0, len(listed), TOPICS_AT_ONCE):
        wanted = [
            Resource(ResourceType.TOPIC, name) for name in listed[start : start + TOPICS_AT_ONCE]
        ]
        entries: Mapping[Resource, list[ConfigEntry]] = questions.ask(
            "the settings of the topics",
            partial(describe_all, resources=wanted, names=wanted_names),
            {},
        )
        for resource, settings in entries.items():
            found[resource.name] = {
                one.name: one.value for one in settings if one.value is not None
            }
    return found


def _partition(
    topic: str, described: PartitionDescription, settings: Mapping[str, str] | None
) -> Partition:
    min_isr = None if settings is None else settings.get(MIN_ISR)
    return Partition(
        name=TopicPartition(topic, described.partition),
        leader_id=described.leader_id,
        replicas=tuple(described.replicas),
        isr=tuple(sorted(described.isr)),
        elr=None if described.elr is None else tuple(described.elr),
        min_isr=None if min_isr is None else int(min_isr),
    )


def _with_moves(questions: Questions, partitions: list[Partition]) -> list[Partition]:
    if not partitions:
        return []
    moves: Mapping[TopicPartition, Reassignment] = questions.ask(
        "the reassignments", list_reassignments, {}
    )
    return [
        replace(
            one,
            adding=tuple(moves[one.name].adding),
            removing=tuple(moves[one.name].removing),
        )
        if one.name in moves
        else one
        for one in partitions
    ]


def _with_offsets(
    questions: Questions, cluster: Cluster, partitions: list[Partition]
) -> list[Partition]:
    """Add what the leaders know, of partitions whose leader answers."""
    led = [
        one.name
        for one in partitions
        if one.leader_id in cluster.brokers and not cluster.brokers[one.leader_id].silence
    ]
    if not led:
        return partitions
    opened = open_transactions(questions, led)
    # The last stable offset before the high watermark: they only grow, so the first is no larger.
    earliest = _offsets(questions, led, EARLIEST)
    last_stable = offsets(questions, led, committed=True)
    high_watermarks = offsets(questions, led, committed=False)
    return [
        replace(
            one,
            earliest=earliest.get(one.name),
            last_stable=last_stable.get(one.name),
            high_watermark=high_watermarks.get(one.name),
            open_transactions=opened.get(one.name),
        )
        for one in partitions
    ]


def offsets(
    questions: Questions, partitions: Collection[TopicPartition], *, committed: bool
) -> dict[TopicPartition, int]:
    """Return where partitions end: at the last stable offset, or at the high watermark."""
    level = READ_COMMITTED if committed else READ_UNCOMMITTED
    return _offsets(questions, partitions, LATEST, level)


def _offsets(
    questions: Questions,
    partitions: Collection[TopicPartition],
    timestamp: int,
    isolation_level: int = READ_UNCOMMITTED,
) -> dict[TopicPartition, int]:
    outcomes: Mapping[TopicPartition, ListedOffset | KafkaError] = questions.ask(
        "the offsets of the partitions",
        lambda client: list_offsets(client, partitions, timestamp, isolation_level=isolation_level),
        {},
    )
    found = {}
    for partition, outcome in outcomes.items():
        if isinstance(outcome, KafkaError):
            questions.note(f"the offsets of {partition}", outcome)
        else:
            found[partition] = outcome.offset
    return found
