"""A seeded history of transactions: producers, changing coordinators, and the partitions.

A coordinator is replaced at any time, also between PREPARE and the markers, and may learn of its
successor late. Requests and answers are delayed, lost and duplicated. Producers crash, are replaced
while they live, and exceed the transaction timeout. At the end all faults are healed, and all
transactions must complete.

Each producer copies an input: it continues at its group's committed offset, and commits the new
offset in the transaction with the copied values. The group's shard is a real one, with its own
changes of leader.

Clients of version 1 use ordered connections: without them a request that arrives after its producer
has started the next transaction would end that one (KIP-890; its version 2 prevents this).
"""

from itertools import count
from typing import Any

from broker.coordinator.output import CoordinatorRecord
from broker.coordinator.transaction.config import TransactionConfig
from broker.coordinator.transaction.records import transaction_record
from broker.coordinator.transaction.transaction import MAX_EPOCH, Transaction
from tests.sim.scheduler import Scheduler
from tests.sim.transaction_checks import Checks
from tests.sim.transaction_coordinator import WALL_MS, Coordinator
from tests.sim.transaction_network import Network, OnAnswer
from tests.sim.transaction_offsets import OffsetsPartition
from tests.sim.transaction_partitions import PARTITION_COUNT, Data
from tests.sim.transaction_producer import TIMEOUT_MS, Producer

NAMES = ("a", "b")
FAULTS_END_MS = 30_000
QUIET_MS = 40_000


class TransactionSimulation:
    """One history from one seed."""

    def __init__(self, seed: int) -> None:
        self.scheduler = Scheduler(seed)
        self.random = self.scheduler.random
        self.client_version = self.random.choice((1, 2, 2))
        self.server_version = 2 if self.client_version == 2 else self.random.choice((0, 2))
        self.network = Network(
            self.scheduler,
            loss=self.random.choice((0.0, 0.02, 0.1)),
            is_ordered=self.client_version == 1,
        )
        self.config = TransactionConfig(
            abort_check_interval_ms=1_000,
            expiration_ms=self.random.choice((6_000, 3_600_000)),
            expiration_check_interval_ms=5_000,
        )
        self.checks = Checks()
        self.offsets = OffsetsPartition(PARTITION_COUNT, self)
        self.data = Data(self, self.offsets)
        self.producers: list[Producer] = []
        self.committed_count = 0
        self.is_ending = False
        self._values = count()
        self._producer_ids = count(1_000)
        self._epoch = 0
        self.newest = Coordinator(self, 0, self._first_records())
        self.committed_count = len(self.newest.log)
        self._older: list[Coordinator] = []

    def _first_records(self) -> list[CoordinatorRecord]:
        """Return records of producers with epochs near the maximum, in half of the histories."""
        if self.random.random() < 0.5:
            return []
        records = []
        for name in NAMES:
            transaction = Transaction(
                producer_id=next(self._producer_ids),
                producer_epoch=MAX_EPOCH - self.random.randint(1, 12),
                timeout_ms=TIMEOUT_MS,
                last_update_timestamp_ms=WALL_MS,
            )
            record = transaction_record(name, transaction, self.server_version)
            self.checks.by_id[name] = transaction
            self.checks.producer_ids[transaction.producer_id] = name
            records.append(record)
        return records

    # --- called by the parts ---

    def commit_delay_ms(self) -> int:
        return self.random.choice((0, 1, 5, 40, 400))

    def next_value(self) -> int:
        return next(self._values)

    def take_producer_id(self) -> int | None:
        is_empty = not self.is_ending and self.random.random() < 0.05
        return None if is_empty else next(self._producer_ids)

    def ask(self, method: str, version: int, request: Any, on_answer: OnAnswer) -> None:
        """Send a request to the coordinator, or to a former one."""
        asked = self.newest
        if self._older and self.random.random() < 0.2:
            asked = self._older[-1]
        self.network.call(lambda answer: asked.handle(method, version, request, answer), on_answer)

    def commit(self, end: int) -> None:
        """Commit the newest coordinator's log up to `end`."""
        for key, value in self.newest.log[self.committed_count : end]:
            self.checks.on_committed(key, value)
        self.committed_count = max(self.committed_count, end)

    # --- faults ---

    def elect(self) -> None:
        """Replace the coordinator; its successor has all committed records or more."""
        old = self.newest
        kept = self.random.choice((self.committed_count, len(old.log)))
        self._epoch += 1
        self.newest = Coordinator(self, self._epoch, old.log[:kept])
        self.checks.count("elected")
        if self.random.random() < 0.5:
            old.die()
            return
        self._older.append(old)
        self.scheduler.after(self.random.randint(0, 2_000), lambda: self._find_out(old))

    def _find_out(self, old: Coordinator) -> None:
        self._older.remove(old)
        old.die()

    def _fault(self) -> None:
        if self.scheduler.now_ms >= FAULTS_END_MS:
            return
        choice = self.random.random()
        if choice < 0.35:
            self.elect()
        elif choice < 0.5:
            self.offsets.elect()
        elif choice < 0.7:
            partition = self.random.choice(self.data.partitions)
            partition.is_down = not partition.is_down
        else:
            name = self.random.choice(NAMES)
            if self.random.random() < 0.6:
                for producer in self.producers:
                    producer.is_crashed |= producer.name == name
            self.start(name)
        self.scheduler.after(self.random.randint(50, 2_500), self._fault)

    def start(self, name: str) -> None:
        """Start a producer beside the living ones of its transactional id."""
        self.producers.append(Producer(self, name))

    # --- the history ---

    def run(self) -> Checks:
        """Run the history to its end; raise at the first violation."""
        for name in NAMES:
            self.start(name)
        self.scheduler.after(self.random.randint(50, 1_000), self._fault)
        self.scheduler.run_until(FAULTS_END_MS)
        self.network.loss = 0.0
        for partition in self.data.partitions:
            partition.is_down = False
        self.is_ending = True
        self.scheduler.run_until(FAULTS_END_MS + QUIET_MS)
        self.elect()
        self.offsets.elect()
        self.scheduler.run_until(FAULTS_END_MS + 2 * QUIET_MS)
        self.checks.at_the_end(self)
        return self.checks
