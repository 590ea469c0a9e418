"""The handling of one input: the shard's state, the time, and the output under construction."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from broker.coordinator.output import (
    BATCH_OVERHEAD_BYTES,
    CoordinatorRecord,
    Instant,
    Output,
    Reply,
    Token,
    record_size_bytes,
)
from broker.coordinator.timers import Timers
from broker.coordinator.transaction.config import MAX_TRANSACTIONAL_ID_BYTES, TransactionConfig
from broker.coordinator.transaction.markers import Endings
from broker.coordinator.transaction.parking import ParkedUntil, Parking
from broker.coordinator.transaction.records import transaction_record
from broker.coordinator.transaction.state import PREPARED, TransactionState
from broker.coordinator.transaction.transaction import NO_PRODUCER_ID, Transaction
from common.kafka.errors import ErrorCode, KafkaError


class Sweep(Enum):
    """The recurring tasks of a shard, each with a deadline."""

    END_PREPARED = "continue prepared transactions after loading"
    ABORT_TIMED_OUT = "abort transactions that have timed out"
    REMOVE_EXPIRED = "remove expired transactional ids"


@dataclass(slots=True)
class ShardState:
    """The whole state of a shard, as tables:

    transactions    transactional id -> `Transaction`; persisted, one record each
    ongoing         the ids of transactions in ONGOING; an index of `transactions`
    prepared        the ids in PREPARE_COMMIT or PREPARE_ABORT; an index of `transactions`
    endings         transactional id -> the partitions without a marker; soft state
    timers          the deadlines of sweeps and of parked requests; soft state
    parking         transactional id -> a parked request; soft state
    unchecked       sweep -> the ids that it has not checked yet; soft state

    Invariants: each id in `prepared` has an ending, or END_PREPARED has not checked it yet; a sweep
    is scheduled while there may be something for it.
    """

    config: TransactionConfig
    take_producer_id: Callable[[], int | None]
    """Returns an unused producer id; None if the block of ids is empty."""
    transaction_version: Callable[[], int]
    """Returns the cluster's finalized `transaction.version`."""
    transactions: dict[str, Transaction] = field(default_factory=dict)
    ongoing: dict[str, None] = field(default_factory=dict)
    prepared: dict[str, None] = field(default_factory=dict)
    endings: Endings = field(default_factory=Endings)
    timers: Timers[Sweep | ParkedUntil] = field(default_factory=Timers)
    parking: Parking = field(default_factory=Parking)
    unchecked: dict[Sweep, list[str]] = field(default_factory=dict)

    def put(self, transactional_id: str, transaction: Transaction | None) -> None:
        """Apply one record; None removes the id."""
        self.ongoing.pop(transactional_id, None)
        self.prepared.pop(transactional_id, None)
        if transaction is None:
            self.transactions.pop(transactional_id, None)
            return
        self.transactions[transactional_id] = transaction
        if transaction.state is TransactionState.ONGOING:
            self.ongoing[transactional_id] = None
        elif transaction.state in PREPARED:
            self.prepared[transactional_id] = None


