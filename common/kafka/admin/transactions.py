"""Requests about transactions and the producers of partitions: list, describe, abort.

A coordinator knows a transaction by its transactional id; the leader of a partition knows a
producer that has one open there. A transaction that only a leader knows is hanging: no coordinator
will ever end it.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from common.kafka.admin.client import AdminClient, error_of
from common.kafka.admin.coordinators import (
    COORDINATOR_MOVED,
    CoordinatorType,
    Outcomes,
    ask_coordinators,
)
from common.kafka.admin.leaders import ask_leaders, by_topic
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    ProducerState,
    TopicRequest,
)
from common.kafka.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from common.kafka.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from common.kafka.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from common.kafka.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from common.kafka.topics import TopicPartition

NO_DURATION = -1


class TransactionListing(NamedTuple):
    """One transactional id in the answer of ListTransactions."""

    transactional_id: str
    coordinator_id: int
    producer_id: int
    state: str


class TransactionDescription(NamedTuple):
    """One transactional id; the start time is None while no transaction is open."""

    coordinator_id: int
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    start_time_ms: int | None
    partitions: list[TopicPartition]


class AbortMarker(NamedTuple):
    """A marker that aborts a transaction in one partition."""

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int


def list_transactions(
    client: AdminClient,
    *,
    producer_ids: Iterable[int] = (),
    duration_ms: int = NO_DURATION,
    id_pattern: str | None = None,
) -> list[TransactionListing]:
    """Return the transactions of all coordinators by id, filtered.

    Raise UNSUPPORTED_VERSION for a filter that a broker is too old for.
    """
    request = ListTransactionsRequest(
        producer_id_filters=sorted(producer_ids),
        duration_filter=duration_ms,
        transactional_id_pattern=id_pattern,
    )

    def attempt() -> list[TransactionListing]:
        found = []
        for node_id in client.nodes().nodes:
            answer = client.ask_once(request, ListTransactionsResponse, node_id)
            if answer.error_code:
                raise error_of(answer.error_code)
            found += [
                TransactionListing(
                    one.transactional_id, node_id, one.producer_id, one.transaction_state
                )
                for one in answer.transaction_states
            ]
        return sorted(found)

    return client.retry("the transactions of the brokers", attempt, COORDINATOR_MOVED)


def describe_transactions(
    client: AdminClient, transactional_ids: Iterable[str]
) -> Outcomes[TransactionDescription]:
    """Return the state of each id; TRANSACTIONAL_ID_NOT_FOUND is the outcome of an unknown one."""

    def ask(node_id: int, its_ids: Sequence[str]) -> Outcomes[TransactionDescription]:
        request = DescribeTransactionsRequest(transactional_ids=list(its_ids))
        answer = client.ask_once(request, DescribeTransactionsResponse, node_id)
        return {
            one.transactional_id: error_of(one.error_code)
            if one.error_code
            else TransactionDescription(
                node_id,
                one.producer_id,
                one.producer_epoch,
                one.transaction_state,
                one.transaction_timeout_ms,
                one.transaction_start_time_ms if one.transaction_start_time_ms >= 0 else None,
                sorted(
                    TopicPartition(topic.topic, number)
                    for topic in one.topics
                    for number in topic.partitions
                ),
            )
            for one in answer.transaction_states
        }

    return ask_coordinators(client, transactional_ids, ask, kind=CoordinatorType.TRANSACTION)


def fence_producer(client: AdminClient, transactional_id: str) -> None:
    """Fence a transactional id's producer with InitProducerId, which aborts its transaction."""
    request = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=client.settings.request_timeout_ms,
    )

    def ask(node_id: int, _: Sequence[str]) -> Outcomes[None]:
        answer = client.ask_once(request, InitProducerIdResponse, node_id)
        return {transactional_id: error_of(answer.error_code) if answer.error_code else None}

    outcome = ask_coordinators(
        client,
        [transactional_id],
        ask,
        kind=CoordinatorType.TRANSACTION,
        retried=[ErrorCode.CONCURRENT_TRANSACTIONS],
    )[transactional_id]
    if outcome is not None:
        raise outcome


def describe_producers(
    client: AdminClient, partitions: Collection[TopicPartition], broker_id: int | None = None
) -> dict[TopicPartition, list[ProducerState] | KafkaError]:
    """Return the active producers of each partition, from its leader or from one broker."""

    def ask(
        node_id: int, wanted: Sequence[TopicPartition]
    ) -> dict[TopicPartition, list[ProducerState] | KafkaError]:
        topics = [
            TopicRequest(name=name, partition_indexes=numbers)
            for name, numbers in by_topic(wanted).items()
        ]
        answer = client.ask_once(
            DescribeProducersRequest(topics=topics), DescribeProducersResponse, node_id
        )
        return {
            TopicPartition(topic.name, one.partition_index): error_of(
                one.error_code, one.error_message
            )
            if one.error_code
            else one.active_producers
            for topic in answer.topics
            for one in topic.partitions
        }

    if broker_id is None:
        return ask_leaders(client, partitions, ask)
    if broker_id not in client.nodes().nodes:
        raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"There is no broker {broker_id}.")
    return client.retry("DescribeProducers", lambda: ask(broker_id, list(partitions)), ())


def abort_transaction(client: AdminClient, marker: AbortMarker) -> None:
    """Send an abort marker to a partition's leader, without the coordinator."""
    request = WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                coordinator_epoch=marker.coordinator_epoch,
                transaction_result=False,
                topics=[
                    WritableTxnMarkerTopic(
                        name=marker.partition.topic, partition_indexes=[marker.partition.partition]
                    )
                ],
            )
        ]
    )

    def ask(leader_id: int, _: Sequence[TopicPartition]) -> dict[TopicPartition, KafkaError | None]:
        answer = client.ask_once(request, WriteTxnMarkersResponse, leader_id)
        return {
            TopicPartition(topic.name, one.partition_index): error_of(one.error_code)
            if one.error_code
            else None
            for result in answer.markers
            for topic in result.topics
            for one in topic.partitions
        }

    outcome = ask_leaders(client, [marker.partition], ask)[marker.partition]
    if outcome is not None:
        raise outcome
