"""A transactional producer of a simulation, which retries as Kafka's clients do.

A process is a generator that yields what it waits for: a number is a pause in milliseconds, a
callable is a request. The callable gets the function that it calls with the answer (None after a
timeout).
"""

from collections.abc import Callable, Generator
from typing import Any

from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from common.kafka.protocol.messages.end_txn import EndTxnRequest
from common.kafka.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.sim.transaction_checks import ClientTransaction
from tests.sim.transaction_network import OnAnswer
from tests.sim.transaction_partitions import PARTITION_COUNT, TOPIC, Batch

Wait = int | Callable[[OnAnswer], None]
Process = Generator[Wait, Any, Any]

AGAIN = {
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
}
TIMEOUT_MS = 3_000


class Fatal(Exception):  # noqa: N818 - the end of a producer, not an error of the simulation
    """The producer is replaced, or cannot tell the state of its transaction."""


class Producer:
    """One process with a transactional id; older processes with the same id may still live."""

    def __init__(self, simulation: Any, name: str) -> None:
        self.simulation = simulation
        self.random = simulation.scheduler.random
        self.name = name
        self.is_crashed = False
        self.identity = (-1, -1)
        self.position: int | None = None
        """The next position of the input; None if unknown (the group has it)."""
        self._process = self._live()
        self._step(None)

    def _step(self, answer: Any) -> None:
        if self.is_crashed:
            return
        try:
            wait = self._process.send(answer)
        except (StopIteration, Fatal):
            return
        if isinstance(wait, int):
            self.simulation.scheduler.after(wait, lambda: self._step(None))
        else:
            wait(self._step)

    def _live(self) -> Process:
        yield from self._init()
        while not self.simulation.is_ending:
            yield from self._transact()
            if self.random.random() < 0.1:
                yield from self._init()
            yield self.random.randint(0, 50)

    def _init(self) -> Process:
        while True:
            request = InitProducerIdRequest(
                transactional_id=self.name,
                transaction_timeout_ms=TIMEOUT_MS,
                producer_id=self.identity[0],
                producer_epoch=self.identity[1],
            )
            answer = yield from self._until_known("init_producer_id", 5, request)
            if answer is not None:
                self.identity = answer.producer_id, answer.producer_epoch
                self.simulation.checks.on_initialized(self.name, self.identity)
                return

    def _until_known(self, method: str, version: int, request: Any) -> Process:
        """Send a request until it succeeds; raise Fatal on any other error."""
        while True:
            answer = yield lambda on_answer: self.simulation.ask(
                method, version, request, on_answer
            )
            code = code_of(answer)
            if code == ErrorCode.NONE:
                return answer
            if code not in AGAIN:
                raise Fatal(code)
            yield self.random.randint(5, 50)

    def _find_position(self) -> Process:
        """Fetch the group's offset, the next position of the input."""
        offsets = self.simulation.offsets

        def deliver(on_answer: OnAnswer) -> None:
            if not offsets.is_down:
                offsets.fetch(self.name, on_answer)

        while self.position is None:
            answer = yield lambda on_answer: self.simulation.network.call(deliver, on_answer)
            if isinstance(answer, list):
                self.position = answer[0]
            else:
                yield self.random.randint(5, 50)

    def _transact(self) -> Process:
        yield from self._find_position()
        transaction = ClientTransaction(self.name)
        self.simulation.checks.transactions.append(transaction)
        is_broken = False
        assert self.position is not None
        start, self.position = self.position, None
        end = start
        for _ in range(self.random.randint(0, 3)):
            number = self.random.randrange(PARTITION_COUNT)
            is_broken = not (yield from self._produce(transaction, number)) or is_broken
            end += 1
        if end > start:
            produced = yield from self._produce(transaction, PARTITION_COUNT, offset=end)
            is_broken = is_broken or not produced
        transaction.copied = range(start, end)
        if self.random.random() < 0.1:
            yield 2 * TIMEOUT_MS + 2_000
        if not transaction.values and self.simulation.client_version == 1:
            return
        wanted = not is_broken and bool(transaction.values) and self.random.random() < 0.7
        transaction.wanted = wanted
        request = EndTxnRequest(
            transactional_id=self.name,
            producer_id=self.identity[0],
            producer_epoch=self.identity[1],
            committed=wanted,
        )
        is_second = self.simulation.client_version == 2
        answer = yield from self._until_known("end_transaction", 5 if is_second else 4, request)
        self.simulation.checks.on_told(transaction, wanted)
        self.position = end if wanted else None
        if is_second:
            self.identity = answer.producer_id, answer.producer_epoch

    def _produce(self, transaction: ClientTransaction, number: int, offset: int = -1) -> Process:
        """Send a value or an offset; return False if the transaction must be aborted."""
        if self.simulation.client_version == 1:
            yield from self._add(number)
        value = self.simulation.next_value()
        batch = Batch(*self.identity, transaction, value, offset)
        partition = self.simulation.data.partitions[number]

        def deliver(on_answer: OnAnswer) -> None:
            if not partition.is_down:
                partition.produce(batch, on_answer)

        for _ in range(40):
            code = yield lambda on_answer: self.simulation.network.call(deliver, on_answer)
            if code == ErrorCode.NONE:
                transaction.values.append(value)
                return True
            if code == ErrorCode.INVALID_PRODUCER_EPOCH or code == ErrorCode.TRANSACTION_ABORTABLE:
                return False
            if code is not None and code not in AGAIN:
                raise Fatal(code)
            yield self.random.randint(5, 50)
        return False

    def _add(self, number: int) -> Process:
        request = AddPartitionsToTxnTransaction(
            transactional_id=self.name,
            producer_id=self.identity[0],
            producer_epoch=self.identity[1],
            topics=[AddPartitionsToTxnTopic(name=TOPIC, partitions=[number])],
        )
        yield from self._until_known("add_partitions", 3, request)


def code_of(answer: Any) -> ErrorCode:
    """Return the error code of any answer, COORDINATOR_NOT_AVAILABLE for None."""
    if answer is None:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if isinstance(answer, ErrorCode):
        return answer
    if hasattr(answer, "topic_results"):
        return ErrorCode(answer.topic_results[0].results_by_partition[0].partition_error_code)
    return ErrorCode(answer.error_code)
