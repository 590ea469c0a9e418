"""A random table through a real worker, which is killed or whose broker is, into all targets.

Standalone, with three sources (CDC with keys that have schemas, CDC with keys that are texts, the
JDBC source) and five sinks for each topic that they read: a second table, an index, and Parquet,
Avro and JSON files in a server that speaks S3.
"""

import io
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import fastavro
from elasticsearch import ApiError
from elasticsearch import Elasticsearch as Client
from pyarrow import fs, parquet

from millstream.testing import LocalBroker
from mirror.dedicated.whole_topic import whole_topic
from tests.connect.connectors.round_trips.held_values import EXACT, held_value, read_value
from tests.connect.connectors.round_trips.random_tables import Case, Table, bulk, cdc, comparable
from tests.lib.connect_worker import ConnectWorker
from tests.lib.elasticsearch_server import Elasticsearch
from tests.lib.postgresql import PostgreSql
from tests.lib.s3_server import S3

BUCKET = "round-trips"
OFFSET = "offset_of_the_record"
"""A field that no column is called like: its name is too long."""
TEXT = "org.apache.kafka.connect.storage.StringConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"
FORMATS = ("parquet", "avro", "json")
SESSION_MS = 1_500
MS_PER_DAY = 86_400_000
EARLY = {
    "consumer.override.topic.metadata.refresh.interval.ms": "300",
    # A worker that was killed says nothing: its partitions are free after this.
    "consumer.override.session.timeout.ms": str(SESSION_MS),
    "consumer.override.heartbeat.interval.ms": "400",
    "retry.backoff.ms": "100",
}
AFTER = {
    "transforms": "row",
    "transforms.row.type": "ExtractField$Value",
    "transforms.row.field": "after",
    "transforms.row.predicate": "is_tombstone",
    "transforms.row.negate": "true",
    "predicates": "is_tombstone",
    "predicates.is_tombstone.type": "RecordIsTombstone",
}
NUMBERED = {
    "transforms": "number",
    "transforms.number.type": "InsertField$Value",
    "transforms.number.offset.field": OFFSET,
}


