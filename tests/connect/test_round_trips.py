"""Random tables through CDC, or the JDBC source, into the JDBC sink: the target is the source.

Rows change all the while; source and sink are killed in turn and go on from what was kept, which is
less than what was done. Between them are the converter's bytes. `ROUND_TRIPS=500 pytest
tests/connect/test_round_trips.py -m ''` (`make round-trips`) tries more tables.
"""

import os
import string
from collections.abc import Iterator
from typing import Any, NamedTuple

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from psycopg import sql

from connect.connectors.jdbc import JdbcSourceConnector
from connect.connectors.jdbc.sink_task import JdbcSinkTask
from connect.connectors.postgresql import PostgresSourceConnector
from connect.converters.json_converter import JsonConverter
from millrace.connect import SinkRecord, SourceRecord
from tests.lib.connect_tasks import Kept, started_sink, started_source
from tests.lib.postgresql import PostgreSql
from tests.lib.postgresql_changes import emptied

pytestmark = pytest.mark.slow
COUNT = int(os.environ.get("ROUND_TRIPS", "12"))

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
DATES = st.dates().map(str)
KINDS: dict[str, st.SearchStrategy[Any]] = {
    "SMALLINT": st.integers(-(1 << 15), (1 << 15) - 1),
    "INTEGER": st.integers(-(1 << 31), (1 << 31) - 1),
    "BIGINT": st.integers(-(1 << 63), (1 << 63) - 1),
    "NUMERIC": st.decimals(allow_nan=False, allow_infinity=False, places=7),
    "NUMERIC(12,3)": st.decimals(-(10**8), 10**8, places=3, allow_nan=False),
    "DOUBLE PRECISION": st.floats(allow_nan=False, allow_infinity=False),
    "REAL": st.floats(allow_nan=False, allow_infinity=False, width=32, allow_subnormal=False),
    "BOOLEAN": st.booleans(),
    "TEXT": TEXTS,
    "VARCHAR(40)": TEXTS,
    "CHAR(14)": TEXTS,
    "BYTEA": st.binary(max_size=12),
    "DATE": DATES,
    # Connect's own times end at milliseconds.
    "TIME": st.times().map(lambda time: time.isoformat("milliseconds")),
    "TIMESTAMP": st.datetimes().map(str),
    "TIMESTAMPTZ": st.datetimes().map(lambda moment: f"{moment}+00"),
    "UUID": st.uuids().map(str),
    "JSONB": st.sampled_from(['{"a": 1.50}', "[]", "null", '"\u00e9"', "12345678901234567890"]),
    "INET": st.sampled_from(["10.0.0.1", "10.0.0.0/8", "::1"]),
    "INT4RANGE": st.sampled_from(["[1,5)", "empty", "(,)"]),
}
KEY_KINDS = ("SMALLINT", "BIGINT", "TEXT", "UUID", "DATE", "NUMERIC(12,3)", "TIMESTAMPTZ", "BYTEA")
# What a column is called: no letter of the alphabet is sure to be there.
NAMES = st.text(
    st.sampled_from(string.ascii_letters + string.digits + " _-.:%$\"'\u00e9\u00df\U0001f600"),
    min_size=1,
    max_size=12,
    # Lists of names in settings have no blanks around theirs.
).filter(lambda name: name == name.strip())


class Column(NamedTuple):
    name: str
    kind: str
    is_required: bool
    default: Any


