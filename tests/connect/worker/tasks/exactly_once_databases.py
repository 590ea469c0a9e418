"""JdbcSource and PostgresSource write exactly once, while rows are inserted and workers are killed.

    .venv/bin/python -m tests.connect.worker.tasks.exactly_once_databases --rows 20000 --kills 8

Two workers run every connector at once: JdbcSource on SQLite in each mode that finds changes, one
with transactions of an interval, and on a real PostgreSQL; and PostgresSource. Rows come in groups
of one timestamp that are larger than a batch. In the end every row is there once for whoever reads
what is committed.
"""

import argparse
import json
import sqlite3
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from millstream.testing import LocalBroker
from tests.connect.worker.tasks.exactly_once import BROKER, settings_of
from tests.lib.connect_worker import ConnectWorker, eventually
from tests.lib.postgresql import PostgreSql

GROUP = 25
BATCH = 10
_JDBC = {
    "connector.class": "JdbcSource",
    "incrementing.column.name": "id",
    "timestamp.column.name": "at",
    # A group is committed a moment after its timestamp.
    "timestamp.delay.interval.ms": "500",
    "table.include.list": "rows",
    "batch.max.rows": str(BATCH),
    "poll.interval.ms": "200",
}


def connectors(sqlite_url: str, postgresql: PostgreSql) -> dict[str, dict[str, str]]:
    """Give the connectors by the topic each writes to."""
    incrementing = {**_JDBC, "mode": "incrementing"}
    del incrementing["timestamp.column.name"]
    both = {**_JDBC, "mode": "timestamp+incrementing"}
    interval = {"transaction.boundary": "interval", "transaction.boundary.interval.ms": "300"}
    of = {
        "sqlite-incrementing-": {**incrementing, "connection.url": sqlite_url},
        "sqlite-timestamp-": {**_JDBC, "mode": "timestamp", "connection.url": sqlite_url},
        "sqlite-both-": {**both, **interval, "connection.url": sqlite_url},
        "postgresql-both-": {**both, "connection.url": postgresql.url},
    }
    made = {f"{prefix}rows": {**told, "topic.prefix": prefix} for prefix, told in of.items()}
    made["changes.public.rows"] = {
        "connector.class": "PostgresSource",
        "database.hostname": "127.0.0.1",
        "database.port": str(postgresql.port),
        "database.user": "postgres",
        "database.dbname": "postgres",
        "topic.prefix": "changes",
        "snapshot.mode": "no_data",
        "max.batch.size": str(BATCH),
        "poll.interval.ms": "200",
    }
    restarts = {"errors.task.restart.max.delay.ms": "2000", "exactly.once.support": "required"}
    return {topic: {**told, **restarts} for topic, told in made.items()}


class Inserting:
    """A thread that inserts rows into both databases, a group at a time."""

    def __init__(self, file: Path, postgresql: PostgreSql, rows: int, pause_seconds: float) -> None:
        self._file, self._postgresql, self._rows = file, postgresql, rows
        self._pause_seconds = pause_seconds
        self.inserted = 0
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Inserting":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()

    def finish(self) -> None:
        """Wait for the last row; raises what went wrong."""
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            self._insert_all()
        # It is raised again where somebody sees it.
        except Exception as error:  # noqa: BLE001
            self._failure = error

    def _insert_all(self) -> None:
        with (
            closing(sqlite3.connect(self._file, timeout=60)) as lite,
            psycopg.connect(self._postgresql.url) as postgresql,
        ):
            while self.inserted < self._rows:
                ids = [(each,) for each in range(self.inserted, self.inserted + GROUP)]
                with lite:
                    (now,) = lite.execute("SELECT strftime('%Y-%m-%d %H:%M:%f', 'now')").fetchone()
                    lite.executemany(f"INSERT INTO rows VALUES (?, '{now}')", ids)
                with postgresql.transaction(), postgresql.cursor() as cursor:
                    cursor.executemany("INSERT INTO rows VALUES (%s, DEFAULT)", ids)
                self.inserted += GROUP
                time.sleep(self._pause_seconds)


