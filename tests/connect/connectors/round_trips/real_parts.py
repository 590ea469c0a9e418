"""PostgreSQL to a topic to an index, to a second table and to Parquet, each part killed in turn.

    .venv/bin/python -m tests.connect.connectors.round_trips.real_parts --seconds 60 --kills 8

Somebody inserts, updates and deletes rows all the while. At the end the table, the index, the copy
and what the files tell, read from the first to the last, have to be the same, row by row. A change
that is twice in the files has to be twice in the topic: the source writes at least once, the files'
sink each record of the topic once.
"""

import argparse
import json
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Self

import psycopg
from elasticsearch import Elasticsearch as Client
from pyarrow import parquet

from millstream.testing import LocalBroker
from mirror.dedicated.whole_topic import whole_topic
from tests.lib.connect_worker import ConnectWorker
from tests.lib.elasticsearch_server import Elasticsearch
from tests.lib.postgresql import PostgreSql

Rows = dict[int, tuple[str, int]]
Changes = Counter[tuple[int, str, int]]
"""How often each change is there, by its place in PostgreSQL's log, its kind and its row."""
TOPIC = "shop.public.orders"
INDEX = "orders-of-all-parts"
JSON = "org.apache.kafka.connect.json.JsonConverter"
TABLE = "CREATE TABLE orders (id INTEGER PRIMARY KEY, note TEXT NOT NULL, n INTEGER NOT NULL)"
ROW_ONLY = {
    "transforms": "row,key",
    "transforms.row.type": "ExtractField$Value",
    "transforms.row.field": "after",
    "transforms.row.predicate": "is_tombstone",
    "transforms.row.negate": "true",
    "predicates": "is_tombstone",
    "predicates.is_tombstone.type": "RecordIsTombstone",
    "transforms.key.type": "ExtractField$Key",
    "transforms.key.field": "id",
}


class Load(threading.Thread):
    """Changes rows, and begins anew where a connection broke."""

    def __init__(self, url: str, seed: int) -> None:
        super().__init__(daemon=True)
        self._url = url
        self._random = random.Random(seed)
        self._stopping = threading.Event()
        self.changes: Counter[str] = Counter()

    def run(self) -> None:
        while not self._stopping.is_set():
            try:
                with psycopg.connect(self._url, autocommit=True, connect_timeout=2) as connection:
                    while not self._stopping.wait(0.02):
                        self._change(connection)
            except psycopg.OperationalError:
                self._stopping.wait(0.05)

    def stop(self) -> None:
        self._stopping.set()
        self.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _change(self, connection: psycopg.Connection[Any]) -> None:
        id_, n = self._random.randrange(300), self._random.randrange(10**6)
        kind = self._random.choice(("insert", "update", "update", "delete"))
        if kind == "insert":
            connection.execute(
                "INSERT INTO orders VALUES (%s, %s, %s) ON CONFLICT DO NOTHING", (id_, f"i{n}", n)
            )
        elif kind == "update":
            connection.execute(
                "UPDATE orders SET note = %s, n = %s WHERE id = %s", (f"u{n}", n, id_)
            )
        else:
            connection.execute("DELETE FROM orders WHERE id = %s", (id_,))
        self.changes[kind] += 1


class Parts:
    """Owns every process, and what each of them holds."""

    def __init__(
        self, folder: Path, broker: LocalBroker, database: PostgreSql, index: Elasticsearch
    ) -> None:
        self.broker, self.database, self.index = broker, database, index
        self.files = folder / "files"
        settings = {
            "bootstrap.servers": broker.bootstrap_servers,
            "key.converter": JSON,
            "value.converter": JSON,
            "offset.storage.file.filename": str(folder / "offsets"),
            "errors.task.restart.max.delay.ms": "1000",
        }
        connectors = []
        for name, config in self._connectors().items():
            path = folder / f"{name}.json"
            path.write_text(json.dumps({"name": name, "config": config}))
            connectors.append(path)
        self.worker = ConnectWorker(folder, settings, *connectors)

    def _connectors(self) -> dict[str, dict[str, str]]:
        sink = {**ROW_ONLY, "topics": TOPIC, "retry.backoff.ms": "100"}
        early = {
            # The topic is made later.
            "consumer.override.topic.metadata.refresh.interval.ms": "500",
            # A worker that was killed says nothing: its partitions are free after this.
            "consumer.override.session.timeout.ms": "6000",
        }
        return {
            "changes": {
                "connector.class": "PostgresSource",
                "database.hostname": "127.0.0.1",
                "database.port": str(self.database.port),
                "database.user": "postgres",
                "database.dbname": "postgres",
                "table.include.list": "public.orders",
                "topic.prefix": "shop",
                "poll.interval.ms": "50",
            },
            "index": {
                "connector.class": "ElasticsearchSink",
                "connection.url": self.index.url,
                "behavior.on.null.values": "delete",
                **sink,
                **early,
                "topic.to.external.resource.mapping": f"{TOPIC}:{INDEX}",
            },
            "copy": {
                "connector.class": "JdbcSink",
                "connection.url": self.database.url,
                "table.name.format": "copied",
                "insert.mode": "upsert",
                "delete.enabled": "true",
                "pk.mode": "record_key",
                "pk.fields": "id",
                "auto.create": "true",
                **sink,
                **early,
            },
            "files": {
                "connector.class": "ObjectStoreSink",
                "topics": TOPIC,
                "store.url": self.files.as_uri(),
                "flush.size": "200",
                "rotate.schedule.interval.ms": "1000",
                "behavior.on.null.values": "ignore",
                **early,
            },
        }

    def kill(self, which: str) -> None:
        """Kill a part as nothing can prepare for, and start it again."""
        match which:
            case "worker":
                self.worker.kill()
                self.worker.start()
            case "broker":
                self.broker.kill()
                self.broker.start()
            case "PostgreSQL":
                self.database.stop()
                self.database.start()
            case _:
                self.index.kill()
                self.index.start()

    def table(self, name: str) -> Rows:
        with psycopg.connect(self.database.url) as connection:
            found = connection.execute(f"SELECT id, note, n FROM {name}").fetchall()  # type: ignore[arg-type]
        return {row[0]: (row[1], row[2]) for row in found}

    def indexed(self) -> Rows:
        with Client(self.index.url) as client:
            client.indices.refresh(index=INDEX)
            hits = client.search(index=INDEX, size=10_000)["hits"]["hits"]
        return {hit["_source"]["id"]: (hit["_source"]["note"], hit["_source"]["n"]) for hit in hits}

    def told_by_files(self) -> Rows:
        """Return what the changes in the files come to, in their order."""
        rows: Rows = {}
        for change in self._changes_in_files():
            after = change["after"]
            if after is None:
                rows.pop(change["before"]["id"], None)
            else:
                rows[after["id"]] = (after["note"], after["n"])
        return rows

    def _changes_in_files(self) -> Iterator[Any]:
        for path in sorted(self.files.rglob("*.parquet")):
            yield from parquet.read_table(path).to_pylist()

    def counted_in_files(self) -> Changes:
        return counted(self._changes_in_files())

    def counted_in_topic(self) -> Changes:
        client = {"bootstrap.servers": self.broker.bootstrap_servers, "group.id": "looks"}
        values = [each.value() for each in whole_topic(client, TOPIC)]
        return counted(json.loads(each)["payload"] for each in values if each is not None)


