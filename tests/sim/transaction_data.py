"""The data side of transactions under faults: real logs and a real group shard, on three replicas.

There is one partition of records and one of `__consumer_offsets`, each on three replicas with real
logs on simulated disks. Producers write values and commit offsets in transactions of both versions;
the network delays, duplicates and loses their requests; leaders change, logs are truncated, brokers
restart; consumers read committed records from any replica. The transaction coordinator is a small
model that never fails: `transaction_cluster` simulates the real one.

Checked during a history: a `read_committed` consumer reads no record of an open or aborted
transaction, no record twice, and none beyond the last stable offset. The same holds for a consumer
that changes from replica to replica.
Checked at the end, after all faults are healed: all records of every committed transaction are
read, and the group's offset is that of the last committed transaction.
"""

from collections.abc import Callable
from random import Random

from broker.coordinator.output import EndOfTransaction
from broker.log.append import AppendOrigin
from broker.log.partition_log import PartitionLog
from broker.log.producers.verification import TransactionAppend
from broker.records.build import build_batch
from broker.records.control import EndMarker, build_end_marker
from common.kafka.errors import ErrorCode, KafkaError
from tests.lib.logs import NOW_MS
from tests.sim.transaction_group import GroupPartition
from tests.sim.transaction_people import (
    ABORT,
    COMMIT,
    ONGOING,
    PRODUCER_COUNT,
    Ask,
    Coordinator,
    Producer,
    Transaction,
)
from tests.sim.transaction_reader import Reader, read_committed
from tests.sim.transaction_replicas import REPLICA_COUNT, Replicated

DATA, OFFSETS = "data", "offsets"
STEP_COUNT = 1_000