class Case(NamedTuple):
    """A table, and what is done: changes of rows, deliveries and kills, each by a number."""

    keys: list[Column]
    others: list[Column]
    identity: str
    steps: list[tuple[str, int, list[Any]]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    names = draw(st.lists(NAMES, min_size=2, max_size=7, unique=True))
    count = draw(st.integers(1, min(2, len(names) - 1)))
    keys = [Column(name, draw(st.sampled_from(KEY_KINDS)), True, None) for name in names[:count]]
    others = [_other(draw, name) for name in names[count:]]
    verbs = st.sampled_from(
        ["write", "write", "write", "delete", "move", "deliver", "kill", "lose"]
    )
    steps = []
    for _ in range(draw(st.integers(3, 14))):
        verb = draw(verbs)
        row = [draw(_value(one)) for one in (*keys, *others)] if verb in ("write", "move") else []
        steps.append((verb, draw(st.integers(0, 7)), row))
    return Case(keys, others, draw(st.sampled_from(["DEFAULT", "FULL"])), steps)


def _other(draw: st.DrawFn, name: str) -> Column:
    kind = draw(st.sampled_from(sorted(KINDS)))
    default = draw(st.none() | KINDS[kind])
    return Column(name, kind, draw(st.booleans()), default)


def _value(column: Column) -> st.SearchStrategy[Any]:
    values = KINDS[column.kind]
    return values if column.is_required else st.none() | values


def called(column: Column) -> sql.SQL:
    """Return a column's name where values are placeholders."""
    return sql.SQL(sql.Identifier(column.name).as_string().replace("%", "%%"))


class Table:
    """The table, its copy, and the rows that there are."""

    def __init__(self, database: psycopg.Connection[Any], case: Case) -> None:
        self._database = database
        self._case = case
        self.keys: list[list[Any]] = []
        columns = [self._definition(one) for one in (*case.keys, *case.others)]
        key = sql.SQL(", ").join(sql.Identifier(one.name) for one in case.keys)
        for name in ("a", "b"):
            made = sql.SQL("CREATE TABLE {} ({}, PRIMARY KEY ({}))").format(
                sql.Identifier(name), sql.SQL(", ").join(columns), key
            )
            database.execute(made)
        database.execute(f"ALTER TABLE a REPLICA IDENTITY {case.identity}".encode())

    def _definition(self, column: Column) -> sql.Composed:
        default = "" if column.default is None else " DEFAULT {}"
        return sql.SQL("{} {}{}{}").format(
            sql.Identifier(column.name),
            sql.SQL(column.kind),
            sql.SQL(" NOT NULL" if column.is_required else ""),
            sql.SQL(default).format(sql.Literal(column.default)) if default else sql.SQL(""),
        )

    def write(self, row: list[Any]) -> None:
        """Insert a row, or change the one that has its key."""
        case = self._case
        names = [called(one) for one in (*case.keys, *case.others)]
        changes = [sql.SQL("{0} = EXCLUDED.{0}").format(called(one)) for one in case.others]
        self._database.execute(
            sql.SQL("INSERT INTO a ({}) VALUES ({}) ON CONFLICT ({}) DO UPDATE SET {}").format(
                sql.SQL(", ").join(names),
                sql.SQL(", ").join(sql.Placeholder() * len(names)),
                sql.SQL(", ").join(names[: len(case.keys)]),
                sql.SQL(", ").join(changes),
            ),
            row,
        )
        self.keys.append(row[: len(case.keys)])

    def delete(self, number: int) -> None:
        if self.keys:
            key = self.keys[number % len(self.keys)]
            self._database.execute(sql.SQL("DELETE FROM a WHERE {}").format(self._at_key()), key)

    def move(self, number: int, row: list[Any]) -> None:
        """Change a row's key, unless another row has the new one."""
        if not self.keys:
            return
        key, new = self.keys[number % len(self.keys)], row[: len(self._case.keys)]
        changes = [sql.SQL("{} = %s").format(called(one)) for one in self._case.keys]
        moved = sql.SQL("UPDATE a SET {} WHERE {}").format(
            sql.SQL(", ").join(changes), self._at_key()
        )
        try:
            self._database.execute(moved, [*new, *key])
        except psycopg.errors.UniqueViolation:
            return
        self.keys.append(new)

    def _at_key(self) -> sql.Composed:
        return sql.SQL(" AND ").join(
            sql.SQL("{} = %s").format(called(one)) for one in self._case.keys
        )

    def differences(self) -> list[tuple[str, str]]:
        """Return the rows that only the table has, or only its copy."""
        asked = """
        SELECT 'table', t::text FROM (SELECT * FROM a EXCEPT ALL SELECT * FROM b) t
        UNION ALL SELECT 'copy', t::text FROM (SELECT * FROM b EXCEPT ALL SELECT * FROM a) t
        """
        return self._database.execute(asked).fetchall()


class Topic:
    """Bytes, and up to where they were stored and read."""

    def __init__(self) -> None:
        self._records: list[tuple[str, bytes | None, bytes | None]] = []
        self._converters = {}
        for kind in ("key", "value"):
            converter = self._converters[kind] = JsonConverter()
            converter.configure({"converter.type": kind})

    def __len__(self) -> int:
        return len(self._records)

    def append(self, record: SourceRecord, value: Any) -> None:
        schema = None if value is None else value.schema
        convert = {kind: one.from_connect_data for kind, one in self._converters.items()}
        key = convert["key"](record.topic, record.key_schema, record.key)
        self._records.append((record.topic, key, convert["value"](record.topic, schema, value)))

    def read(self, begin: int) -> Iterator[SinkRecord]:
        for offset, (topic, key, value) in enumerate(self._records[begin:], begin):
            read = {kind: one.to_connect_data for kind, one in self._converters.items()}
            key_found, found = read["key"](topic, key), read["value"](topic, value)
            yield SinkRecord(
                topic=topic,
                kafka_partition=0,
                kafka_offset=offset,
                key=key_found.value,
                key_schema=key_found.schema,
                value=found.value,
                value_schema=found.schema,
                timestamp_ms=0,
            )


class Way:
    """A source and a sink, which can be killed."""

    def __init__(self, source: Any, config: dict[str, str], sink: dict[str, str]) -> None:
        self._made, self._config, self._sink_config = source, config, sink
        self.kept, self.topic = Kept(), Topic()
        self._committed = 0
        self._source: Any = None
        self._sink: JdbcSinkTask | None = None

    def deliver(self, *, is_kept: bool = True, polls: int = 3) -> int:
        """Read and write what there is. Returns how many records there were."""
        if self._source is None:
            self._source = started_source(self._made(), self._config, self.kept)
        count = 0
        for _ in range(polls):
            for record in self._source.poll() or ():
                count += 1
                value = record.value
                if "after" in {field.name for field in (value.schema.fields if value else ())}:
                    value = value["after"]
                self.topic.append(record, value)
                self._source.commit_record(record, None)
                if is_kept:
                    self.kept.keep(record)
        if self._sink is None:
            self._sink = JdbcSinkTask()
            started_sink(self._sink, self._sink_config)
        records = list(self.topic.read(self._committed))
        self._sink.put(records)
        if is_kept:
            self._committed = len(self.topic)
        return count

    def kill(self) -> None:
        for task in (self._source, self._sink):
            if task is not None:
                task.stop()
        self._source = self._sink = None


@pytest.fixture(scope="module")
def server() -> Iterator[PostgreSql]:
    with PostgreSql() as running:
        yield running


LIMITS = settings(
    max_examples=COUNT,
    deadline=None,
    derandomize="ROUND_TRIPS" not in os.environ,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.generate),
)
EXACT = {
    "decimal.handling.mode": "string",
    "time.precision.mode": "isostring",
    "poll.interval.ms": "1",
}


