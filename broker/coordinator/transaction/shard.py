"""One partition of `__transaction_state`: it dispatches every input to the file that handles it.

This is the shell's whole interface. Every request handler has one shape,

    shard.<handler>(token, context, request, now) -> Output

and each token gets exactly one reply: in the output of its own call, except for a producer's
AddPartitionsToTxn and AddOffsetsToTxn, which may be parked (`parking.py`). The shell splits
requests that name several transactional ids: the response in a reply is then the element for one of
them (`AddPartitionsToTxnResult`, DescribeTransactions' `TransactionState`).

The effects of an output are `SendMarkers`; the shell reports their progress to `markers_written`.
Any input can move the next deadline: call `next_deadline_ms()` after each.
"""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final, TypeVar

from broker.coordinator.output import Instant, Loading, Output, Reply, ShardContext, Token
from broker.coordinator.timers import DEADLINES_AT_ONCE
from broker.coordinator.transaction import (
    add_partitions,
    describe,
    end_txn,
    init_producer_id,
    sweep,
)
from broker.coordinator.transaction.config import TransactionConfig
from broker.coordinator.transaction.markers import SendMarkers
from broker.coordinator.transaction.parking import PARKED_MS, Parked, ParkedUntil
from broker.coordinator.transaction.records import decode_record
from broker.coordinator.transaction.step import ShardState, Step, Sweep
from broker.model import TopicPartition
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from common.kafka.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnTransaction
from common.kafka.protocol.messages.end_txn import EndTxnRequest
from common.kafka.protocol.messages.init_producer_id import InitProducerIdRequest

RequestT = TypeVar("RequestT")
Handler = Callable[[Step, Token, ShardContext, RequestT], None]
Refuse = Callable[[ShardContext, RequestT, ErrorCode], object]


