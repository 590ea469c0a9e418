"""`python -m tests.chaos.transactions --minutes N --seed S`: transactions under faults.

*Copiers* are processes that read a topic, write each record to another, and commit their offsets in
the same transaction: each record must be copied exactly once. They are killed, and so are brokers,
which are stopped and frozen too. Some copiers have fixed partitions, others get theirs from their
group, which rebalances when a copier dies. *Transfers* are transactions that take an amount from
one account and add it to another; some are aborted on purpose. Readers read the accounts from the
start again and again (read_committed). After the faults both groups of copiers copy the rest.

`checker` checks without a cluster; `load` and `copier` are the load.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console

from millstream.testing import LocalCluster
from millstream.testing.chaos import schedule
from millstream.testing.chaos.breaking import Breaking
from millstream.testing.chaos.schedule import Fault, possible_faults, shuffled
from tests.chaos.checker import Anomaly
from tests.chaos.cluster_view import ClusterView
from tests.chaos.run import settings_of
from tests.chaos.transactions.checker import Accounts, Transfer, check_copy, check_transfers
from tests.chaos.transactions.load import (
    COMMON,
    Copiers,
    Readers,
    Transfers,
    accounts_of,
    read_values,
)

INPUT, ACCOUNTS = "copy-input", "accounts"
OUTPUTS = {"assigned-copiers": "copy-output", "subscribed-copiers": "copy-output-subscribed"}
TOPICS = (INPUT, *OUTPUTS.values(), ACCOUNTS)
PARTITIONS, REPLICAS = 4, 3
RECORDS = 20_000
COPIERS, TRANSFERS = 2, 2
WHOLE_SECONDS, STILL_SECONDS, LAST_READ_SECONDS = 120.0, 120.0, 120.0
LOOK_SECONDS = 0.2
KILL_COPIER_CHANCE = 0.06  # at each check: one about every three seconds
SHOWN = 10
# The coordinator looks for transactions beyond their timeout at this interval.
SETTINGS = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000"}


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
        self._views = [ClusterView(self._bootstrap, topic, PARTITIONS) for topic in TOPICS]
        self._folder = folder
        self._copiers = [
            Copiers(group, (INPUT, output), COPIERS, partition_count)
            for (group, output), partition_count in zip(
                OUTPUTS.items(), (PARTITIONS, 0), strict=True
            )
        ]
        self._breaking = Breaking(cluster, source, self._wait_until_whole)
        self._record_count = record_count
        self.problems: list[str] = []
        self.inputs: dict[int, list[int]] = {number: [] for number in range(PARTITIONS)}

    def prepare(self) -> None:
        """Create the topics and produce the input."""
        admin = AdminClient({"bootstrap.servers": self._bootstrap})
        made = admin.create_topics([NewTopic(topic, PARTITIONS, REPLICAS) for topic in TOPICS])
        for future in made.values():
            future.result(60)
        settings = {"bootstrap.servers": self._bootstrap, "enable.idempotence": True}
        producer = confluent_kafka.Producer(COMMON | settings)
        for value in range(self._record_count):
            partition = value % PARTITIONS
            producer.produce(INPUT, b"%d" % value, partition=partition)
            self.inputs[partition].append(value)
            producer.poll(0)
        left = producer.flush(60)
        assert not left, f"{left} records of the input were not written"

    def live(self, seconds: float, faults: list[Fault]) -> tuple[list[Transfer], list[Accounts]]:
        """Run the faults for `seconds`, then wait for all copies; return the load's records."""
        accounts = range(PARTITIONS)
        movers = [
            Transfers(self._bootstrap, ACCOUNTS, accounts, random.Random(self._source.random()))
            for _ in range(TRANSFERS)
        ]
        readers = Readers(self._bootstrap, ACCOUNTS, accounts)
        for thread in (*movers, readers):
            thread.start()
        try:
            end = time.monotonic() + seconds
            self._tend(2.0)
            for fault in shuffled(faults, self._source):
                if time.monotonic() > end:
                    break
                self._suffer(fault)
            self._wait_for_copies()
        finally:
            for thread in (*movers, readers):
                thread.stop()
            for copiers in self._copiers:
                copiers.close()
        return [one for mover in movers for one in mover.made], list(readers.reads)

    def _tend(self, seconds: float) -> None:
        """Keep copiers running for `seconds`, and kill some."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._look_after_copiers()
            time.sleep(LOOK_SECONDS)
            for copiers in self._copiers:
                if self._source.random() < KILL_COPIER_CHANCE:
                    copiers.kill(self._source)

    def _look_after_copiers(self) -> None:
        for copiers in self._copiers:
            copiers.look(self._bootstrap, self._folder)

    def _suffer(self, fault: Fault) -> None:
        victims = self._breaking.choose(fault, self._views[1].leaders())
        self._console.print(f"{time.strftime('%T')}  {fault}: {victims}")
        self._breaking.begin(fault, victims)
        self._tend(fault.hold_ms / 1000)
        for node_id in self._breaking.end(fault, victims):
            self.problems.append(f"node {node_id} died in: {fault} of {victims}")
        self._wait_until_whole()

    def _wait_until_whole(self) -> None:
        deadline = time.monotonic() + WHOLE_SECONDS
        while lacking := [key for view in self._views for key in view.lacking()]:
            if time.monotonic() > deadline:
                raise TimeoutError(f"not whole again: {lacking}")
            self._tend(LOOK_SECONDS)

    def _wait_for_copies(self) -> None:
        """Wait without faults until all records are copied, or one group has stopped copying.

        How long all takes depends on the machine.
        """
        counts = dict.fromkeys(OUTPUTS, 0)
        grown_at = dict.fromkeys(OUTPUTS, time.monotonic())
        while any(count < self._record_count for count in counts.values()):
            self._look_after_copiers()
            for group, output in OUTPUTS.items():
                count, now = self._copied(output), time.monotonic()
                if count > counts[group] or count >= self._record_count:
                    counts[group], grown_at[group] = count, now
                elif now - grown_at[group] > STILL_SECONDS:
                    self.problems.append(f"{group} stand still at {count} of {self._record_count}")
                    self._explain(group)
                    return
            time.sleep(1)

    def _copied(self, output: str) -> int:
        copied = read_values(self._bootstrap, output, range(PARTITIONS))
        return 0 if copied is None else sum(map(len, copied.values()))

    def _explain(self, group: str) -> None:
        """Ask the cluster what is wrong with a group, while it is."""
        command = [sys.executable, "-m", "millstream", "explain", "group", group]
        command += ["--bootstrap-server", self._bootstrap]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        (self._folder / f"{group}.explained").write_text(done.stdout + done.stderr)

    def tell(self, transfers: list[Transfer], read_count: int) -> None:
        """Print the counts of the load."""
        outcomes = Counter(transfer.outcome.value for transfer in transfers)
        self._console.print(
            f"copiers: {sum(one.kill_count for one in self._copiers)} killed, "
            f"{sum(one.end_count for one in self._copiers)} ended or "
            f"killed and started again, {sum(one.still_count for one in self._copiers)} of them "
            f"since they stood still; transfers: {dict(outcomes)}; reads: {read_count}"
        )


def judge(
    run: _Run, bootstrap: str, transfers: list[Transfer], reads: list[Accounts]
) -> list[Anomaly]:
    """Read all topics once more, and return all anomalies."""
    copies = [read_at_last(bootstrap, output) for output in OUTPUTS.values()]
    last = read_at_last(bootstrap, ACCOUNTS)
    if last is None or None in copies:
        run.problems.append("not everything could be read")
        return []
    found: list[Anomaly] = []
    for copied in copies:
        assert copied is not None
        outputs = {
            partition: [int(value) for _, value in records] for partition, records in copied.items()
        }
        found += check_copy(run.inputs, outputs)
    return found + list(check_transfers(transfers, [*reads, accounts_of(last)]))


def read_at_last(bootstrap: str, topic: str) -> dict[int, list[tuple[int, bytes]]] | None:
    """Read all records of a topic after the faults; return None after a timeout."""
    deadline = time.monotonic() + LAST_READ_SECONDS
    while time.monotonic() < deadline:
        found = read_values(bootstrap, topic, range(PARTITIONS))
        if found is not None:
            return found
    return None


def main(arguments: list[str]) -> int:
    """Run once; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.transactions", description=__doc__)
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--records", type=int, default=RECORDS, help="to copy, by each group")
    parsed = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="millstream-transactions-"))
    console = Console(highlight=False, width=110)
    console.print(
        f"seed {parsed.seed}, {parsed.records} records to copy, {parsed.minutes:g} minutes"
    )
    kinds = (schedule.KILL, schedule.TERMINATE, schedule.PAUSE, schedule.STORM, schedule.ROLLING)
    faults = possible_faults(REPLICAS, has_disk_faults=False, only=kinds)
    factors = {
        "transaction.state.log.replication.factor": str(REPLICAS),
        "transaction.state.log.min.isr": "2",
    }
    settings = settings_of(REPLICAS) | factors | SETTINGS
    with LocalCluster(has_links=False, **settings) as cluster:
        run = _Run(cluster, random.Random(parsed.seed), folder, console, parsed.records)
        try:
            run.prepare()
            transfers, reads = run.live(parsed.minutes * 60, faults)
            anomalies = judge(run, cluster.bootstrap_servers, transfers, reads)
        finally:
            for node_id in cluster.node_ids:
                (folder / f"node-{node_id}.log").write_text(cluster.log(node_id))
    run.tell(transfers, len(reads))
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