@dataclass(slots=True)
class Step:
    """The handling of one input, from the state before it to its output."""

    shard: ShardState
    now: Instant
    output: Output = field(default_factory=Output)

    def reply(self, token: Token, response: object) -> None:
        """Answer a request."""
        self.output.replies.append(Reply(token, response))

    def write(self, transactional_id: str, transaction: Transaction | None) -> None:
        """Append a transaction's record and apply it, and start the effects of its state.

        Raise UNKNOWN_SERVER_ERROR, as Kafka does, if the record does not fit into a batch.
        """
        record = transaction_record(transactional_id, transaction, self.shard.transaction_version())
        if not self._fits(record):
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR, "The transaction has too many partitions."
            )
        self.output.records.append(record)
        self.shard.put(transactional_id, transaction)
        if transaction is None:
            return
        if transaction.state in PREPARED:
            self.end(transactional_id, transaction)
        if transaction.state is TransactionState.ONGOING:
            self.schedule(Sweep.ABORT_TIMED_OUT)
        self.schedule(Sweep.REMOVE_EXPIRED)

    def end(self, transactional_id: str, transaction: Transaction) -> None:
        """Start the markers of a prepared transaction; complete one without partitions at once."""
        is_commit = transaction.state is TransactionState.PREPARE_COMMIT
        markers = self.shard.endings.begin(transactional_id, transaction, is_commit)
        if markers.partitions:
            self.output.effects.append(markers)
        elif self.shard.endings.note_written(markers, ()):
            self.write(transactional_id, transaction.complete(self.now.timestamp_ms))

    def schedule(self, sweep: Sweep, delay_ms: int | None = None) -> None:
        """Schedule a sweep, unless it is already scheduled."""
        if sweep in self.shard.timers:
            return
        if delay_ms is None:
            config = self.shard.config
            delay_ms = {
                Sweep.END_PREPARED: 0,
                Sweep.ABORT_TIMED_OUT: config.abort_check_interval_ms,
                Sweep.REMOVE_EXPIRED: config.expiration_check_interval_ms,
            }[sweep]
        self.shard.timers.schedule(sweep, self.now.now_ms + delay_ms)

    def _fits(self, record: CoordinatorRecord) -> bool:
        limit_bytes = self.shard.config.max_batch_bytes
        return BATCH_OVERHEAD_BYTES + record_size_bytes(record) <= limit_bytes

    def next_producer_id(self) -> int:
        """Return a new producer id; raise COORDINATOR_LOAD_IN_PROGRESS if the block is empty."""
        producer_id = self.shard.take_producer_id()
        if producer_id is None:
            raise KafkaError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "Producer ID block is full, waiting."
            )
        return producer_id

    def transaction_of(
        self, transactional_id: str, producer_id: int, producer_epoch: int | None = None
    ) -> Transaction:
        """Return the producer's transaction.

        Raise INVALID_REQUEST for an invalid id, INVALID_PRODUCER_ID_MAPPING for another producer
        id, PRODUCER_FENCED for another epoch than `producer_epoch`, if given, and
        CONCURRENT_TRANSACTIONS if the producer already uses its next id.
        """
        validate_transactional_id(transactional_id)
        transaction = self.shard.transactions.get(transactional_id)
        if transaction is None or transaction.producer_id != producer_id:
            if transaction is not None and transaction.next_producer_id == producer_id >= 0:
                # The producer got its next id with the outcome, before the markers are written.
                raise concurrent()
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING,
                "The producer attempted to use a producer id which is not currently assigned to "
                "its transactional id.",
            )
        if producer_epoch not in {None, transaction.producer_epoch}:
            raise fenced()
        return transaction

    def fence(self, transactional_id: str, transaction: Transaction) -> None:
        """Abort an ongoing transaction and fence its producer."""
        next_producer_id = NO_PRODUCER_ID
        if transaction.is_exhausted:
            # Without a new id the producer keeps its id, with the last epoch.
            taken = self.shard.take_producer_id()
            next_producer_id = NO_PRODUCER_ID if taken is None else taken
        self.write(
            transactional_id,
            transaction.fence(
                server_version=self.shard.transaction_version(),
                next_producer_id=next_producer_id,
                timestamp_ms=self.now.timestamp_ms,
            ),
        )


def validate_transactional_id(transactional_id: str) -> None:
    """Raise INVALID_REQUEST for an empty or too long transactional id."""
    is_too_long = len(transactional_id.encode()) > MAX_TRANSACTIONAL_ID_BYTES
    if not transactional_id or is_too_long:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The transactional id is empty, or too long.")


def fenced() -> KafkaError:
    """Return the error for a producer that has been replaced."""
    return KafkaError(
        ErrorCode.PRODUCER_FENCED, "There is a newer producer with the same transactionalId."
    )


def concurrent() -> KafkaError:
    """Return the error for a request that arrives before the last transaction is complete."""
    return KafkaError(
        ErrorCode.CONCURRENT_TRANSACTIONS,
        "The producer attempted to update a transaction while another concurrent operation on the "
        "same transaction was ongoing.",
    )
