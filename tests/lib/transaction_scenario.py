"""A transaction shard for tests: it gets requests, and returns answers and markers.

All records are committed at once. They are stored, so that another shard can load them.
"""

from dataclasses import replace
from typing import Any

from broker.coordinator.output import CoordinatorRecord, Instant, Output, ShardContext
from broker.coordinator.transaction.config import TransactionConfig
from broker.coordinator.transaction.markers import SendMarkers
from broker.coordinator.transaction.shard import TransactionShard
from broker.coordinator.transaction.transaction import NO_PRODUCER_EPOCH, Transaction
from broker.model import TopicPartition
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from common.kafka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from common.kafka.protocol.messages.end_txn import EndTxnRequest
from common.kafka.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.lib.logs import last_of

ID = "copier"
T0, T1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
OFFSETS = TopicPartition("__consumer_offsets", 7)
V1, V2 = 4, 5
"""The versions of EndTxn of clients with both transaction versions."""


class Scenario:
    """One shard, its log and its markers."""

    def __init__(self, *, transaction_version: int = 2, **settings: Any) -> None:
        self.config = TransactionConfig(**settings)
        self.transaction_version = transaction_version
        self.producer_ids = iter(range(1000, 1_000_000))
        self.log: list[CoordinatorRecord] = []
        self.markers: list[SendMarkers] = []
        self.now_ms = 0
        self.answer: Any = None
        self.reload()

    @property
    def now(self) -> Instant:
        return Instant(self.now_ms, 1_700_000_000_000 + self.now_ms)

    def new_shard(self) -> TransactionShard:
        return TransactionShard(
            self.config,
            take_producer_id=lambda: next(self.producer_ids, None),
            transaction_version=lambda: self.transaction_version,
        )

    def reload(self) -> None:
        """Load the records into a new shard, like another broker; its markers begin again."""
        self.markers.clear()
        self.shard = self.new_shard()
        for key, value in self.log:
            self.shard.replay(key, value)
        self.take(last_of(self.shard.loaded(self.now)))

    def take(self, output: Output) -> Any:
        """Commit an output; return its answer, if it has one."""
        self.log += output.records
        self.markers += output.effects
        self.answer = output.replies[0].response if output.replies else None
        return self.answer

    def advance(self, milliseconds: int) -> None:
        """Advance the time, and run everything that is due."""
        end_ms = self.now_ms + milliseconds
        while (due_ms := self.shard.next_deadline_ms()) is not None and due_ms <= end_ms:
            self.now_ms = max(self.now_ms, due_ms)
            self.take(self.shard.on_deadline(self.now))
        self.now_ms = end_ms

    def transaction(self, transactional_id: str = ID) -> Transaction:
        return self.shard.state.transactions[transactional_id]

    def force(self, **changes: Any) -> None:
        """Set a transaction to a state that takes long to reach."""
        self.shard.state.put(ID, replace(self.transaction(), **changes))

    # --- requests ---

    def init(
        self,
        producer: tuple[int, int] = (-1, NO_PRODUCER_EPOCH),
        *,
        name: str = ID,
        timeout_ms: int = 60_000,
        version: int = 5,
    ) -> Any:
        request = InitProducerIdRequest(
            transactional_id=name,
            transaction_timeout_ms=timeout_ms,
            producer_id=producer[0],
            producer_epoch=producer[1],
        )
        context = ShardContext(version)
        return self.take(self.shard.init_producer_id("init", context, request, self.now))

    def begin(self, **more: Any) -> tuple[int, int]:
        """Initialize a producer; return its id and epoch."""
        answer = self.init(**more)
        assert answer.error_code == ErrorCode.NONE, answer
        return answer.producer_id, answer.producer_epoch

    def add(
        self,
        producer: tuple[int, int],
        *partitions: TopicPartition,
        name: str = ID,
        version: int = 3,
        verify_only: bool = False,
    ) -> set[int]:
        """Add partitions; return the codes of the answer."""
        request = AddPartitionsToTxnTransaction(
            transactional_id=name,
            producer_id=producer[0],
            producer_epoch=producer[1],
            verify_only=verify_only,
            topics=[
                AddPartitionsToTxnTopic(name=topic, partitions=[index])
                for topic, index in partitions or (T0,)
            ],
        )
        context = ShardContext(version)
        answer = self.take(self.shard.add_partitions("add", context, request, self.now))
        assert answer.transactional_id == name
        return {
            partition.partition_error_code
            for topic in answer.topic_results
            for partition in topic.results_by_partition
        }

    def add_offsets(self, producer: tuple[int, int], *, version: int = 4) -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id=ID, producer_id=producer[0], producer_epoch=producer[1], group_id="g"
        )
        context = ShardContext(version)
        output = self.shard.add_offsets("offsets", context, request, OFFSETS, self.now)
        return int(self.take(output).error_code)

    def end(
        self,
        producer: tuple[int, int],
        *,
        commit: bool = True,
        version: int = V2,
        name: str = ID,
    ) -> int:
        """End the transaction; return the answer's code."""
        request = EndTxnRequest(
            transactional_id=name,
            producer_id=producer[0],
            producer_epoch=producer[1],
            committed=commit,
        )
        context = ShardContext(version)
        answer = self.take(self.shard.end_transaction("end", context, request, self.now))
        return int(answer.error_code)

    def ended(self, producer: tuple[int, int], **more: Any) -> tuple[int, int]:
        """End the transaction; return the new producer id and epoch."""
        code = self.end(producer, **more)
        assert code == ErrorCode.NONE, ErrorCode(code)
        return self.answer.producer_id, self.answer.producer_epoch

    def write_markers(self) -> None:
        """Write all requested markers."""
        markers, self.markers = self.markers, []
        for each in markers:
            self.take(self.shard.markers_written(each, each.partitions, self.now))

    def describe(self, name: str = ID) -> Any:
        context = ShardContext(0)
        output = self.shard.describe_transaction("describe", context, name, self.now)
        return self.take(output)