def counted(changes: Iterable[Any]) -> Changes:
    """Return how often each change is there."""
    found: Changes = Counter()
    for change in changes:
        row = change["after"] or change["before"]
        found[change["source"]["lsn"], change["op"], row["id"]] += 1
    return found


def walk(
    index: Elasticsearch, seconds: float, kills: list[str], seed: int, say: Callable[[str], None]
) -> dict[str, Any]:
    """Let the load run while the parts are killed, and return what is there at the end."""
    with (
        tempfile.TemporaryDirectory(prefix="millstream-parts-") as folder,
        LocalBroker() as broker,
        PostgreSql() as database,
    ):
        with psycopg.connect(database.url) as connection:
            connection.execute(TABLE)
            connection.execute(
                "INSERT INTO orders SELECT i, 'first', i FROM generate_series(0, 99) i"
            )
        parts = Parts(Path(folder), broker, database, index)
        with parts.worker, Load(database.url, seed) as load:
            for which in kills:
                time.sleep(seconds / (len(kills) + 1))
                began = time.monotonic()
                parts.kill(which)
                say(f"{which} killed and started again in {time.monotonic() - began:.1f} s")
            time.sleep(seconds / (len(kills) + 1))
            load.stop()
            say(f"changes made: {dict(load.changes)}")
            return compared(parts, say)


def compared(parts: Parts, say: Callable[[str], None]) -> dict[str, Any]:
    wanted = parts.table("orders")
    found: dict[str, Rows] = {}
    in_files, in_topic = Changes(), Changes()
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        try:
            found = {
                "index": parts.indexed(),
                "copy": parts.table("copied"),
                "files": parts.told_by_files(),
            }
            in_files, in_topic = parts.counted_in_files(), parts.counted_in_topic()
        # What is read may be on its way: a file that is replaced, an index that is made.
        except Exception as error:  # noqa: BLE001
            say(f"not there yet: {error!r:.100}")
        is_same = found and all(rows == wanted for rows in found.values())
        if is_same and in_files == in_topic:
            break
        time.sleep(0.3)
    different = {name: _difference(wanted, rows) for name, rows in found.items()}
    total, doubled = in_files.total(), in_files.total() - len(in_files)
    say(f"rows in the table: {len(wanted)}; changes in the files: {total}, twice there: {doubled}")
    lost, added = in_topic - in_files, in_files - in_topic
    say(
        f"changes of the topic that the files lack: {lost.total()}, have too often: {added.total()}"
    )
    for name, wrong in different.items():
        say(f"{name}: {'the same' if not wrong else f'{len(wrong)} rows differ: {wrong[:5]}'}")
    states = {name: parts.worker.states(name) for name in ("changes", "index", "copy", "files")}
    restarts = {
        name: parts.worker.call("GET", f"/connectors/{name}/status").body["tasks"]
        for name in states
    }
    say(f"states: {states}")
    is_told = any(different.values()) or len(found) < 3 or bool(lost or added)
    lines = parts.worker.log().splitlines(keepends=True) if is_told else []
    log = "".join(line for line in lines if " connect.kafka " not in line)
    return {
        "different": different,
        "lost": lost.total(),
        "added": added.total(),
        "rows": len(wanted),
        "tasks": restarts,
        "log": log[-8000:],
    }


def _difference(wanted: Rows, rows: Rows) -> list[int]:
    return sorted(id_ for id_ in wanted.keys() | rows.keys() if wanted.get(id_) != rows.get(id_))


def main() -> int:
    """Walk as long as the command line says; 1 when anything differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--kills", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    every = ["worker", "Elasticsearch", "PostgreSQL", "broker"]
    kills = [every[number % 4] for number in range(options.kills)]
    with Elasticsearch() as index:
        result = walk(
            index, options.seconds, kills, options.seed, lambda text: print(text, flush=True)
        )
    print(result["log"], end="")
    is_same = len(result["different"]) == 3 and not any(result["different"].values())
    is_same = is_same and (result["lost"], result["added"]) == (0, 0)
    print("everything agrees" if is_same else "NOT THE SAME")
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main())