class TransactionData:
    """One history from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.coordinator = Coordinator()
        data = Replicated(self.random)
        self.group = GroupPartition(self.random)
        self.partitions = {DATA: data, OFFSETS: self.group}
        self.producers = [
            Producer(number, self.random.choice([1, 2])) for number in range(PRODUCER_COUNT)
        ]
        self.under_way: list[Callable[[], None]] = []
        self.late: list[Callable[[], None]] = []
        self.transactions: list[Transaction] = []
        self.next_value = 0
        self.owners: dict[int, Transaction] = {}
        """By committed value, its transaction."""
        self.reader = Reader(0)
        self.commit_count = 0

    # --- producers ---

    def act(self, producer: Producer) -> None:
        """Let a producer without an outstanding request send its next one."""
        if not producer.is_answered:
            return
        if producer.asked is not None:
            self.send(producer, producer.asked)  # A retriable error.
        elif producer.must_abort:
            self.end(producer, ABORT)
        elif producer.values and self.random.random() < 0.4:
            self.end(producer, COMMIT if self.random.random() < 0.8 else ABORT)
        elif producer.values and producer.offset is None and self.random.random() < 0.5:
            self.begin(producer, OFFSETS)
        else:
            self.begin(producer, DATA)

    def begin(self, producer: Producer, partition: str) -> None:
        """Send a new value or a new offset."""
        if self.coordinator.epochs[producer.producer_id] != producer.epoch:
            self.fence(producer)
            return
        current = self.coordinator.current.get(producer.producer_id)
        if not producer.raises_epochs:
            if current is not None and current.state != ONGOING:
                return
            if current is None:
                current = Transaction(producer.producer_id, producer.epoch)
                self.coordinator.current[producer.producer_id] = current
            current.partitions.add(partition)
        self.next_value += 1
        producer.asked = Ask(
            producer.producer_id,
            producer.epoch,
            producer.sequence if partition == DATA else -1,
            self.next_value,
            partition,
            producer.raises_epochs,
        )
        self.send(producer, producer.asked)

    def send(self, producer: Producer, ask: Ask) -> None:
        producer.is_answered = False

        def on_code(code: ErrorCode) -> None:
            if producer.asked is ask:
                self.on_answer(producer, ask, code)

        self.under_way.append(lambda: self.receive(ask, on_code))
        if self.random.random() < 0.3:  # Duplicated; its answer is lost.
            self.late.append(lambda: self.receive(ask, lambda code: None))

    def on_answer(self, producer: Producer, ask: Ask, code: ErrorCode) -> None:
        producer.is_answered = True
        if code is ErrorCode.NONE:
            producer.asked = None
            if ask.partition == DATA:
                producer.sequence += 1
                producer.values.append(ask.value)
            else:
                producer.offset = ask.value
        elif code in {
            ErrorCode.INVALID_TXN_STATE,
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            ErrorCode.INVALID_PRODUCER_EPOCH,
        }:
            producer.asked, producer.must_abort = None, True

    def end(self, producer: Producer, outcome: str) -> None:
        current = self.coordinator.current.get(producer.producer_id)
        if self.coordinator.epochs[producer.producer_id] != producer.epoch:
            self.fence(producer)
            return
        if current is None or current.state != ONGOING:
            if producer.must_abort:
                self.fence(producer)
            return
        current.values, current.offset = list(producer.values), producer.offset
        self.decide(current, outcome, raises_epoch=producer.raises_epochs)
        if producer.must_abort and not producer.raises_epochs:
            # The refused value may be appended, so the producer continues in another epoch.
            self.coordinator.epochs[producer.producer_id] += 1
        producer.reset(self.coordinator.epochs[producer.producer_id])

    def fence(self, producer: Producer) -> None:
        """Initialize a producer: abort its open transaction, and raise its epoch."""
        current = self.coordinator.current.get(producer.producer_id)
        if current is not None and current.state == ONGOING:
            self.decide(current, ABORT, raises_epoch=True)
        elif current is not None:
            return  # CONCURRENT_TRANSACTIONS: the producer asks again.
        else:
            self.coordinator.epochs[producer.producer_id] += 1
        producer.reset(self.coordinator.epochs[producer.producer_id])

    def give_up(self, producer: Producer) -> None:
        """Let a producer time out and abort; its request may still arrive."""
        if not producer.is_answered:
            producer.asked, producer.is_answered, producer.must_abort = None, True, True

    def time_out(self, producer: Producer) -> None:
        """Let the coordinator abort a transaction; the producer does not know."""
        current = self.coordinator.current.get(producer.producer_id)
        if current is not None and current.state == ONGOING:
            self.decide(current, ABORT, raises_epoch=True)

    def decide(self, transaction: Transaction, outcome: str, *, raises_epoch: bool) -> None:
        transaction = self.coordinator.decide(
            transaction.producer_id, outcome, raises_epoch=raises_epoch
        )
        self.transactions.append(transaction)
        if outcome == COMMIT:
            self.commit_count += 1
            self.owners.update(dict.fromkeys(transaction.values, transaction))
        for partition in sorted(transaction.unmarked):
            self.send_marker(transaction, partition, raises_epoch=raises_epoch)

    # --- leaders ---

    def receive(self, ask: Ask, on_code: Callable[[ErrorCode], None]) -> None:
        """Handle a request at the leader; verify it if it opens a transaction."""
        log = self.partitions[ask.partition].log
        guard = log.producers.begin_verification(
            ask.producer_id,
            ask.epoch,
            ask.sequence,
            timestamp_ms=NOW_MS,
            raises_epochs=ask.adds,
        )
        if not guard:
            self.append(ask, log, 0, on_code)
            return

        def answered(code: ErrorCode) -> None:
            if code is ErrorCode.NONE:
                self.append(ask, log, guard, on_code)
            else:
                on_code(code)

        def asked() -> None:
            code = self.coordinator.verify(ask)
            is_late = self.random.random() < 0.1
            (self.late if is_late else self.under_way).append(lambda: answered(code))

        self.under_way.append(asked)

    def append(
        self, ask: Ask, log: PartitionLog, guard: int, on_code: Callable[[ErrorCode], None]
    ) -> None:
        partition = self.partitions[ask.partition]
        if partition.log is not log:
            on_code(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        try:
            if ask.partition == DATA:
                batch = build_batch(
                    [(None, str(ask.value).encode(), (), NOW_MS)],
                    producer_id=ask.producer_id,
                    producer_epoch=ask.epoch,
                    base_sequence=ask.sequence,
                    is_transactional=True,
                )
                end_offset = partition.append(batch, TransactionAppend(guard), AppendOrigin.CLIENT)
            else:
                end_offset = self.group.commit(ask.producer_id, ask.epoch, ask.value, guard)
        except KafkaError as error:
            on_code(error.code)
            return
        self.when_committed(partition, end_offset, on_code)

    def when_committed(
        self, partition: Replicated, end_offset: int, on_code: Callable[[ErrorCode], None]
    ) -> None:
        """Answer once every replica has the records, or refuse after a change of leader."""
        epoch = partition.epoch

        def look() -> None:
            if partition.epoch != epoch:
                on_code(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            elif partition.log.high_watermark >= end_offset:
                on_code(ErrorCode.NONE)
            else:
                self.under_way.append(look)

        self.under_way.append(look)

    # --- markers ---

    def send_marker(self, transaction: Transaction, name: str, *, raises_epoch: bool) -> None:
        version = 2 if raises_epoch else 0
        epoch = transaction.epoch

        def on_code(code: ErrorCode) -> None:
            if code is not ErrorCode.NONE:
                if name in transaction.unmarked:
                    self.under_way.append(deliver)
                return
            transaction.unmarked.discard(name)
            is_current = self.coordinator.current.get(transaction.producer_id) is transaction
            if is_current and not transaction.unmarked:
                del self.coordinator.current[transaction.producer_id]

        def write(answer: Callable[[ErrorCode], None]) -> None:
            partition = self.partitions[name]
            is_commit = transaction.state == COMMIT
            try:
                if name == DATA:
                    marker = EndMarker(is_commit, 0)
                    end_offset = partition.append(
                        build_end_marker(transaction.producer_id, epoch, marker, NOW_MS),
                        TransactionAppend(transaction_version=version),
                        AppendOrigin.COORDINATOR,
                    )
                else:
                    end = EndOfTransaction(transaction.producer_id, epoch, is_commit, 0, version)
                    end_offset = self.group.end(end)
            except KafkaError as error:
                answer(error.code)
                return
            self.when_committed(partition, end_offset, answer)

        def deliver() -> None:
            write(on_code)
            if raises_epoch and self.random.random() < 0.3:  # Duplicated.
                self.late.append(lambda: write(lambda code: None))

        self.under_way.append(deliver)

    # --- readers ---

    def check(self) -> None:
        """Check the records that consumers read."""
        found = read_committed(self.random.choice(self.partitions[DATA].logs), self.random)
        assert len(set(found)) == len(found), f"read twice: {found}"
        for value in found:
            assert value in self.owners, f"{value} is of no committed transaction"
        self.follow()

    def follow(self) -> None:
        """Let the long-lived consumer continue on any replica."""
        self.reader.read(self.random.choice(self.partitions[DATA].logs), self.random)
        for value in self.reader.found.values():
            assert int(value) in self.owners, f"{value!r} is of no committed transaction"

    def check_end(self) -> None:
        """Check atomicity, and that the last stable offsets reach the log end."""
        committed = {
            value for each in self.transactions if each.state == COMMIT for value in each.values
        }
        for log in self.partitions[DATA].logs:
            assert log.last_stable_offset == log.high_watermark == log.log_end_offset
            assert set(read_committed(log, self.random)) == committed
            whole = Reader(0)
            whole.read(log, self.random)
            self.reader.read(log, self.random)
            assert self.reader.found == whole.found, "whoever followed has read something else"
        offsets = self.group.log
        assert offsets.last_stable_offset == offsets.log_end_offset
        assert self.group.stable_offset() == self.group.last_in_the_log()
        loaded = self.group.loaded_shard()
        assert loaded.state.offsets == self.group.shard.state.offsets

    # --- the history ---

    def step(self) -> None:
        chance = self.random.random()
        producer = self.random.choice(self.producers)
        partition = self.random.choice(list(self.partitions.values()))
        if chance < 0.25:
            self.act(producer)
        elif chance < 0.60:
            self.deliver()
        elif chance < 0.95:
            partition.replicate(self.random.randrange(REPLICA_COUNT))
        elif chance < 0.97:
            self.deliver_late()
        elif chance < 0.98:
            self.elect(partition)
        elif chance < 0.99:
            self.restart(partition)
        elif chance < 0.992:
            self.time_out(producer)
        elif chance < 0.997:
            self.give_up(producer)

    def deliver(self) -> None:
        if self.under_way:
            is_overtaken = self.random.random() < 0.5
            place = self.random.randrange(len(self.under_way)) if is_overtaken else 0
            self.under_way.pop(place)()

    def deliver_late(self) -> None:
        """Deliver a delayed message: the answer of a verification, or a duplicate."""
        if self.late:
            self.late.pop(self.random.randrange(len(self.late)))()

    def elect(self, partition: Replicated) -> None:
        partition.elect(self.random.randrange(REPLICA_COUNT))

    def restart(self, partition: Replicated) -> None:
        replica = self.random.randrange(REPLICA_COUNT)
        partition.restart(replica)
        if replica == partition.leader:
            self.elect(partition)

    def run(self) -> None:
        for _ in range(STEP_COUNT):
            self.step()
            if self.random.random() < 0.1:
                self.check()
        self.heal()
        self.check()
        self.check_end()

    def heal(self) -> None:
        """Abort open transactions, deliver all messages, and let all replicas catch up."""
        while self.late:
            self.deliver_late()
        for _ in range(5_000):
            self.deliver_late()
            if not self.under_way and not self.late:
                # A delivered request may have opened another transaction.
                for producer in self.producers:
                    self.time_out(producer)
                if not self.coordinator.current:
                    break
            self.deliver()
            for partition in self.partitions.values():
                partition.replicate(self.random.randrange(REPLICA_COUNT))
        assert not self.under_way, "something is never answered"
        assert not self.coordinator.current, "a transaction never ends"
        for _ in range(100):
            for partition in self.partitions.values():
                for replica in range(REPLICA_COUNT):
                    partition.replicate(replica)
