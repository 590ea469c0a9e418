"""Asks a cluster about one subject, and explains it: what the command and a console call.

Each function blocks until the cluster has answered or each question has timed out; a program on an
event loop calls it in a thread. They raise KafkaError when no broker answers at all, and for names
and numbers that Kafka's protocol cannot carry.
"""

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from common.kafka.acls import AclOperation, ResourceType
from common.kafka.admin.topics import TopicDescription, list_topics
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.topics import TopicPartition
from common.process.json_text import is_unicode
from explain.asking.cluster import ask_directories, cluster_facts, settled
from explain.asking.groups import SECONDS, Wait, group_facts
from explain.asking.producers import open_transaction_facts, producer_facts, transaction_facts
from explain.asking.questions import Questions
from explain.asking.records import record_facts
from explain.asking.rights import quotas_of, rights_of
from explain.asking.topics import described_topic, plain_topics, topic_facts, worth_a_look
from explain.causes.cause import Finding, Severity
from explain.causes.topic import TopicCase
from explain.explanations import (
    Explanation,
    about_cluster,
    about_group,
    about_partition,
    about_producer,
    about_record,
    about_rights,
    about_topic,
    about_transaction,
    explanation,
)
from explain.facts import Topic

USES: Final = (AclOperation.READ, AclOperation.WRITE)
"""What the users of a topic do with it."""
MAX_TRANSACTIONS: Final = 500
MAX_NAME_BYTES: Final = 32_767
MAX_NUMBER: Final = (1 << 63) - 1


def explain_topic(
    questions: Questions,
    name: str,
    number: int | None = None,
    offset: int | None = None,
    *,
    record_bytes: int | None = None,
    principal: str | None = None,
) -> Explanation:
    """Explain a topic, one of its partitions, or one offset.

    `record_bytes` is the size of a record to be written, `principal` a user of the topic.
    """
    subject = f"Topic {name}" if number is None else f"Partition {TopicPartition(name, number)}"
    if offset is not None:
        subject = f"Record {name} {number}:{offset}"
    _check_names(name)
    _check_numbers(number, offset)
    cluster = cluster_facts(questions)
    try:
        described = described_topic(questions, name)
    except KafkaError as error:
        questions.note(f"topic {name}", error)
        return explanation(subject, (), questions.unanswered)
    if isinstance(described, Topic):
        found = about_topic(cluster, TopicCase(described))
        return explanation(subject, found, questions.unanswered)
    numbers = None if number is None else [number]
    cluster, topics, directories = topic_facts(questions, cluster, [described], numbers)
    topic = topics[name]
    case = TopicCase(topic, number, len(described.partitions), record_bytes)
    wanted = [(each, ResourceType.TOPIC, name) for each in USES]
    rights = rights_of(questions, cluster, principal, wanted)
    found = [*about_rights(rights), *about_topic(cluster, case)]
    if offset is not None and topic.partitions:
        partition = topic.partitions[0]
        record = record_facts(
            questions, cluster, partition, described.topic_id, offset, directories
        )
        found = [*about_record(cluster, topic, partition, record), *found]
    return explanation(subject, found, questions.unanswered)


def explain_group(
    questions: Questions,
    group_id: str,
    *,
    seconds: float = SECONDS,
    wait: Wait = time.sleep,
    principal: str | None = None,
    assignor: str | None = None,
) -> Explanation:
    """Explain a group; it is looked at again after `seconds` if it is behind or rebalances.

    `principal` is the user of its consumers, `assignor` what one more member would offer.
    """
    _check_names(group_id)
    cluster = cluster_facts(questions)
    cluster, group = group_facts(questions, cluster, group_id, seconds=seconds, wait=wait)
    look = group.latest
    clients = {one.client_id for one in look.members} if look else set()
    group = replace(
        group, quotas=quotas_of(questions, clients, principal), wanted_assignor=assignor
    )
    wanted = [(AclOperation.READ, ResourceType.GROUP, group_id)]
    wanted += [(AclOperation.READ, ResourceType.TOPIC, name) for name in sorted(group.topics)]
    rights = rights_of(questions, cluster, principal, wanted)
    found = [*about_rights(rights), *about_group(cluster, group)]
    return explanation(f"Group {group_id}", found, questions.unanswered)


def explain_transaction(
    questions: Questions, transactional_id: str, *, principal: str | None = None
) -> Explanation:
    """Explain a transactional id; `principal` is the user of its producer."""
    _check_names(transactional_id)
    cluster = cluster_facts(questions)
    transaction = transaction_facts(questions, transactional_id)
    # What the coordinator told is later than the cluster's time.
    cluster = replace(cluster, now_ms=questions.now_ms())
    wanted = [(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)]
    rights = rights_of(questions, cluster, principal, wanted)
    found = [*about_rights(rights), *about_transaction(cluster, transaction)]
    for each in transaction.partitions:
        found += _problems(about_partition(cluster, Topic(name=each.name.topic), each))
    return explanation(f"Transaction {transactional_id}", found, questions.unanswered)


def explain_producer(
    questions: Questions, producer_id: int, epoch: int | None = None
) -> Explanation:
    """Explain a producer id; `epoch` is that of the producer which is refused."""
    _check_numbers(producer_id, epoch)
    cluster = cluster_facts(questions)
    producer = producer_facts(questions, cluster, producer_id, epoch)
    cluster = replace(cluster, now_ms=questions.now_ms())
    found = about_producer(cluster, producer)
    return explanation(f"Producer {producer_id}", found, questions.unanswered)


def explain_cluster(questions: Questions) -> Explanation:
    """Explain the nodes, all partitions as the controller knows them, and open transactions."""
    cluster = settled(lambda: cluster_facts(questions), time.sleep)
    cluster, _ = ask_directories(questions, cluster, {})
    described: list[TopicDescription] = questions.ask("the topics", list_topics, [])
    topics = plain_topics(questions, worth_a_look(described))
    transactions = open_transaction_facts(questions, MAX_TRANSACTIONS)
    cluster = replace(cluster, now_ms=questions.now_ms())
    found = about_cluster(cluster, topics.values(), transactions)
    return explanation("The cluster", found, questions.unanswered)


def _check_names(*names: str) -> None:
    for name in names:
        if len(name.encode(errors="surrogatepass")) > MAX_NAME_BYTES or not is_unicode(name):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"a name is text of at most {MAX_NAME_BYTES:,} bytes"
            )


def _check_numbers(*numbers: int | None) -> None:
    for number in numbers:
        if number is not None and not 0 <= number <= MAX_NUMBER:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"{number} is no number from 0 to {MAX_NUMBER}"
            )


def _problems(found: Iterable[Finding]) -> list[Finding]:
    return [one for one in found if one.severity is Severity.PROBLEM]
