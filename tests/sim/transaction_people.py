"""The producers of `transaction_data`, and its transaction coordinator, which never fails."""

from dataclasses import dataclass, field
from typing import NamedTuple

from common.kafka.errors import ErrorCode

PRODUCER_COUNT = 3
ONGOING, COMMIT, ABORT = "ongoing", "commit", "abort"


class Ask(NamedTuple):
    """A producer's request to a leader: to append one value, or to commit one offset."""

    producer_id: int
    epoch: int
    sequence: int
    value: int
    partition: str
    adds: bool


@dataclass
class Transaction:
    """One transaction in the state of its coordinator and its producer."""

    producer_id: int
    epoch: int
    state: str = ONGOING
    partitions: set[str] = field(default_factory=set)
    unmarked: set[str] = field(default_factory=set)
    values: list[int] = field(default_factory=list)
    offset: int | None = None


class Coordinator:
    """A coordinator whose decisions are committed at once."""

    def __init__(self) -> None:
        self.epochs = dict.fromkeys(range(PRODUCER_COUNT), 0)
        self.current: dict[int, Transaction] = {}

    def verify(self, ask: Ask) -> ErrorCode:
        """Return the error code of an AddPartitionsToTxn."""
        if ask.epoch != self.epochs[ask.producer_id]:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        current = self.current.get(ask.producer_id)
        if current is not None and current.state != ONGOING:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if ask.adds:
            if current is None:
                current = self.current[ask.producer_id] = Transaction(ask.producer_id, ask.epoch)
            current.partitions.add(ask.partition)
            return ErrorCode.NONE
        is_there = current is not None and ask.partition in current.partitions
        return ErrorCode.NONE if is_there else ErrorCode.INVALID_TXN_STATE

    def decide(self, producer_id: int, outcome: str, *, raises_epoch: bool) -> Transaction:
        """End the ongoing transaction; `raises_epoch` gives its markers a new epoch."""
        transaction = self.current[producer_id]
        transaction.state = outcome
        transaction.unmarked = set(transaction.partitions)
        if raises_epoch:
            self.epochs[producer_id] += 1
            transaction.epoch = self.epochs[producer_id]
        if not transaction.unmarked:
            del self.current[producer_id]
        return transaction


class Producer:
    """One transactional producer, with its outstanding request and its open transaction."""

    def __init__(self, producer_id: int, version: int) -> None:
        self.producer_id = producer_id
        self.raises_epochs = version == 2
        self.epoch = 0
        self.sequence = 0
        self.values: list[int] = []
        self.offset: int | None = None
        self.asked: Ask | None = None
        self.is_answered = True
        self.must_abort = False

    def reset(self, epoch: int) -> None:
        """Forget the ended transaction; a new epoch begins with sequence 0."""
        if epoch != self.epoch:
            self.epoch, self.sequence = epoch, 0
        self.values, self.offset, self.asked = [], None, None
        self.is_answered, self.must_abort = True, False