class Reading:
    """Counts how often each row is in each topic."""

    def __init__(self, servers: str, topics: list[str], level: str) -> None:
        self.seen: dict[str, Counter[int]] = {topic: Counter() for topic in topics}
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": f"reads-{level}",
                "isolation.level": level,
            }
        )
        # A member of a group would begin anew with each rebalance.
        self._consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING) for topic in topics])

    def read(self, seconds: float) -> int:
        """Read on for a while; return how many rows the topic has that has least."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            for message in self._consumer.consume(1000, min(left, 0.2)):
                topic = message.topic()
                if topic is not None and not message.error():
                    value = json.loads(message.value() or b"")
                    row = value.get("after", value)
                    self.seen[topic][row["id"]] += 1
        return min(len(seen) for seen in self.seen.values())

    def close(self) -> None:
        self._consumer.close()


@contextmanager
def running(folder: Path, broker: LocalBroker) -> Iterator[list[ConnectWorker]]:
    (folder / "plugins").mkdir()
    told = {
        **settings_of(broker, folder),
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
    }
    workers = [ConnectWorker(folder, told, name=f"worker{each}") for each in range(2)]
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            eventually(lambda: worker.call("GET", "/health/ready").status == 200)  # noqa: B023
        yield workers
    finally:
        for worker in workers:
            worker.kill()


def _prepare(file: Path, postgresql: PostgreSql) -> None:
    with closing(sqlite3.connect(file)) as lite, lite:
        lite.execute("PRAGMA journal_mode=WAL")
        lite.execute("CREATE TABLE rows (id INTEGER NOT NULL PRIMARY KEY, at TIMESTAMP NOT NULL)")
    with psycopg.connect(postgresql.url) as connection:
        default = "timezone('utc', clock_timestamp())"
        connection.execute(
            f"CREATE TABLE rows (id BIGINT PRIMARY KEY, at TIMESTAMP NOT NULL DEFAULT {default})"
        )


def walk(folder: Path, rows: int, kills: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Run it all; returns of each topic which rows are missing, and which are there twice."""
    rows -= rows % GROUP
    file = folder / "rows.sqlite"
    with (
        PostgreSql() as postgresql,
        LocalBroker(**BROKER) as broker,
        running(folder, broker) as workers,
    ):
        _prepare(file, postgresql)
        told = connectors(f"sqlite:///{file}", postgresql)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        for made in admin.create_topics([NewTopic(topic, 1) for topic in told]).values():
            made.result()
        for topic, config in told.items():
            path = f"/connectors/{topic.removesuffix('rows')}x/config"
            eventually(lambda: workers[0].call("PUT", path, config).status in (200, 201))  # noqa: B023
        slots = "SELECT count(*) FROM pg_replication_slots"
        with psycopg.connect(postgresql.url, autocommit=True) as asking:
            eventually(lambda: asking.execute(slots).fetchone() == (1,), 60)
        reading = Reading(broker.bootstrap_servers, list(told), "read_committed")
        everything = Reading(broker.bootstrap_servers, list(told), "read_uncommitted")
        # So fast that it takes as long as the kills do.
        pause_seconds = kills * 6 / (rows / GROUP)
        with Inserting(file, postgresql, rows, pause_seconds) as inserting:
            for number in range(kills):
                reading.read(2.0)
                worker = workers[number % 2]
                say(f"kill {number + 1}: {worker.worker_id}, {inserting.inserted} rows inserted")
                worker.kill()
                worker.start()
                reading.read(3.5)
            inserting.finish()
        deadline = time.monotonic() + 120
        while reading.read(0.5) < rows and time.monotonic() < deadline:
            pass
        # Whatever would come again has the time to.
        everything.read(1.5)
        reading.read(0.5)
        seen = {topic: Counter(found) for topic, found in reading.seen.items()}
        written = sum(sum(found.values()) for found in everything.seen.values())
        reading.close()
        everything.close()
        log = "".join(worker.log() for worker in workers)
    return {
        "missing": {t: sorted(set(range(rows)) - each.keys())[:9] for t, each in seen.items()},
        "twice": {t: sorted(i for i, n in each.items() if n > 1)[:9] for t, each in seen.items()},
        "read": {topic: sum(each.values()) for topic, each in seen.items()},
        "written_in_vain": written - sum(sum(each.values()) for each in seen.values()),
        "log": log,
    }


def is_exact(result: dict[str, Any]) -> bool:
    return not any([*result["missing"].values(), *result["twice"].values()])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--kills", type=int, default=8)
    asked = parser.parse_args()

    def say(line: str) -> None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    with tempfile.TemporaryDirectory() as folder:
        result = walk(Path(folder), asked.rows, asked.kills, say)
    log = result.pop("log")
    Path(f"{tempfile.gettempdir()}/exactly-once-databases.log").write_text(log)
    say(json.dumps(result, indent=2))
    return int(not is_exact(result))


if __name__ == "__main__":
    sys.exit(main())
