"""Asks transaction coordinators whether partitions belong to a transaction (KIP-890).

Before the first append of a transaction to a partition, the partition's leader sends
AddPartitionsToTxn to the coordinator. For an older producer it asks whether the partition was
added; for a producer that has a new epoch in each transaction it asks to add the partition. The
append waits for the answer, with its connection, and is made with the guard that was in force when
the question was asked (`log/producers/verification.py`).

Each coordinator gets one request at a time, with the questions that wait: one question for each
transactional id, the others follow in later requests.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from broker.log.producers.verification import NO_GUARD
from broker.metadata.topic_names import TRANSACTION_STATE
from broker.model import TopicPartition
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.coordinators.broker_connections import BrokerConnections
from broker.server.network.client_connection import ClientConnection
from broker.server.network.later import Later, Steps
from broker.server.replication.partitions import Partitions
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.array_limits import PARTITIONS_OF_A_CLIENT
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

ADD_PARTITIONS_VERSION = 5
REQUEST_TIMEOUT_MS = 30_000
MAX_TRANSACTIONS_PER_REQUEST = 100

FINAL_REFUSALS = {
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.TRANSACTION_ABORTABLE,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
}
"""After these refusals the append is not made: another question would get the same answer."""


class VerificationMode(Enum):
    """What the version of a Produce allows: the question, and the error codes of its answer."""

    VERIFY = "whether it belongs to it; TRANSACTION_ABORTABLE is not known"
    VERIFY_OR_ABORT = "whether it belongs to it"
    ADD = "to add it; the producer has a new epoch in each transaction"


class Producer(NamedTuple):
    """A transactional producer."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


Codes = Mapping[TopicPartition, ErrorCode]
Guards = dict[TopicPartition, int]
Verified = dict[TopicPartition, int | ErrorCode]
"""The guard to append with, or the refusal."""


class VerifierParts(NamedTuple):
    """The objects that the verifier works with."""

    loop: asyncio.AbstractEventLoop
    metadata: ClusterMetadata
    connect: Callable[[tuple[str, int]], ClientConnection]
    listener_name: str
    """The listener by which brokers reach each other."""


class VerifierConfig(NamedTuple):
    """Its settings."""

    is_enabled: bool
    """transaction.partition.verification.enable; adding partitions cannot be disabled."""
    backoff_ms: int
    """add.partitions.to.txn.retry.backoff.ms"""
    backoff_max_ms: int
    """add.partitions.to.txn.retry.backoff.max.ms: the time for all attempts together."""


class _Question:
    """The question of one append."""

    __slots__ = ("mode", "on_codes", "partitions", "producer")

    def __init__(
        self,
        producer: Producer,
        mode: VerificationMode,
        partitions: list[TopicPartition],
        on_codes: Callable[[Codes], None],
    ) -> None:
        self.producer = producer
        self.mode = mode
        self.partitions = partitions
        self.on_codes = on_codes

    def refuse(self, code: ErrorCode) -> None:
        self.on_codes(dict.fromkeys(self.partitions, code))

    def transaction(self) -> AddPartitionsToTxnTransaction:
        topics: dict[str, list[int]] = {}
        for topic, index in self.partitions:
            topics.setdefault(topic, []).append(index)
        return AddPartitionsToTxnTransaction(
            **self.producer._asdict(),
            verify_only=self.mode is not VerificationMode.ADD,
            topics=[
                AddPartitionsToTxnTopic(name=name, partitions=indexes)
                for name, indexes in topics.items()
            ],
        )


class _Coordinator:
    """One coordinator's broker. Invariant: at most one request is under way."""

    __slots__ = ("connection", "queued", "under_way")

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.queued: list[_Question] = []
        self.under_way: dict[str, _Question] = {}

    def take_next(self) -> dict[str, _Question]:
        """Choose the questions of the next request."""
        chosen: dict[str, _Question] = {}
        left: list[_Question] = []
        room = PARTITIONS_OF_A_CLIENT
        for question in self.queued:
            transactional_id = question.producer.transactional_id
            size = len(question.partitions)
            is_full = len(chosen) == MAX_TRANSACTIONS_PER_REQUEST or size > room
            if transactional_id in chosen or is_full:
                left.append(question)
            else:
                chosen[transactional_id] = question
                room -= size
        self.queued, self.under_way = left, chosen
        return chosen


