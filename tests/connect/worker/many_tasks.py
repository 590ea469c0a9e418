"""Three workers, twenty connectors with sixty tasks, and one fault after another.

    .venv/bin/python -m tests.connect.worker.many_tasks --faults 9

A worker is killed with -9, frozen, or cut off from the brokers, in turn, until the others have what
it ran; then it comes back and takes its share again. Sixteen connectors are sources that write
exactly once, each task its own numbers and, with each, which start of the task wrote it; four are
sinks that note what they were given. Afterwards:

- no task is lost: all sixty run after each fault, and once more when the worker is back;
- none runs twice at once, for whoever reads what is committed: when a later start of a task has
  written, no earlier one ever does again, and its numbers have no gap and no double;
- a rebalance moves only what it must: what a fault takes from nobody stays where it was, in the
  very same start of the task, and no worker that lives gets tasks of another that does;
- offsets of sinks' groups never go back, and every record they cover was given to the sink.
"""

import argparse
import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from millstream.processes.cluster_layout import free_ports
from millstream.testing import LocalBroker
from millstream.testing.links import Links
from tests.lib.connect_worker import ConnectWorker, eventually

TOPIC = "numbers"
PARTITIONS = 3
SOURCES, SINKS, TASKS = 16, 4, 3
ALL_TASKS = (SOURCES + SINKS) * TASKS
WORKERS = 3
BROKER = 0
PATIENCE_SECONDS = 90
SESSION_MS = "4000"
"""Each fault is waited for so long; who starts twenty tasks at once is heard of meanwhile."""
LOOK_SECONDS = 0.25
"""Each look has a worker tell of all sixty tasks."""
PLUGIN = '''
import os
import time
from millstream.connect import *

class ManySource(SourceConnector):
    """Each task counts, and tells which start of it does."""

    def task_class(self):
        return ManySourceTask

    def task_configs(self, max_tasks):
        return [{**self.settings, "number": str(each)} for each in range(max_tasks)]

    def exactly_once_support(self, settings):
        return ExactlyOnceSupport.SUPPORTED

class ManySourceTask(SourceTask):
    def start(self, settings):
        self.name = f"{settings['name']}-{settings['number']}"
        self.begun = f"{os.getpid()}/{time.time_ns()}"
        kept = self.context.offset_storage_reader.offset({"of": self.name})
        self.next = kept["next"] if kept else 0
        self.due = time.monotonic()

    def poll(self):
        # Not all the time at once: who is to stop is waited for.
        time.sleep(0.25)
        if time.monotonic() < self.due:
            return None
        self.due = time.monotonic() + 1.25
        number, self.next = self.next, self.next + 1
        return [SourceRecord(
            topic="numbers", key=self.name, value=f"{number} {self.begun}",
            source_partition={"of": self.name}, source_offset={"next": number + 1},
        )]

class ManySink(SinkConnector):
    def task_class(self):
        return ManySinkTask

    def task_configs(self, max_tasks):
        return [self.settings] * max_tasks

class ManySinkTask(SinkTask):
    """Notes the offsets of what it is given."""

    def start(self, settings):
        self.file = open(f"{settings['folder']}/{settings['name']}.given", "a")

    def put(self, records):
        self.file.writelines(f"{each.kafka_partition} {each.kafka_offset}\\n" for each in records)

    def flush(self, offsets):
        self.file.flush()
'''

Owners = dict[str, str]
"""By task, the worker that runs it."""


class Numbers:
    """Reads what is committed, in a thread of its own."""

    def __init__(self, servers: str) -> None:
        self.problems: list[str] = []
        self.starts: dict[str, list[str]] = defaultdict(list)
        """By task, which of its starts have written, in that order."""
        self.count = 0
        self.places: dict[int, set[int]] = defaultdict(set)
        """By partition, the offsets of what was read."""
        self._next: Counter[str] = Counter()
        self._is_over = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "reads",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": "false",
                "isolation.level": "read_committed",
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition(TOPIC, each, 0) for each in range(PARTITIONS)])
        self._thread = ThreadPoolExecutor(1)
        self._running = self._thread.submit(self._run)

    def _run(self) -> None:
        while not self._is_over.is_set():
            for message in self._consumer.consume(500, 0.2):
                if message.error() is None:
                    self.places[message.partition()].add(message.offset())
                    self._read(message.key().decode(), *message.value().decode().split())
        self._consumer.close()

    def _read(self, task: str, number: str, begun: str) -> None:
        self.count += 1
        if int(number) != self._next[task]:
            self.problems.append(f"{task}: {number} where {self._next[task]} comes next")
        self._next[task] = int(number) + 1
        starts = self.starts[task]
        if begun in starts[:-1]:
            self.problems.append(f"{task}: {begun} wrote after a later start had")
        elif begun not in starts:
            starts.append(begun)

    def last_starts(self) -> dict[str, str]:
        return {task: starts[-1] for task, starts in list(self.starts.items())}

    def wait_for_each(self) -> None:
        """Wait until every task has written that runs now."""
        before = Counter(self._next)
        tasks = [f"source-{n}-{task}" for n in range(SOURCES) for task in range(TASKS)]
        eventually(lambda: all(self._next[each] > before[each] + 1 for each in tasks))

    def close(self) -> None:
        """Raises what its thread ended with."""
        self._is_over.set()
        self._thread.shutdown()
        self._running.result()


