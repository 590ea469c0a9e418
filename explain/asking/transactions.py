"""Asks for transactions and producers, at the leaders of partitions and at the coordinators."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from common.kafka.admin.client import AdminClient
from common.kafka.admin.transactions import (
    TransactionDescription,
    describe_producers,
    describe_transactions,
    list_transactions,
)
from common.kafka.errors import KafkaError
from common.kafka.protocol.messages.describe_producers import ProducerState
from common.kafka.topics import TopicPartition
from explain.asking.questions import Questions
from explain.facts import OpenTransaction

Opened = dict[TopicPartition, tuple[OpenTransaction, ...]]


def open_transactions(questions: Questions, partitions: Collection[TopicPartition]) -> Opened:
    """Return the open transactions of each partition whose leader tells them."""
    at_leaders = producers_of(questions, partitions)
    opened: Opened = {
        partition: tuple(_opened(one) for one in found if one.current_txn_start_offset >= 0)
        for partition, found in at_leaders.items()
    }
    if not any(opened.values()):
        return opened
    known = _known(questions, {one.producer_id for each in opened.values() for one in each})
    if known is None:
        return opened
    opened = {
        partition: tuple(_described(one, partition, known) for one in each)
        for partition, each in opened.items()
    }
    unknown = [
        partition for partition, each in opened.items() if any(not one.is_known for one in each)
    ]
    return {**opened, **_still_open(questions, {each: opened[each] for each in unknown})}


def producers_of(
    questions: Questions, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, list[ProducerState]]:
    """Return the producers of each partition whose leader tells them."""
    outcomes: Mapping[TopicPartition, list[ProducerState] | KafkaError] = questions.ask(
        "the producers of the partitions", lambda client: describe_producers(client, partitions), {}
    )
    found = {}
    for partition, outcome in outcomes.items():
        if isinstance(outcome, KafkaError):
            questions.note(f"the producers of {partition}", outcome)
        else:
            found[partition] = outcome
    return found


def _opened(one: ProducerState) -> OpenTransaction:
    return OpenTransaction(
        producer_id=one.producer_id,
        producer_epoch=one.producer_epoch,
        start_offset=one.current_txn_start_offset,
        last_write_ms=one.last_timestamp if one.last_timestamp >= 0 else None,
    )


def _known(
    questions: Questions, producer_ids: set[int]
) -> dict[int, tuple[str, TransactionDescription]] | None:
    """Return the transactions of producers as their coordinators know them; None: not told."""

    def ask(client: AdminClient) -> dict[int, tuple[str, TransactionDescription]]:
        listed = list_transactions(client, producer_ids=producer_ids)
        described = describe_transactions(client, [one.transactional_id for one in listed])
        return {
            outcome.producer_id: (transactional_id, outcome)
            for transactional_id, outcome in described.items()
            if not isinstance(outcome, KafkaError)
        }

    return questions.ask("the transactions of the coordinators", ask, None)


def _described(
    one: OpenTransaction,
    partition: TopicPartition,
    known: Mapping[int, tuple[str, TransactionDescription]],
) -> OpenTransaction:
    if one.producer_id not in known:
        return replace(one, is_known=False)
    transactional_id, described = known[one.producer_id]
    return replace(
        one,
        is_known=partition in described.partitions,
        transactional_id=transactional_id,
        coordinator_id=described.coordinator_id,
        state=described.state,
        started_ms=described.start_time_ms,
        timeout_ms=described.timeout_ms,
    )


def _still_open(questions: Questions, opened: Opened) -> Opened:
    """Leave out what has ended since the leaders were asked: its coordinator knew it then."""
    if not opened:
        return {}
    again = producers_of(questions, list(opened))
    return {
        partition: tuple(
            one
            for one in each
            if one.is_known
            or any(
                now.producer_id == one.producer_id
                and now.current_txn_start_offset == one.start_offset
                for now in again.get(partition, ())
            )
        )
        for partition, each in opened.items()
    }