class TransactionVerifier:
    """See the module."""

    def __init__(
        self, parts: VerifierParts, partitions: Partitions, config: VerifierConfig
    ) -> None:
        self._loop, metadata, connect, listener_name = parts
        self._partitions = partitions
        self._config = config
        self._coordinators = BrokerConnections(
            metadata,
            listener_name,
            lambda address: _Coordinator(connect(address)),
            self._on_dropped,
        )

    def verify(
        self,
        producer: Producer,
        sequences: Mapping[TopicPartition, int],
        mode: VerificationMode,
        timestamp_ms: int,
    ) -> Steps[Verified]:
        """Ask the coordinator, if necessary, about appends that begin at these sequences.

        A partition without a result needs no answer: its transaction is open, or it has another
        leader.
        """
        if not self._config.is_enabled and mode is not VerificationMode.ADD:
            return {}
        left_ms = self._config.backoff_max_ms
        while True:
            guards = self._begin(producer, sequences, mode, timestamp_ms)
            if not guards:
                return {}
            codes: Codes = yield from self._ask(producer, mode, list(guards))
            if (
                not self._is_early(producer, guards, codes)
                or mode is not VerificationMode.ADD
                or left_ms <= 0
            ):
                return self._verified(producer, guards, codes, mode)
            pause_ms = min(self._config.backoff_ms, left_ms)
            left_ms -= pause_ms
            pause = Later(holds=True)
            self._loop.call_later(pause_ms / 1000, pause.done)
            yield pause

    def _begin(
        self,
        producer: Producer,
        sequences: Mapping[TopicPartition, int],
        mode: VerificationMode,
        timestamp_ms: int,
    ) -> Guards:
        guards: Guards = {}
        for topic_partition, sequence in sequences.items():
            partition = self._partitions.find(*topic_partition)
            if partition is not None and partition.leader is not None:
                guard = partition.log.producers.begin_verification(
                    producer.producer_id,
                    producer.producer_epoch,
                    sequence,
                    timestamp_ms=timestamp_ms,
                    raises_epochs=mode is VerificationMode.ADD,
                )
                if guard != NO_GUARD:
                    guards[topic_partition] = guard
        return guards

    def _is_early(self, producer: Producer, guards: Guards, codes: Codes) -> bool:
        """Return whether the previous transaction is open, or was open at the time of the question.

        A producer that has its new epoch goes on at once. Its last markers may still be under way,
        and a marker that arrives meanwhile invalidates the guard.
        """
        if ErrorCode.CONCURRENT_TRANSACTIONS in codes.values():
            return True
        if any(codes.values()):
            return False
        for place, guard in guards.items():
            partition = self._partitions.find(*place)
            if partition is not None and not partition.log.producers.may_append(
                producer.producer_id, producer.producer_epoch, guard
            ):
                return True
        return False

    def _verified(
        self, producer: Producer, guards: Guards, codes: Codes, mode: VerificationMode
    ) -> Verified:
        verified: Verified = {}
        for topic_partition, guard in guards.items():
            code = _told_to_client(codes.get(topic_partition, ErrorCode.NONE), mode)
            verified[topic_partition] = code or guard
            if code in FINAL_REFUSALS:
                self._give_up(topic_partition, producer.producer_id, guard)
        return verified

    def _give_up(self, topic_partition: TopicPartition, producer_id: int, guard: int) -> None:
        partition = self._partitions.find(*topic_partition)
        if partition is not None:
            partition.log.producers.give_up_verification(producer_id, guard)

    def _ask(
        self, producer: Producer, mode: VerificationMode, partitions: list[TopicPartition]
    ) -> Steps[Codes]:
        coordinator = self._coordinators.coordinator_of(
            TRANSACTION_STATE, producer.transactional_id
        )
        if coordinator is None:
            return dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        answered = Later(holds=True)
        coordinator.queued.append(_Question(producer, mode, partitions, answered.done))
        self._send(coordinator)
        codes: Codes = yield answered
        return codes

    # --- the coordinators ---

    def on_brokers_changed(self) -> None:
        """Stop waiting for answers of brokers that are gone, or that have another address."""
        self._coordinators.on_brokers_changed()

    def _on_dropped(self, coordinator: _Coordinator) -> None:
        for question in (*coordinator.under_way.values(), *coordinator.queued):
            # Not within a change of the metadata: the continued requests append.
            self._loop.call_soon(question.refuse, ErrorCode.NETWORK_EXCEPTION)

    def stop(self) -> None:
        """Stop all timers and connections."""
        self._coordinators.close()

    def _send(self, coordinator: _Coordinator) -> None:
        if coordinator.under_way or not coordinator.queued:
            return
        questions = coordinator.take_next()
        request = AddPartitionsToTxnRequest(
            transactions=[question.transaction() for question in questions.values()]
        )
        coordinator.connection.ask(
            request,
            ADD_PARTITIONS_VERSION,
            REQUEST_TIMEOUT_MS,
            lambda answer: self._on_answer(coordinator, answer),
        )

    def _on_answer(self, coordinator: _Coordinator, answer: Message | None) -> None:
        questions, coordinator.under_way = coordinator.under_way, {}
        for question, codes in _codes_of(questions, answer):
            question.on_codes(codes)
        self._send(coordinator)


def _codes_of(
    questions: Mapping[str, _Question], answer: Message | None
) -> Iterable[tuple[_Question, Codes]]:
    """Answer each question; one without a result is answered like a broken connection."""
    refusal, results = ErrorCode.NETWORK_EXCEPTION, {}
    if isinstance(answer, AddPartitionsToTxnResponse):
        if answer.error_code:
            refusal = _hidden(ErrorCode(answer.error_code))
        results = {each.transactional_id: each for each in answer.results_by_transaction}
    for transactional_id, question in questions.items():
        result = results.get(transactional_id)
        codes = dict.fromkeys(question.partitions, refusal)
        for topic in () if result is None else result.topic_results:
            for each in topic.results_by_partition:
                codes[TopicPartition(topic.name, each.partition_index)] = ErrorCode(
                    each.partition_error_code
                )
        yield question, codes


def _hidden(code: ErrorCode) -> ErrorCode:
    """Hide from clients that this broker is not authorized: they learn only of no verification."""
    is_ours = code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return ErrorCode.INVALID_TXN_STATE if is_ours else code


def _told_to_client(code: ErrorCode, mode: VerificationMode) -> ErrorCode:
    """Return the error code that a client of that version knows."""
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and mode is VerificationMode.VERIFY:
        return ErrorCode.INVALID_TXN_STATE
    return code


def require_guard(verified: int | ErrorCode | None) -> int:
    """Return the guard to append with; raises the refusal."""
    if isinstance(verified, ErrorCode):
        raise KafkaError(verified)
    return NO_GUARD if verified is None else verified
