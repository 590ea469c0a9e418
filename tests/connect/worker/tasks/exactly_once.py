"""A source that writes exactly once, on three workers that are killed and frozen in turn.

    .venv/bin/python -m tests.connect.worker.tasks.exactly_once --records 100000 --faults 10

Every other fault is a kill -9; between them a worker stands still for longer than its session, is
replaced, and lives on with what it had. Meanwhile the number of tasks changes, so that partitions
of the source go from one task to another. In the end every number of every partition is there once
for whoever reads what is committed.
"""

import argparse
import os
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer

from millstream.testing import LocalBroker
from tests.lib.connect_worker import ConnectWorker, eventually

NAME = "numbers"
TOPIC = "numbers"
PARTITIONS = 6
BROKER = {"group.min.session.timeout.ms": "3000"}
"""For half as long as by itself a member may be silent: most of a walk waits for one given up."""
POLLS = re.compile(r"^numbers_task_polls_total\{.*\} [1-9]", re.MULTILINE)
PLUGIN = '''
import time
from millstream.connect import *

class NumbersSource(SourceConnector):
    """Counts in each of its partitions up to a limit."""

    def task_class(self):
        return NumbersTask

    def task_configs(self, max_tasks):
        mine = [[str(p) for p in range(6)][n::max_tasks] for n in range(max_tasks)]
        return [{**self.settings, "partitions": ",".join(each)} for each in mine]

    def exactly_once_support(self, settings):
        return ExactlyOnceSupport.SUPPORTED

class NumbersTask(SourceTask):
    def start(self, settings):
        self.settings, self.at, self.polls = settings, {}, 0
        for each in settings["partitions"].split(","):
            kept = self.context.offset_storage_reader.offset({"p": each})
            self.at[each] = kept["next"] if kept else 0

    def metrics(self):
        mine = {"partitions": self.settings["partitions"]}
        yield TaskMetric("numbers_task_polls_total", mine, self.polls)

    def poll(self):
        self.polls += 1
        time.sleep(float(self.settings["pause.seconds"]))
        limit, batch = int(self.settings["limit"]), int(self.settings["batch"])
        records = []
        for partition, at in self.at.items():
            for number in range(at, min(at + batch, limit)):
                records.append(SourceRecord(
                    topic="numbers", key=partition, value=str(number),
                    source_partition={"p": partition}, source_offset={"next": number + 1},
                ))
                self.at[partition] = number + 1
        return records
'''