class Commits:
    """Looks at the sinks' groups all the while."""

    def __init__(self, servers: str) -> None:
        self.problems: list[str] = []
        self.offsets: dict[tuple[str, int], int] = {}
        self._admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
        self._is_over = threading.Event()
        self._thread = ThreadPoolExecutor(1)
        self._running = self._thread.submit(self._run)

    def _run(self) -> None:
        while not self._is_over.wait(0.3):
            self.look()

    def look(self) -> None:
        for number in range(SINKS):
            group = f"connect-sink-{number}"
            asked = self._admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
            for each in asked[group].result(30).topic_partitions:
                at = (f"sink-{number}", each.partition)
                before = self.offsets.get(at, -1)
                if each.offset < before:
                    self.problems.append(f"{at} went back from {before} to {each.offset}")
                self.offsets[at] = each.offset

    def close(self) -> None:
        """Look once more, and raise what its thread ended with."""
        self._is_over.set()
        self._thread.shutdown()
        self._running.result()
        self.look()


class Workers:
    """Three workers, each with a listener of the broker to itself, over a link that can be cut."""

    def __init__(self, folder: Path, ports: list[int], links: Links, isolation: str) -> None:
        self._links = links
        told = {
            "group.id": "many",
            "plugin.path": str(folder / "plugins"),
            "scheduled.rebalance.max.delay.ms": "500",
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": "500",
            "rebalance.timeout.ms": "20000",
            "task.shutdown.graceful.timeout.ms": "3000",
            "exactly.once.source.support": "enabled",
            "tasks.isolation": isolation,
        }
        for kind in ("config", "offset", "status"):
            told[f"{kind}.storage.topic"] = f"connect-{kind}"
            told[f"{kind}.storage.replication.factor"] = "1"
        self.all = [
            ConnectWorker(
                folder, {**told, "bootstrap.servers": f"127.0.0.1:{port}"}, name=f"worker{number}"
            )
            for number, port in enumerate(ports)
        ]

    def owners(self, asked: ConnectWorker) -> Owners:
        """Give who runs what, of all that runs."""
        try:
            answered = asked.call("GET", "/connectors?expand=status")
        except OSError:
            return {}
        if answered.status != 200:
            return {}
        return {
            f"{name}-{task['id']}": task["worker_id"]
            for name, each in answered.body.items()
            for task in each["status"]["tasks"]
            if task["state"] == "RUNNING"
        }

    def wait_for_all(self, on: list[ConnectWorker], *, evenly: bool) -> Owners:
        """Wait until all tasks run on these workers, and on each its share if that is wanted."""
        ids = {worker.worker_id for worker in on}

        def found() -> Owners | None:
            owners = self.owners(on[0])
            shares = Counter(owners.values())
            if len(owners) < ALL_TASKS or shares.keys() - ids:
                return None
            least, most = ALL_TASKS // len(on), -(-ALL_TASKS // len(on))
            if evenly and not all(least <= shares[each] <= most for each in ids):
                return None
            return owners

        try:
            owners: Owners = eventually(found, PATIENCE_SECONDS, LOOK_SECONDS)
        except AssertionError as error:
            shown = on[0].call("GET", "/connectors?expand=status").body
            raise AssertionError(f"{shares(self.owners(on[0]))} {str(shown)[:3000]}") from error
        return owners

    def begin(self, number: int, fault: str) -> None:
        victim = self.all[number]
        assert victim.process is not None
        if fault == "killed":
            victim.kill()
        elif fault == "frozen":
            os.kill(victim.process.pid, signal.SIGSTOP)
        else:
            self._links.cut(number + 1, BROKER)

    def end(self, number: int, fault: str) -> None:
        victim = self.all[number]
        if fault == "killed":
            victim.start()
        elif fault == "frozen":
            assert victim.process is not None
            os.kill(victim.process.pid, signal.SIGCONT)
        else:
            self._links.heal()


@contextmanager
def linked_broker() -> Iterator[tuple[LocalBroker, Links, list[int]]]:
    """Run a broker with a listener for us, and one behind a link for each worker; its ports."""
    links, ports, linked = Links(), free_ports(), []
    own = next(ports)
    listeners, advertised, protocols = (
        [f"PLAINTEXT://127.0.0.1:{own}"],
        [f"PLAINTEXT://127.0.0.1:{own}"],
        ["PLAINTEXT:PLAINTEXT"],
    )
    for number in range(WORKERS):
        port = next(ports)
        linked.append(links.add(number + 1, BROKER, ("127.0.0.1", port)))
        listeners.append(f"W{number}://127.0.0.1:{port}")
        advertised.append(f"W{number}://127.0.0.1:{linked[-1]}")
        protocols.append(f"W{number}:PLAINTEXT")
    settings = {
        "listeners": ",".join(listeners),
        "advertised.listeners": ",".join(advertised),
        "listener.security.protocol.map": ",".join(protocols),
        "group.min.session.timeout.ms": SESSION_MS,
    }
    try:
        with LocalBroker(**settings) as broker:
            yield broker, links, linked
    finally:
        links.close()


