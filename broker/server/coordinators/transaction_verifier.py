"""Asks transaction coordinators whether partitions belong to a transaction (KIP-890).

Before the first append of a transaction to a partition, the partition's leader sends
AddPartitionsToTxn to the coordinator. For an older producer it asks whether the partition was
added; for a producer that has a new epoch in each transaction it asks to add the partition. The
append waits for the answer, with its connection, and is made with the guard that was in force when
the question was asked (`log/producers/verification.py`).

Each coordinator gets one request at a time, with the questions that wait: one question for each
transactional id, the others follow in later requests.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from broker.log.producers.verification import NO_GUARD
from broker.metadata.topic_names import TRANSACTION_STATE
from broker.model import TopicPartition
from broker.server.network.later import Later, Steps
from broker.server.peers import Batches, Peers
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


class VerifierConfig(NamedTuple):
    """How appends of transactions are verified."""

    is_enabled: bool
    """transaction.partition.verification.enable; adding partitions cannot be disabled."""
    backoff_ms: int
    """add.partitions.to.txn.retry.backoff.ms"""
    backoff_max_ms: int
    """add.partitions.to.txn.retry.backoff.max.ms: the time for all attempts together."""


class Verification:
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

    @property
    def key(self) -> str:
        """The transactional id."""
        return self.producer.transactional_id

    @property
    def size(self) -> int:
        """The number of partitions."""
        return len(self.partitions)

    def transaction(self) -> AddPartitionsToTxnTransaction:
        """Return the question as the request has it."""
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


class TransactionVerifier:
    """Verifies the appends of transactions with the transaction coordinators."""

    def __init__(self, peers: Peers, partitions: Partitions, config: VerifierConfig) -> None:
        self._peers = peers
        self._partitions = partitions
        self._config = config
        self._batches = Batches(
            peers,
            _request_of,
            _on_answer,
            timeout_ms=REQUEST_TIMEOUT_MS,
            max_entries=MAX_TRANSACTIONS_PER_REQUEST,
            max_size=PARTITIONS_OF_A_CLIENT,
        )

    def enable(self, is_enabled: bool) -> None:
        """Verify the appends of transactions from now on, or not."""
        self._config = self._config._replace(is_enabled=is_enabled)

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
            self._peers.loop.call_later(pause_ms / 1000, pause.done)
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
        coordinator = self._peers.coordinator_of(TRANSACTION_STATE, producer.transactional_id)
        if coordinator is None:
            return dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        answered = Later(holds=True)
        self._batches.put(coordinator, Verification(producer, mode, partitions, answered.done))
        codes: Codes = yield answered
        return codes


def _request_of(questions: list[Verification]) -> tuple[Message, int]:
    transactions = [question.transaction() for question in questions]
    return AddPartitionsToTxnRequest(transactions=transactions), ADD_PARTITIONS_VERSION


def _on_answer(questions: list[Verification], answer: Message | None) -> None:
    for question, codes in _codes_of(questions, answer):
        question.on_codes(codes)


def _codes_of(
    questions: list[Verification], answer: Message | None
) -> Iterable[tuple[Verification, Codes]]:
    """Answer each question; one without a result is answered like a broken connection."""
    refusal, results = ErrorCode.NETWORK_EXCEPTION, {}
    if isinstance(answer, AddPartitionsToTxnResponse):
        if answer.error_code:
            refusal = _hidden(ErrorCode(answer.error_code))
        results = {each.transactional_id: each for each in answer.results_by_transaction}
    for question in questions:
        result = results.get(question.key)
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