class TransactionShard:
    """All transactional ids of one partition.

    Lifecycle: construct, `replay` every record of the partition, run `loaded(now)` to its end, then
    call handlers, `markers_written` and `on_deadline`; at the end `unload(code)`.
    """

    def __init__(
        self,
        config: TransactionConfig,
        *,
        take_producer_id: Callable[[], int | None],
        transaction_version: Callable[[], int],
    ) -> None:
        self.state: Final = ShardState(config, take_producer_id, transaction_version)

    # Loading and unloading.

    def replay(self, key: bytes, value: bytes | None) -> None:
        """Apply one record, in log order, while loading. Handlers apply their own records.

        Raise DecodeError for a damaged record; skip keys of an unknown version.
        """
        record = decode_record(key, value)
        if record is not None:
            self.state.put(*record)

    def loaded(self, now: Instant) -> Loading:
        """Continue the end of prepared transactions. It never yields: sweeps bound the work."""
        yield from ()
        step = Step(self.state, now)
        sweep.run(step, Sweep.END_PREPARED)
        if self.state.ongoing:
            step.schedule(Sweep.ABORT_TIMED_OUT)
        if self.state.transactions:
            step.schedule(Sweep.REMOVE_EXPIRED)
        return step.output

    def unload(self, code: ErrorCode) -> list[Reply]:
        """End the shard; return refusals of the parked requests (NOT_COORDINATOR if it moved)."""
        return [parked.refused(code) for parked in self.state.parking.take_all()]

    # Requests from producers, and from brokers for their producers.

    def init_producer_id(
        self, token: Token, context: ShardContext, request: InitProducerIdRequest, now: Instant
    ) -> Output:
        """InitProducerId, v0-5, with a transactional id."""
        refuse = init_producer_id.refuse_init
        handle = init_producer_id.init_producer_id
        return self._handle(handle, refuse, token, context, request, now)

    def add_partitions(
        self,
        token: Token,
        context: ShardContext,
        request: AddPartitionsToTxnTransaction,
        now: Instant,
    ) -> Output:
        """One transaction of an AddPartitionsToTxn, v0-5. The caller checks the partitions."""
        handle: Handler[AddPartitionsToTxnTransaction] = add_partitions.add_partitions
        if request.verify_only:
            handle = add_partitions.verify_partitions
        refuse = add_partitions.refuse_add
        if context.api_version >= add_partitions.FIRST_VERSION_OF_BROKERS:
            return self._handle(handle, refuse, token, context, request, now)
        return self._handle_or_park(Parked(token, context, request, handle, refuse), now)

    def add_offsets(
        self,
        token: Token,
        context: ShardContext,
        request: AddOffsetsToTxnRequest,
        offsets_partition: TopicPartition,
        now: Instant,
    ) -> Output:
        """AddOffsetsToTxn, v0-4; the caller computes the group's partition."""
        refuse = add_partitions.refuse_add_offsets

        def handle(
            step: Step, token: Token, context: ShardContext, request: AddOffsetsToTxnRequest
        ) -> None:
            add_partitions.add_offsets(step, token, request, offsets_partition)

        return self._handle_or_park(Parked(token, context, request, handle, refuse), now)

    def end_transaction(
        self, token: Token, context: ShardContext, request: EndTxnRequest, now: Instant
    ) -> Output:
        """EndTxn, v0-5."""
        refuse = end_txn.refuse_end
        return self._handle(end_txn.end_transaction, refuse, token, context, request, now)

    # Administration.

    def describe_transaction(
        self, token: Token, context: ShardContext, transactional_id: str, now: Instant
    ) -> Output:
        """One transactional id of a DescribeTransactions, v0."""
        handle, refuse = describe.describe_transaction, describe.refuse_describe
        return self._handle(handle, refuse, token, context, transactional_id, now)

    def transactions(self, token: Token, now: Instant) -> Output:
        """Answer with all transactions, as pairs of transactional id and `Transaction`."""
        step = Step(self.state, now)
        step.reply(token, list(self.state.transactions.items()))
        return step.output

    # Events other than requests.

    def markers_written(
        self, markers: SendMarkers, partitions: Iterable[TopicPartition], now: Instant
    ) -> Output:
        """Note partitions that have their markers or are deleted; after the last one, complete."""
        step = Step(self.state, now)
        if self.state.endings.note_written(markers, partitions):
            transactional_id = markers.transactional_id
            prepared = self.state.transactions[transactional_id]
            step.write(transactional_id, prepared.complete(now.timestamp_ms))
            self._end_wait(step, transactional_id)
        return step.output

    def forget(self, token: Token, now: Instant) -> Output:
        """Drop the pending reply of a request, if any, because its connection is closed."""
        self.state.parking.forget(token)
        return Output()

    def next_deadline_ms(self) -> int | None:
        """Return when `on_deadline` must be called (monotonic time); None without a deadline."""
        return self.state.timers.next_deadline_ms()

    def on_deadline(self, now: Instant) -> Output:
        """Run the due sweeps, and answer parked requests whose wait is over.

        It acts on at most DEADLINES_AT_ONCE deadlines; the others remain due.
        """
        step = Step(self.state, now)
        for due in list(islice(self.state.timers.pop_due(now.now_ms), DEADLINES_AT_ONCE)):
            if isinstance(due, Sweep):
                sweep.run(step, due)
            else:
                self._end_wait(step, due.transactional_id)
        return step.output

    def _handle_or_park(self, asked: Parked, now: Instant) -> Output:
        """Run a handler; park the request if the previous transaction is not complete."""
        step = Step(self.state, now)
        try:
            asked.handler(step, asked.token, asked.context, asked.request)
        except KafkaError as refusal:
            transactional_id = asked.request.transactional_id
            is_early = refusal.code is ErrorCode.CONCURRENT_TRANSACTIONS
            if is_early and self.state.parking.park(transactional_id, asked):
                deadline_ms = now.now_ms + PARKED_MS
                self.state.timers.schedule(ParkedUntil(transactional_id), deadline_ms)
            else:
                step.output.replies.append(asked.refused(refusal.code))
        return step.output

    def _end_wait(self, step: Step, transactional_id: str) -> None:
        """Handle an id's parked request: its transaction is complete, or its wait is over."""
        parked = self.state.parking.take(transactional_id)
        if parked is None:
            return
        self.state.timers.cancel(ParkedUntil(transactional_id))
        try:
            parked.handler(step, parked.token, parked.context, parked.request)
        except KafkaError as refusal:
            step.output.replies.append(parked.refused(refusal.code))

    def _handle(
        self,
        handler: Handler[RequestT],
        refuse: Refuse[RequestT],
        token: Token,
        context: ShardContext,
        request: RequestT,
        now: Instant,
    ) -> Output:
        """Run a handler; this is the one place where a refusal becomes an answer."""
        step = Step(self.state, now)
        try:
            handler(step, token, context, request)
        except KafkaError as refusal:
            code = refusal.code
        else:
            return step.output
        assert step.output == Output(), ("a refusal changes nothing", step.output)
        step.reply(token, refuse(context, request, code))
        return step.output