def walk(table: Table, case: Case, way: Way, *, deletes: bool) -> None:
    for verb, number, row in case.steps:
        match verb:
            case "write":
                table.write(row)
            case "delete" if deletes:
                table.delete(number)
            case "move" if deletes:
                table.move(number, row)
            case "deliver":
                way.deliver()
            case "kill":
                way.deliver(polls=number % 3)
                way.kill()
            case "lose":
                # What was stored is not known to have been.
                way.deliver(is_kept=False)
                way.kill()
            case _:
                pass


@LIMITS
@given(case=cases())
def test_changes_make_the_target_what_the_source_is(server: PostgreSql, case: Case) -> None:
    with emptied(server) as database:
        table = Table(database, case)
        config = {
            "database.hostname": "127.0.0.1",
            "database.port": str(server.port),
            "database.user": "postgres",
            "database.dbname": "postgres",
            "table.include.list": "public.a",
            "topic.prefix": "shop",
            "slot.name": "s",
            "publication.name": "p",
            "max.batch.size": "3",
            **EXACT,
        }
        sink = {
            "connection.url": server.url,
            "table.name.format": "b",
            "insert.mode": "upsert",
            "pk.mode": "record_key",
            "delete.enabled": "true",
        }
        way = Way(PostgresSourceConnector, config, sink)
        walk(table, case, way, deletes=True)
        while way.deliver():
            pass
        way.kill()
        assert table.differences() == []


@LIMITS
@given(case=cases())
def test_rows_that_are_read_make_the_target_what_the_source_is(
    server: PostgreSql, case: Case
) -> None:
    with emptied(server) as database:
        table = Table(database, case)
        config = {
            "connection.url": server.url,
            "mode": "bulk",
            "table.whitelist": "a",
            "topic.prefix": "",
            "timestamp.granularity": "micros_iso_datetime_string",
            "poll.interval.ms": "1",
            "batch.max.rows": "3",
        }
        sink = {
            "connection.url": server.url,
            "table.name.format": "b",
            "insert.mode": "upsert",
            "pk.mode": "record_value",
            "pk.fields": ",".join(one.name for one in case.keys),
        }
        way = Way(JdbcSourceConnector, config, sink)
        walk(table, case, way, deletes=False)
        way.kill()
        way.deliver(polls=20)
        way.kill()
        assert table.differences() == []
