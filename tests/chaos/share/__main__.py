"""`python -m tests.chaos.share --minutes N --seed S`: a share group under faults.

Workers read a topic with a share group, accept most records and release some. They are killed, and
so are brokers, which are stopped too. After the faults the workers finish. Every record must be
accepted, by one worker; `books` checks what the workers have noted.
"""

import argparse
import itertools
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import confluent_kafka
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)
from rich.console import Console

from millstream.launch import program_environment
from millstream.processes.forked_process import ForkedProcess, ForkServer
from millstream.testing import LocalCluster
from millstream.testing.chaos import schedule
from millstream.testing.chaos.breaking import Breaking
from millstream.testing.chaos.schedule import Fault, possible_faults, shuffled
from tests.chaos.cluster_view import ClusterView
from tests.chaos.run import settings_of
from tests.chaos.share.books import Balance, Place, balance, check, read_book

TOPIC, GROUP = "jobs", "workers"
PARTITIONS, REPLICAS, WORKERS = 4, 3, 6
RECORDS = 20_000
RECORDS_PER_SECOND = 400
WHOLE_SECONDS, FINISH_SECONDS, CALM_SECONDS = 120.0, 180.0, 3.0
LOOK_SECONDS = 0.2
KILL_WORKER_CHANCE = 0.06
SHOWN = 10
LOCK_MS = 5_000
SETTINGS = {
    "share.coordinator.state.topic.replication.factor": str(REPLICAS),
    "share.coordinator.state.topic.min.isr": "2",
    "group.share.delivery.count.limit": "10",
    "group.share.record.lock.duration.ms": str(LOCK_MS),
    "group.share.min.record.lock.duration.ms": "1000",
    # The partitions of a worker that is killed go to the others soon.
    "group.share.session.timeout.ms": "6000",
    "group.share.min.session.timeout.ms": "6000",
    "group.share.heartbeat.interval.ms": "1000",
    "group.share.min.heartbeat.interval.ms": "1000",
}
PROCESSES = ForkServer(("confluent_kafka",))


