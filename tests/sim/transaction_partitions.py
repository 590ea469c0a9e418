"""The partitions that transactions write to: a model of their leaders.

A leader verifies the batch that opens a transaction (KIP-890): with version 2 the verification adds
the partition to the transaction, with version 1 it asks whether the producer has added it. A marker
that arrives before the answer makes the verification invalid (the guard). A marker ends the
producer's open transaction, and its epoch is the lowest that the leader accepts from then on.
"""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from common.kafka.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tests.sim.transaction_network import OnAnswer

TOPIC = "t"
PARTITION_COUNT = 3
"""The count of partitions with records; the partition after them has the groups' offsets."""
BROKER = 1


@dataclass
class Batch:
    """A batch with one value of one transaction."""

    producer_id: int
    epoch: int
    transaction: Any
    value: int
    offset: int = -1
    """The offset to commit, in a batch for the partition of the groups' offsets."""


@dataclass
class ProducerState:
    """A leader's state of one producer id."""

    epoch: int = -1
    coordinator_epoch: int = -1
    open: list[Batch] = field(default_factory=list)
    guard: object = None


@dataclass
class DataPartition:
    """One partition and its leader."""

    number: int
    simulation: Any
    producers: dict[int, ProducerState] = field(default_factory=dict)
    values: set[int] = field(default_factory=set)
    is_down: bool = False

    def produce(self, batch: Batch, on_answer: OnAnswer) -> None:
        """Append a batch, after a verification if it opens a transaction."""
        state = self.producers.setdefault(batch.producer_id, ProducerState())
        if batch.epoch < state.epoch:
            on_answer(ErrorCode.INVALID_PRODUCER_EPOCH)
        elif batch.value in self.values:
            self._tell(on_answer)
        elif state.open and state.epoch == batch.epoch:
            self._append(state, batch, on_answer)
        else:
            self._verify(state, batch, on_answer)

    def _verify(self, state: ProducerState, batch: Batch, on_answer: OnAnswer) -> None:
        guard = state.guard = object()
        is_second = self.simulation.client_version == 2

        def verified(result: Any) -> None:
            code = _code_of(result)
            if self.producers.get(batch.producer_id) is not state:
                code = ErrorCode.NOT_COORDINATOR  # The leader has changed.
            if code == ErrorCode.NONE and (state.guard is not guard or batch.epoch < state.epoch):
                code = ErrorCode.CONCURRENT_TRANSACTIONS
            if code == ErrorCode.NONE:
                self._append(state, batch, on_answer)
            else:
                on_answer(code)

        request = AddPartitionsToTxnTransaction(
            transactional_id=batch.transaction.name,
            producer_id=batch.producer_id,
            producer_epoch=batch.epoch,
            verify_only=not is_second,
            topics=[AddPartitionsToTxnTopic(name=TOPIC, partitions=[self.number])],
        )
        self.simulation.ask("add_partitions", 5 if is_second else 4, request, verified)

    def _append(self, state: ProducerState, batch: Batch, on_answer: OnAnswer) -> None:
        state.epoch = batch.epoch
        if batch.value not in self.values:
            self.values.add(batch.value)
            state.open.append(batch)
            self.simulation.checks.on_append(batch)
        self._tell(on_answer)

    def _tell(self, on_answer: OnAnswer) -> None:
        """Answer that the batch is appended."""
        on_answer(ErrorCode.NONE)

    def write_marker(self, marker: Any) -> ErrorCode:
        """End the producer's open transaction."""
        if self.is_down:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        state = self.producers.setdefault(marker.producer_id, ProducerState())
        if marker.coordinator_epoch < state.coordinator_epoch:
            return ErrorCode.TRANSACTION_COORDINATOR_FENCED
        ends_its_own = marker.transaction_version >= 2 and marker.producer_epoch == state.epoch
        if marker.producer_epoch < state.epoch or (ends_its_own and state.open):
            return ErrorCode.INVALID_PRODUCER_EPOCH
        ended, state.open = state.open, []
        state.epoch, state.coordinator_epoch = marker.producer_epoch, marker.coordinator_epoch
        state.guard = None
        self.simulation.checks.on_marker(self.number, ended, marker.transaction_result)
        return ErrorCode.NONE


class Data:
    """All partitions of one broker; it also stands for the cluster of the marker sender."""

    def __init__(self, simulation: Any, offsets: DataPartition) -> None:
        self.simulation = simulation
        self.partitions = [
            *(DataPartition(number, simulation) for number in range(PARTITION_COUNT)),
            offsets,
        ]
        topic = SimpleNamespace(
            partitions={each.number: SimpleNamespace(leader=BROKER) for each in self.partitions}
        )
        broker = SimpleNamespace(is_fenced=False, endpoints={"INTERNAL": ("host", 1)})
        self.image = SimpleNamespace(
            topics=SimpleNamespace(by_name={TOPIC: topic}), brokers={BROKER: broker}
        )

    def connect(self, address: Any) -> Any:
        return SimpleNamespace(address=address, ask=self._ask, close=lambda: None)

    def _ask(self, request: Any, api_version: int, timeout_ms: int, on_answer: OnAnswer) -> None:
        def deliver(answer: OnAnswer) -> None:
            answer(self._write(request))

        self.simulation.network.call(deliver, on_answer)

    def _write(self, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        return WriteTxnMarkersResponse(
            markers=[
                WritableTxnMarkerResult(
                    producer_id=marker.producer_id,
                    topics=[
                        WritableTxnMarkerTopicResult(
                            name=topic.name,
                            partitions=[
                                WritableTxnMarkerPartitionResult(
                                    partition_index=index,
                                    error_code=self.partitions[index].write_marker(marker),
                                )
                                for index in topic.partition_indexes
                            ],
                        )
                        for topic in marker.topics
                    ],
                )
                for marker in request.markers
            ]
        )


def _code_of(result: Any) -> ErrorCode:
    if result is None:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if isinstance(result, ErrorCode):
        return result
    code = ErrorCode(result.topic_results[0].results_by_partition[0].partition_error_code)
    # The leader answers its producer with this code (KIP-890).
    return ErrorCode.INVALID_PRODUCER_EPOCH if code == ErrorCode.PRODUCER_FENCED else code
