"""A cluster of transactions from one seed: producers, coordinators that come and go, partitions.

Coordinators are replaced at any moment, also between PREPARE and the markers, and the one before
may not know for a while. Requests and answers are late, lost and repeated. Producers crash, are
replaced while they live, take too long. Then all heals, and everything must come to an end.

Each producer copies: it goes on where its group has committed, and commits how far it has come in
the transaction that has what it made of it. The group's shard is a real one, and has leaders of its
own that come and go.

Clients of version 1 have ordered connections: a request that arrives after its producer has gone on
ends the wrong transaction there (KIP-890 tells why, and is version 2).
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
    """One history."""

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
        """Have producers, in half of the histories, that have used up nearly all epochs."""
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

    # --- what the parts ask for ---

    def commit_delay_ms(self) -> int:
        return self.random.choice((0, 1, 5, 40, 400))

    def next_value(self) -> int:
        return next(self._values)

    def take_producer_id(self) -> int | None:
        is_empty = not self.is_ending and self.random.random() < 0.05
        return None if is_empty else next(self._producer_ids)

    def ask(self, method: str, version: int, request: Any, on_answer: OnAnswer) -> None:
        """Ask the coordinator, or one that was it."""
        asked = self.newest
        if self._older and self.random.random() < 0.2:
            asked = self._older[-1]
        self.network.call(lambda answer: asked.handle(method, version, request, answer), on_answer)

    def commit(self, end: int) -> None:
        """Commit the newest coordinator's log up to there."""
        for key, value in self.newest.log[self.committed_count : end]:
            self.checks.on_committed(key, value)
        self.committed_count = max(self.committed_count, end)

    # --- faults ---

    def elect(self) -> None:
        """Have a new coordinator, with all that is committed and perhaps some that is not."""
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
        """Start a producer, beside those of its name that live."""
        self.producers.append(Producer(self, name))

    # --- the history ---

    def run(self) -> Checks:
        """Run it to its end; raises at the first violation."""
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