class _Run:
    def __init__(
        self,
        cluster: LocalCluster,
        source: random.Random,
        folder: Path,
        console: Console,
        record_count: int,
    ) -> None:
        self._cluster, self._source, self._console = cluster, source, console
        self._bootstrap = cluster.bootstrap_servers
        self._folder, self._record_count = folder, record_count
        self._view = ClusterView(self._bootstrap, TOPIC, PARTITIONS)
        self._breaking = Breaking(cluster, source, self._wait_until_whole)
        self._workers: dict[int, ForkedProcess] = {}
        self._numbers = itertools.count()
        self._sent = 0
        self._began = 0.0
        settings = {"bootstrap.servers": self._bootstrap, "enable.idempotence": True}
        self._producer = confluent_kafka.Producer(settings | {"log_level": 0, "linger.ms": 5})
        self.produced: set[Place] = set()
        self.problems: list[str] = []
        self.kill_count = 0
        self.calm_second = 0.0

    def prepare(self) -> None:
        """Create the topic, and let the group begin with its first record."""
        admin = AdminClient({"bootstrap.servers": self._bootstrap})
        for made in admin.create_topics([NewTopic(TOPIC, PARTITIONS, REPLICAS)]).values():
            made.result(60)
        operation = AlterConfigOpType.SET
        first = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=operation)
        group = ConfigResource(ConfigResource.Type.GROUP, GROUP, incremental_configs=[first])
        for done in admin.incremental_alter_configs([group]).values():
            done.result(60)

    def live(self, seconds: float, faults: list[Fault]) -> None:
        """Run the faults for `seconds`, then wait until everything is accepted."""
        self._began = time.monotonic()
        try:
            self._tend(2.0)
            for fault in shuffled(faults, self._source):
                if time.monotonic() > self._began + seconds:
                    break
                self._suffer(fault)
            self.calm_second = time.monotonic() + CALM_SECONDS
            self._finish()
        finally:
            for worker in self._workers.values():
                worker.kill()
                worker.wait()

    def _tend(self, seconds: float, *, is_calm: bool = False) -> None:
        """Produce and keep workers running for `seconds`, and kill some."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._produce()
            self._look_after_workers()
            time.sleep(LOOK_SECONDS)
            if not is_calm and self._source.random() < KILL_WORKER_CHANCE:
                self._workers[self._source.randrange(WORKERS)].kill()
                self.kill_count += 1

    def _produce(self) -> None:
        due = int((time.monotonic() - self._began) * RECORDS_PER_SECOND)
        while self._sent < min(due, self._record_count):
            self._producer.produce(TOPIC, b"%d" % self._sent, callback=self._note)
            self._sent += 1
        self._producer.poll(0)

    def _note(self, error: object, message: confluent_kafka.Message) -> None:
        if error is not None:
            self.problems.append(f"not produced: {error}")
        else:
            self.produced.add((message.partition() or 0, message.offset() or 0))

    def _look_after_workers(self) -> None:
        for number in range(WORKERS):
            running = self._workers.get(number)
            if running is not None and running.poll() is None:
                continue
            book = self._folder / f"book-{next(self._numbers)}.jsonl"
            book.touch()
            with (self._folder / "workers.log").open("a") as log:
                self._workers[number] = PROCESSES.start(
                    "tests.chaos.share.worker",
                    [
                        *("--bootstrap", self._bootstrap, "--topic", TOPIC),
                        *("--group", GROUP, "--book", str(book)),
                    ],
                    program_environment(),
                    log,
                    is_bound=True,
                )

    def _suffer(self, fault: Fault) -> None:
        victims = self._breaking.choose(fault, self._view.leaders())
        self._console.print(f"{time.strftime('%T')}  {fault}: {victims}")
        self._breaking.begin(fault, victims)
        self._tend(fault.hold_ms / 1000)
        for node_id in self._breaking.end(fault, victims):
            self.problems.append(f"node {node_id} died in: {fault} of {victims}")
        self._wait_until_whole()

    def _wait_until_whole(self) -> None:
        deadline = time.monotonic() + WHOLE_SECONDS
        while lacking := self._view.lacking():
            if time.monotonic() > deadline:
                raise TimeoutError(f"not whole again: {lacking}")
            self._tend(LOOK_SECONDS)

    def _finish(self) -> None:
        """Produce the rest, and wait without faults until everything is accepted."""
        deadline = time.monotonic() + FINISH_SECONDS
        while time.monotonic() < deadline:
            self._tend(1.0, is_calm=True)
            if self._sent < self._record_count or len(self._producer):
                continue
            found = self.balance()
            left = self.produced - found.accepted.keys()
            is_quiet = time.monotonic() - found.last_second > 3 * LOCK_MS / 1000
            if not left or (left <= found.open and is_quiet):
                return
        self.problems.append(f"not everything was accepted in {FINISH_SECONDS:.0f} s")

    def books(self) -> list[Path]:
        """Return the files of all workers, also of those that were killed."""
        return sorted(self._folder.glob("book-*.jsonl"))

    def balance(self) -> Balance:
        """Return what all books add up to."""
        return balance(map(read_book, self.books()))


def main(arguments: list[str]) -> int:
    """Run once; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.share", description=__doc__)
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--records", type=int, default=RECORDS)
    parsed = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="millstream-share-"))
    console = Console(highlight=False, width=110)
    console.print(f"seed {parsed.seed}, {parsed.records} records, {parsed.minutes:g} minutes")
    kinds = (schedule.KILL, schedule.TERMINATE, schedule.STORM, schedule.ROLLING)
    faults = possible_faults(REPLICAS, has_disk_faults=False, only=kinds)
    with LocalCluster(has_links=False, **settings_of(REPLICAS), **SETTINGS) as cluster:
        run = _Run(cluster, random.Random(parsed.seed), folder, console, parsed.records)
        try:
            run.prepare()
            run.live(parsed.minutes * 60, faults)
        finally:
            for node_id in cluster.node_ids:
                (folder / f"node-{node_id}.log").write_text(cluster.log(node_id))
    anomalies = check(run.produced, [read_book(book) for book in run.books()], run.calm_second)
    found = run.balance()
    console.print(
        f"{len(run.produced)} produced, {len(found.accepted)} accepted, "
        f"{len(found.open - found.accepted.keys())} without an answer, "
        f"{found.deliveries} deliveries; {run.kill_count} workers killed"
    )
    for one in anomalies[:SHOWN]:
        console.print(f"[red]{one.rule}[/] {one.key} {one.value}: {one.detail}")
    for problem in run.problems:
        console.print(f"[red]problem[/] {problem}")
    counts = Counter(one.rule for one in anomalies)
    summary = ", ".join(f"{count} x {rule}" for rule, count in counts.items()) or "none"
    console.print(f"anomalies: {summary}; problems: {len(run.problems)}; logs in {folder}")
    return 1 if anomalies or run.problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
