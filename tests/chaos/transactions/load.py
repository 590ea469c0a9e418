"""The load: copiers that are killed and restarted, transfers, and readers of the accounts."""

import itertools
import random
import signal
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import confluent_kafka

from millstream.launch import program_environment
from millstream.processes.forked_process import ForkedProcess, ForkServer
from tests.chaos.history import Outcome
from tests.chaos.transactions.checker import Accounts, Half, Partition, Transfer

CALL_SECONDS = 30.0
READ_SECONDS = 60.0
ABORT_CHANCE = 0.2
COPIER = "tests.chaos.transactions.copier"
TRANSFER_PAUSE_SECONDS = 0.05
COPIER_PROCESSES = ForkServer(("confluent_kafka",))
COMMON = {"log_level": 0, "socket.timeout.ms": 4_000, "reconnect.backoff.max.ms": 500}


class Copiers:
    """The copier processes of one group: each is restarted after its end.

    `partition_count` partitions are divided among them; with none they subscribe in a group.
    """

    def __init__(
        self, group: str, topics: tuple[str, str], count: int, partition_count: int
    ) -> None:
        self._group, self._topics = group, topics
        self._count, self._partition_count = count, partition_count
        self._running: dict[int, ForkedProcess] = {}
        self.kill_count = self.end_count = self.still_count = 0

    def look(self, bootstrap: str, folder: Path) -> None:
        """Start the copiers that do not run."""
        for number in range(self._count):
            running = self._running.get(number)
            if running is not None and running.poll() is None:
                continue
            if running is not None:
                self.end_count += 1
                self.still_count += running.poll() == -signal.SIGALRM
            with (folder / f"{self._group}.log").open("a") as log:
                self._running[number] = COPIER_PROCESSES.start(
                    COPIER,
                    self._arguments(bootstrap, number),
                    program_environment(),
                    log,
                    is_bound=True,
                )

    def _arguments(self, bootstrap: str, number: int) -> list[str]:
        source, sink = self._topics
        mine = [str(one) for one in range(number, self._partition_count, self._count)]
        return [
            *["--bootstrap", bootstrap, "--input", source, "--output", sink],
            *["--group", self._group, "--number", str(number), "--partitions", *mine],
        ]

    def kill(self, source: random.Random) -> None:
        """Kill one copier at any point of its work."""
        self._running[source.randrange(self._count)].kill()
        self.kill_count += 1

    def close(self) -> None:
        """Kill all copiers."""
        for running in self._running.values():
            running.kill()
            running.wait()


class Transfers(threading.Thread):
    """One process that makes transfers, and aborts some."""

    numbers = itertools.count(1)

    def __init__(
        self, bootstrap: str, topic: str, accounts: Sequence[Partition], source: random.Random
    ) -> None:
        super().__init__(daemon=True)
        self._servers, self._topic, self._accounts = bootstrap, topic, accounts
        self._source = source
        self._transactional_id = f"transfers-{source.randrange(1 << 30)}"
        self._producer: confluent_kafka.Producer | None = None
        self._is_stopping = threading.Event()
        self.made: list[Transfer] = []

    def run(self) -> None:
        """Make transfers until `stop`."""
        while not self._is_stopping.wait(TRANSFER_PAUSE_SECONDS):
            try:
                self._transfer()
            except confluent_kafka.KafkaException:
                # The outcome is unknown; the next producer with the same id ends the transaction.
                self._producer = None

    def stop(self) -> None:
        """Stop, and wait for the outcome of the last transfer."""
        self._is_stopping.set()
        self.join()

    def _made_producer(self) -> confluent_kafka.Producer:
        if self._producer is None:
            settings = {
                "bootstrap.servers": self._servers,
                "transactional.id": self._transactional_id,
                "transaction.timeout.ms": 10_000,
                "linger.ms": 0,
            }
            self._producer = confluent_kafka.Producer(COMMON | settings)
            self._producer.init_transactions(CALL_SECONDS)
        return self._producer

    def _transfer(self) -> None:
        producer = self._made_producer()
        source, target = self._source.sample(list(self._accounts), 2)
        amount, number = self._source.randint(1, 100), next(self.numbers)
        is_taken_back = self._source.random() < ABORT_CHANCE
        outcome = Outcome.INFO
        try:
            producer.begin_transaction()
            for account, change in ((source, -amount), (target, amount)):
                producer.produce(self._topic, b"%d %d" % (number, change), partition=account)
            if is_taken_back:
                producer.flush(CALL_SECONDS)
                producer.abort_transaction(CALL_SECONDS)
                outcome = Outcome.FAIL
            else:
                producer.commit_transaction(CALL_SECONDS)
                outcome = Outcome.OK
        finally:
            self.made.append(Transfer(number, source, target, amount, outcome))


class Readers(threading.Thread):
    """Reads all accounts from their start, again and again."""

    def __init__(self, bootstrap: str, topic: str, accounts: Sequence[Partition]) -> None:
        super().__init__(daemon=True)
        self._servers, self._topic, self._accounts = bootstrap, topic, accounts
        self._is_stopping = threading.Event()
        self.reads: list[Accounts] = []

    def run(self) -> None:
        """Read until `stop`; a read that does not reach the end is discarded."""
        while not self._is_stopping.wait(1.0):
            try:
                found = read_values(self._servers, self._topic, self._accounts)
            except confluent_kafka.KafkaException:
                continue
            if found is not None:
                self.reads.append(accounts_of(found))

    def stop(self) -> None:
        """Stop after this read."""
        self._is_stopping.set()
        self.join()


def accounts_of(found: dict[Partition, list[tuple[int, bytes]]]) -> Accounts:
    """Decode the records of the accounts."""
    return {
        partition: [Half(offset, *map(int, value.split())) for offset, value in records]
        for partition, records in found.items()
    }


def read_values(
    bootstrap: str, topic: str, partitions: Sequence[Partition]
) -> dict[Partition, list[tuple[int, bytes]]] | None:
    """Read all committed records; return None after a timeout."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "nobody",
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
        # An answer without records is the end of a partition, so a long wait is useless.
        "fetch.wait.max.ms": 50,
        "fetch.queue.backoff.ms": 50,
    }
    consumer = confluent_kafka.Consumer(COMMON | settings)
    try:
        start = confluent_kafka.OFFSET_BEGINNING
        consumer.assign(
            [confluent_kafka.TopicPartition(topic, number, start) for number in partitions]
        )
        found: dict[Partition, list[tuple[int, bytes]]] = {number: [] for number in partitions}
        left, deadline = set(partitions), time.monotonic() + READ_SECONDS
        while left and time.monotonic() < deadline:
            for message in consumer.consume(500, 0.1):
                error = message.error()
                if error is None:
                    found[message.partition()].append((message.offset(), message.value()))
                elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                    left.discard(message.partition())
        return None if left else found
    finally:
        consumer.close()