class Reader:
    """Reads the topic from its beginning, and counts how often each number is there."""

    def __init__(self, servers: str, level: str) -> None:
        self.seen: Counter[tuple[bytes, bytes]] = Counter()
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": f"reads-{level}",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": "false",
                "isolation.level": level,
                "topic.metadata.refresh.interval.ms": "500",
            }
        )
        self._consumer.subscribe([TOPIC])

    def read(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            for message in self._consumer.consume(1000, min(left, 0.2)):
                if not message.error():
                    self.seen[message.key(), message.value()] += 1

    def close(self) -> None:
        self._consumer.close()


def settings_of(broker: LocalBroker, folder: Path, support: str = "enabled") -> dict[str, str]:
    told = {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": "exact",
        "plugin.path": str(folder / "plugins"),
        "scheduled.rebalance.max.delay.ms": "500",
        "session.timeout.ms": "3000",
        "heartbeat.interval.ms": "300",
        "exactly.once.source.support": support,
    }
    for kind in ("config", "offset", "status"):
        told[f"{kind}.storage.topic"] = f"connect-{kind}"
        told[f"{kind}.storage.replication.factor"] = "1"
    return told


def put(workers: list[ConnectWorker], config: dict[str, str]) -> None:
    """Configure the connector by whichever worker answers."""

    def is_put() -> bool:
        for worker in workers:
            try:
                answered = worker.call("PUT", f"/connectors/{NAME}/config", config)
            except OSError:
                continue
            assert answered.status != 400, answered
            if answered.status < 300:
                return True
        return False

    eventually(is_put, 60)


def worker_with_a_task(workers: list[ConnectWorker]) -> ConnectWorker:
    """Give one whose task polls.

    What the topic of statuses says may be what a worker wrote that was killed since.
    """
    found: list[ConnectWorker] = []

    def is_found() -> bool:
        found.extend(each for each in workers if POLLS.search(each.call("GET", "/metrics").body))
        return bool(found)

    eventually(is_found, 60)
    return found[0]


def fault(
    number: int, workers: list[ConnectWorker], reader: Reader, say: Callable[[str], None]
) -> None:
    """Kill a worker and start it again, or freeze one until it was given up."""
    is_kill = number % 2 == 0
    worker = workers[number % 3] if is_kill else worker_with_a_task(workers)
    assert worker.process is not None
    if is_kill:
        say(f"fault {number + 1}: kill -9 {worker.worker_id}, {len(reader.seen)} numbers read")
        worker.kill()
        reader.read(1.0)
        worker.start()
        reader.read(3.5)
        return
    say(f"fault {number + 1}: freeze {worker.worker_id}, {len(reader.seen)} numbers read")
    os.kill(worker.process.pid, signal.SIGSTOP)
    reader.read(5.0)
    os.kill(worker.process.pid, signal.SIGCONT)
    reader.read(1.0)


def walk(
    folder: Path,
    records: int,
    faults: int,
    say: Callable[[str], None],
    *,
    pause_seconds: float,
    batch: int,
    support: str = "enabled",
    isolation: str = "thread",
) -> dict[str, Any]:
    """Run it all; returns what is missing, what is there twice, and what was given up on the way"""
    (folder / "plugins").mkdir()
    (folder / "plugins" / "numbers_plugin.py").write_text(PLUGIN)
    with LocalBroker(**BROKER) as broker:
        told = {**settings_of(broker, folder, support), "tasks.isolation": isolation}
        workers = [ConnectWorker(folder, told, name=f"worker{each}") for each in range(3)]
        reader = Reader(broker.bootstrap_servers, "read_committed")
        all_reader = Reader(broker.bootstrap_servers, "read_uncommitted")
        limit = records // PARTITIONS
        config = {
            "connector.class": "NumbersSource",
            "exactly.once.support": "required" if support == "enabled" else "requested",
            "limit": str(limit),
            "pause.seconds": str(pause_seconds),
            "batch": str(batch),
            "errors.task.restart.max.delay.ms": "2000",
        }
        try:
            for worker in workers:
                worker.start()
            for worker in workers:
                eventually(lambda worker=worker: worker.call("GET", "/health/ready").status == 200)
            put(workers, {**config, "tasks.max": "3"})
            reader.read(2.0)
            for number in range(faults):
                put(workers, {**config, "tasks.max": str(2 + number % 3)})
                reader.read(1.0)
                fault(number, workers, reader, say)
            deadline = time.monotonic() + 180
            while len(reader.seen) < limit * PARTITIONS and time.monotonic() < deadline:
                reader.read(0.2)
            # Whatever would come again has the time to.
            all_reader.read(2.0)
            reader.read(1.0)
            say(f"all read: {len(reader.seen)} numbers")
            log = "".join(worker.log() for worker in workers)
        finally:
            reader.close()
            all_reader.close()
            for worker in workers:
                worker.kill()
    wanted = {
        (str(partition).encode(), str(number).encode())
        for partition in range(PARTITIONS)
        for number in range(limit)
    }
    twice = sorted(each for each, count in reader.seen.items() if count > 1)
    return {
        "missing": sorted(wanted - reader.seen.keys())[:20],
        "twice": twice[:20],
        "read": sum(reader.seen.values()),
        "written_in_vain": sum(all_reader.seen.values()) - sum(reader.seen.values()),
        "fenced": log.count("earlier tasks fenced"),
        "shut_out": log.count("another producer of the same task has begun"),
        "log": log,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--faults", type=int, default=10)
    parser.add_argument("--support", default="enabled")
    parser.add_argument("--isolation", default="thread")
    asked = parser.parse_args()

    def say(line: str) -> None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    # So fast that it takes as long as the faults do.
    a_poll = max(1, asked.records // PARTITIONS // (asked.faults * 6 * 10))
    with tempfile.TemporaryDirectory() as folder:
        result = walk(
            Path(folder),
            asked.records,
            asked.faults,
            say,
            pause_seconds=0.08,
            batch=a_poll,
            support=asked.support,
            isolation=asked.isolation,
        )
        log = result.pop("log")
        Path(f"{tempfile.gettempdir()}/exactly-once.log").write_text(log)
    say(str(result))
    return int(bool(result["missing"] or result["twice"]))


if __name__ == "__main__":
    sys.exit(main())