class RandomParts:
    """Owns the worker of one case; the servers are shared. `has_changes` is by CDC."""

    def __init__(
        self,
        folder: Path,
        case: Case,
        broker: LocalBroker,
        database: PostgreSql,
        index: Elasticsearch,
        store: S3,
        *,
        name: str,
        has_changes: bool,
    ) -> None:
        self._case, self._broker, self._database = case, broker, database
        self._index, self._store, self._name = index, store, name
        self._has_changes = has_changes
        self.topic = f"{name}.public.a" if has_changes else f"{name}.a"
        self.text_topic = f"{name}-text.public.a" if has_changes else self.topic
        self.store = fs.S3FileSystem(
            access_key=store.key, secret_key=store.secret, endpoint_override=store.host,
            scheme="http", allow_bucket_creation=True,
        )  # fmt: skip
        self.store.create_dir(BUCKET)
        settings = {
            "bootstrap.servers": broker.bootstrap_servers,
            "key.converter": JSON,
            "value.converter": JSON,
            "offset.storage.file.filename": str(folder / "offsets"),
            "errors.task.restart.max.delay.ms": "500",
        }
        files = []
        for connector, config in {**self._sources(), **self._sinks()}.items():
            files.append(folder / f"{connector}.json")
            files[-1].write_text(json.dumps({"name": connector, "config": config}))
        self.worker = ConnectWorker(folder, settings, *files)

    # --- configurations ---

    def _sources(self) -> dict[str, dict[str, str]]:
        if not self._has_changes:
            keys = ",".join(one.name for one in self._case.keys)
            own = {
                "connector.class": "JdbcSource",
                "topic.prefix": f"{self._name}.",
                "poll.interval.ms": "300",
                "key.converter.schemas.enable": "false",
                "transforms": "key",
                "transforms.key.type": "ValueToKey",
                "transforms.key.fields": keys,
            }
            return {"source": {**bulk(self._database, "micros_iso_datetime_string"), **own}}
        found = {}
        for suffix, has_schemas in (("", "true"), ("-text", "false")):
            own = {
                "connector.class": "PostgresSource",
                "topic.prefix": f"{self._name}{suffix}",
                "slot.name": f"s{suffix}".replace("-", "_"),
                "publication.name": f"p{suffix}".replace("-", "_"),
                "poll.interval.ms": "20",
                "key.converter.schemas.enable": has_schemas,
            }
            found[f"source{suffix}"] = {**cdc(self._database, EXACT), **own}
        return found

    def _sinks(self) -> dict[str, dict[str, str]]:
        rows = AFTER if self._has_changes else {}
        keyed = {"pk.mode": "record_key", "delete.enabled": "true"}
        if not self._has_changes:
            keys = ",".join(one.name for one in self._case.keys)
            keyed = {"pk.mode": "record_value", "pk.fields": keys}
        plain = {} if self._has_changes else {"key.converter": TEXT}
        table = {
            "connector.class": "JdbcSink",
            "topics": self.topic,
            "connection.url": self._database.url,
            "table.name.format": "b",
            "insert.mode": "upsert",
            **keyed,
        }
        documents = {
            "connector.class": "ElasticsearchSink",
            "topics": self.text_topic,
            "connection.url": self._index.url,
            "behavior.on.null.values": "delete",
            "key.converter": TEXT,
        }
        return {
            "table": {**table, **rows, **plain, **EARLY},
            "index": {**documents, **rows, **EARLY},
            **{each: {**self._files(each), **plain, **EARLY} for each in FORMATS},
        }

    def _files(self, name: str) -> dict[str, str]:
        return {
            "connector.class": "ObjectStoreSink",
            "topics": self.topic,
            "store.url": f"http://{self._store.host}",
            "s3.bucket.name": BUCKET,
            "aws.access.key.id": self._store.key,
            "aws.secret.access.key": self._store.secret,
            "topics.dir": f"{self._name}/{name}",
            "format.class": f"{name.capitalize()}Format",
            "flush.size": "3",
            "rotate.schedule.interval.ms": "1000",
            "json.decimal.format": "NUMERIC",
            "behavior.on.null.values": "ignore",
            **NUMBERED,
        }

    # --- what is done ---

    def kill(self, which: str) -> None:
        """Kill the worker or the broker as nothing can prepare for, and start it again."""
        owner: Any = self.worker if which == "worker" else self._broker
        owner.kill()
        owner.start()

    @property
    def reads_again_and_again(self) -> bool:
        """Whether the source never ends to read the same rows."""
        return not self._has_changes

    def stop_source(self) -> None:
        """Have it read no more."""
        assert self.worker.call("PUT", "/connectors/source/stop").status in (202, 204)

    # --- what is there ---

    def differences(self, table: Table) -> dict[str, object]:
        """Return, by target, what is not as in the source."""
        found: dict[str, object] = {}
        if rows := table.differences():
            found["table"] = rows
        self._compare(found, "index", self._documents(), table, is_document=True)
        wanted = self._offsets()
        for name in FORMATS:
            records = sorted(self._in_files(name), key=lambda one: int(one[OFFSET]))
            offsets = [one[OFFSET] for one in records]
            if offsets != wanted:
                found[f"{name}: offsets"] = (wanted, offsets)
            self._compare(found, name, self._last(records), table, is_document=name == "json")
        return found

    def _compare(
        self,
        found: dict[str, object],
        target: str,
        rows: list[dict[str, Any]],
        table: Table,
        *,
        is_document: bool,
    ) -> None:
        told = held_value if self._has_changes else read_value

        def held(kind: str, value: Any) -> Any:
            found = told(kind, value, is_exact=True, is_document=is_document)
            # Connect's JSON has a date of its own type as days, a document as milliseconds.
            is_days = target == "json" and kind == "DATE" and isinstance(found, int)
            return found // MS_PER_DAY if is_days else found

        wanted = comparable(self._case, table.held_rows(held))
        if wanted != (is_there := comparable(self._case, rows)):
            found[target] = (wanted, is_there)

    def _documents(self) -> list[dict[str, Any]]:
        with Client(self._index.url) as client:
            try:
                client.indices.refresh(index=self.text_topic, ignore_unavailable=True)
                found = client.search(index=self.text_topic, size=1000, ignore_unavailable=True)
            except ApiError:  # The index is being made.
                return []
        return [one["_source"] for one in found["hits"]["hits"]]

    def _offsets(self) -> list[int]:
        """Return the offsets of all records that have a value."""
        client = {"bootstrap.servers": self._broker.bootstrap_servers, "group.id": "looks"}
        records = whole_topic(client, self.topic)
        return sorted(each.offset() or 0 for each in records if each.value() is not None)

    def _in_files(self, name: str) -> Iterator[dict[str, Any]]:
        folder = fs.FileSelector(f"{BUCKET}/{self._name}/{name}", recursive=True,
                                 allow_not_found=True)  # fmt: skip
        for each in self.store.get_file_info(folder):
            if each.is_file:
                with self.store.open_input_file(each.path) as file:
                    yield from _READERS[name](file.readall())

    def _last(self, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the last row of each key that has one."""
        last: dict[str, dict[str, Any] | None] = {}
        for record in records:
            row = {name: value for name, value in record.items() if name != OFFSET}
            keyed = (row["after"] or row["before"]) if self._has_changes else row
            after = row["after"] if self._has_changes else row
            last[repr([keyed[one.name] for one in self._case.keys])] = after
        return [row for row in last.values() if row is not None]


_READERS: Mapping[str, Callable[[bytes], Any]] = {
    "parquet": lambda data: parquet.read_table(io.BytesIO(data)).to_pylist(),
    "avro": lambda data: list(fastavro.reader(io.BytesIO(data))),
    "json": lambda data: [json.loads(line) for line in data.splitlines()],
}
