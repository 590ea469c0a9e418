"""Asks for one transactional id, and for one producer id."""

from collections.abc import Collection, Mapping

from common.kafka.admin.client import AdminClient
from common.kafka.admin.coordinators import COORDINATOR_MOVED
from common.kafka.admin.topics import TopicDescription, describe_topics, list_topics
from common.kafka.admin.transactions import (
    TransactionDescription,
    TransactionListing,
    describe_transactions,
    list_transactions,
)
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.topics import TopicPartition
from explain.asking.questions import Questions
from explain.asking.topics import plain_topics, similar_to
from explain.asking.transactions import producers_of
from explain.facts import Cluster, Partition, Producer, ProducerEntry, Transaction

PARTITIONS_AT_ONCE = 500


def transaction_facts(questions: Questions, transactional_id: str) -> Transaction:
    """Ask the coordinator of a transactional id."""
    try:
        outcome = describe_transactions(questions.client, [transactional_id])[transactional_id]
    except KafkaError as error:
        outcome = error
    if isinstance(outcome, TransactionDescription):
        return _transaction(questions, transactional_id, outcome)
    if outcome.code in {*COORDINATOR_MOVED, ErrorCode.REQUEST_TIMED_OUT}:
        return Transaction(transactional_id=transactional_id, coordinator_error=outcome.code.name)
    if outcome.code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        questions.note(f"the transactional id {transactional_id}", outcome)
        return Transaction(transactional_id=transactional_id)
    listed: list[TransactionListing] = questions.ask(
        "the transactions of the coordinators", list_transactions, []
    )
    known = [one.transactional_id for one in listed]
    return Transaction(
        transactional_id=transactional_id,
        is_found=False,
        similar=similar_to(transactional_id, known),
    )


def open_transaction_facts(questions: Questions, limit: int) -> list[Transaction]:
    """Ask for the transactions that are not closed, at most `limit`."""

    def ask(client: AdminClient) -> list[Transaction]:
        opened = [one for one in list_transactions(client) if one.state not in CLOSED]
        described = describe_transactions(client, [one.transactional_id for one in opened[:limit]])
        return [
            _transaction(questions, transactional_id, one)
            for transactional_id, one in described.items()
            if isinstance(one, TransactionDescription)
        ]

    return questions.ask("the transactions of the coordinators", ask, [])


CLOSED = frozenset({"Empty", "CompleteCommit", "CompleteAbort"})


def _transaction(
    questions: Questions, transactional_id: str, described: TransactionDescription
) -> Transaction:
    return Transaction(
        transactional_id=transactional_id,
        coordinator_id=described.coordinator_id,
        producer_id=described.producer_id,
        producer_epoch=described.producer_epoch,
        state=described.state,
        timeout_ms=described.timeout_ms,
        started_ms=described.start_time_ms,
        partitions=_partitions(questions, described.partitions),
    )


def _partitions(questions: Questions, names: Collection[TopicPartition]) -> tuple[Partition, ...]:
    if not names:
        return ()
    topics: list[TopicDescription] = questions.ask(
        "the partitions of the transaction",
        lambda client: describe_topics(client, {each.topic for each in names}),
        [],
    )
    wanted = set(names)
    return tuple(
        each
        for topic in plain_topics(questions, topics).values()
        for each in topic.partitions
        if each.name in wanted
    )


def producer_facts(
    questions: Questions, cluster: Cluster, producer_id: int, epoch: int | None
) -> Producer:
    """Ask the leaders of all partitions, and all coordinators, for a producer id."""
    before = len(questions.unanswered)
    topics: list[TopicDescription] = questions.ask("the topics", list_topics, [])
    led = [
        TopicPartition(topic.name, each.partition)
        for topic in topics
        for each in topic.partitions
        if cluster.is_up(each.leader_id)
    ]
    entries = []
    for start in range(0, len(led), PARTITIONS_AT_ONCE):
        found = producers_of(questions, led[start : start + PARTITIONS_AT_ONCE])
        entries += [
            ProducerEntry(
                partition=partition,
                epoch=one.producer_epoch,
                last_sequence=one.last_sequence,
                last_write_ms=one.last_timestamp if one.last_timestamp >= 0 else None,
                open_since=one.current_txn_start_offset
                if one.current_txn_start_offset >= 0
                else None,
            )
            for partition, producers in sorted(found.items())
            for one in producers
            if one.producer_id == producer_id
        ]
    return Producer(
        producer_id=producer_id,
        epoch=epoch,
        entries=tuple(entries),
        transaction=_of_producer(questions, producer_id),
        is_complete=len(questions.unanswered) == before
        and len(led) == sum(len(topic.partitions) for topic in topics),
    )


def _of_producer(questions: Questions, producer_id: int) -> Transaction | None:
    def ask(client: AdminClient) -> Mapping[str, TransactionDescription | KafkaError]:
        listed = list_transactions(client, producer_ids=[producer_id])
        return describe_transactions(client, [one.transactional_id for one in listed])

    described = questions.ask("the transactions of the coordinators", ask, {})
    for transactional_id, one in described.items():
        if isinstance(one, TransactionDescription):
            return _transaction(questions, transactional_id, one)
    return None
