"""Asks a cluster about one subject, and explains it: what the command and a console call.

Each function blocks until the cluster has answered or each question has timed out; a program on an
event loop calls it in a thread. They raise KafkaError only when no broker answers at all.
"""

from common.kafka.errors import KafkaError
from common.kafka.topics import TopicPartition
from explain.asking.cluster import cluster_facts
from explain.asking.groups import SECONDS, group_facts
from explain.asking.questions import Questions
from explain.asking.records import record_facts
from explain.asking.topics import described_topic, topic_facts
from explain.causes.topic import TopicCase
from explain.explanations import (
    Explanation,
    about_group,
    about_record,
    about_topic,
    explanation,
)
from explain.facts import Topic


def explain_topic(
    questions: Questions,
    name: str,
    number: int | None = None,
    offset: int | None = None,
    *,
    record_bytes: int | None = None,
) -> Explanation:
    """Explain a topic, one of its partitions, or one offset."""
    subject = f"Topic {name}" if number is None else f"Partition {TopicPartition(name, number)}"
    if offset is not None:
        subject = f"Record {name} {number}:{offset}"
    cluster = cluster_facts(questions)
    try:
        described = described_topic(questions, name)
    except KafkaError as error:
        questions.note(f"topic {name}", error)
        return explanation(subject, (), questions.unanswered)
    if isinstance(described, Topic):
        found = about_topic(cluster, TopicCase(described))
        return explanation(subject, found, questions.unanswered)
    wanted = None if number is None else [number]
    cluster, topics, directories = topic_facts(questions, cluster, [described], wanted)
    topic = topics[name]
    case = TopicCase(topic, number, len(described.partitions), record_bytes)
    found = [*about_topic(cluster, case)]
    if offset is not None and topic.partitions:
        partition = topic.partitions[0]
        record = record_facts(
            questions, cluster, partition, described.topic_id, offset, directories
        )
        found = [*about_record(cluster, topic, partition, record), *found]
    return explanation(subject, found, questions.unanswered)


def explain_group(questions: Questions, group_id: str, *, seconds: float = SECONDS) -> Explanation:
    """Explain a group; it is looked at again after `seconds` if it is behind or rebalances."""
    cluster = cluster_facts(questions)
    cluster, group = group_facts(questions, cluster, group_id, seconds=seconds)
    found = about_group(cluster, group)
    return explanation(f"Group {group_id}", found, questions.unanswered)