def put_connectors(worker: ConnectWorker, folder: Path) -> None:
    configs: dict[str, dict[str, str]] = {
        f"source-{number}": {"connector.class": "ManySource"} for number in range(SOURCES)
    }
    for number in range(SINKS):
        sink = {"connector.class": "ManySink", "topics": TOPIC, "folder": str(folder)}
        configs[f"sink-{number}"] = sink
    for name, config in configs.items():
        told = {**config, "tasks.max": str(TASKS)}
        path = f"/connectors/{name}/config"
        eventually(lambda path=path, told=told: worker.call("PUT", path, told).status < 300)


def walk(
    folder: Path, faults: int, say: Callable[[str], None], *, isolation: str = "thread"
) -> dict[str, Any]:
    """Run it all; `problems` of what is returned is to be empty."""
    (folder / "plugins").mkdir()
    (folder / "plugins" / "many_plugin.py").write_text(PLUGIN)
    problems: list[str] = []
    with linked_broker() as (broker, links, ports):
        servers = broker.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": servers})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(20)
        workers = Workers(folder, ports, links, isolation)
        with ExitStack() as ending:
            numbers = Numbers(servers)
            # Everything is ended, whatever goes wrong at the end of something else.
            ending.callback(numbers.close)
            commits = Commits(servers)
            ending.callback(commits.close)
            for worker in workers.all:
                ending.callback(worker.kill)
                worker.start()
            eventually(lambda: workers.all[0].call("GET", "/health/ready").status == 200)
            put_connectors(workers.all[0], folder)
            owners = workers.wait_for_all(workers.all, evenly=True)
            say(f"{ALL_TASKS} tasks run on {WORKERS} workers: {shares(owners)}")
            for number in range(faults):
                fault = ("killed", "frozen", "cut off")[number % 3]
                problems += one_fault(workers, number % WORKERS, fault, numbers, say)
            numbers.wait_for_each()
        log = "".join(worker.log() for worker in workers.all)
    problems += numbers.problems + commits.problems + not_given(folder, commits, numbers)
    return {
        "problems": problems,
        "numbers": numbers.count,
        "starts": sum(map(len, numbers.starts.values())),
        "shut_out": log.count("another producer of the same task has begun"),
        "log": log,
    }


def one_fault(
    workers: Workers, number: int, fault: str, numbers: Numbers, say: Callable[[str], None]
) -> list[str]:
    """Put one worker through one fault; tells what moved though it need not."""
    victim = workers.all[number]
    others = [each for each in workers.all if each is not victim]
    before, victims_id = workers.wait_for_all(workers.all, evenly=True), victim.worker_id
    numbers.wait_for_each()
    starts, began = numbers.last_starts(), time.monotonic()
    workers.begin(number, fault)
    during = workers.wait_for_all(others, evenly=False)
    taken_over = time.monotonic() - began
    kept = {task for task, owner in before.items() if owner != victims_id}
    problems = [f"{task} moved for nothing" for task in kept if during[task] != before[task]]
    again = {task for task in kept if numbers.last_starts().get(task) != starts.get(task)}
    problems += [f"{task} was started again for nothing" for task in again]
    workers.end(number, fault)
    eventually(lambda: victim.call("GET", "/health/ready").status == 200, PATIENCE_SECONDS)
    after = workers.wait_for_all(workers.all, evenly=True)
    moved = {task for task in after if after[task] != during[task]}
    problems += [
        f"{task} moved between workers that live"
        for task in moved
        if after[task] != victim.worker_id
    ]
    say(
        f"{victims_id} {fault}: {ALL_TASKS - len(kept)} tasks taken over after {taken_over:.1f} s, "
        f"{len(moved)} given back; {shares(after)}; {numbers.count} numbers read"
    )
    return problems


def shares(owners: Owners) -> str:
    return " ".join(str(count) for _, count in sorted(Counter(owners.values()).items()))


def not_given(folder: Path, commits: Commits, numbers: Numbers) -> list[str]:
    """Look for records that are behind a sink's committed offset and were never given to it."""
    problems = []
    for (sink, partition), end in commits.offsets.items():
        lines = (folder / f"{sink}.given").read_text().splitlines()
        given = {int(offset) for at, offset in map(str.split, lines) if at == str(partition)}
        due = {offset for offset in numbers.places[partition] if offset < end}
        if not due:
            problems.append(f"{sink} has committed nothing of partition {partition}")
        if due - given:
            problems.append(f"{sink} was not given {sorted(due - given)[:10]} of {partition}")
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=9)
    parser.add_argument("--isolation", default="thread")
    asked = parser.parse_args()

    def say(line: str) -> None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    with tempfile.TemporaryDirectory() as folder:
        result = walk(Path(folder), asked.faults, say, isolation=asked.isolation)
        Path(f"{tempfile.gettempdir()}/many-tasks.log").write_text(result.pop("log"))
    say(str(result))
    return int(bool(result["problems"]))


if __name__ == "__main__":
    sys.exit(main())
