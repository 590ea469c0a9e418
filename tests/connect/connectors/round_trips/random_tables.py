"""Random tables, whose rows change while a source and a sink read and write them and are killed.

Source and sink go on from what was kept, which is less than what was done. Between them are the
converter's bytes.
"""

import datetime
import os
import string
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import psycopg
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from psycopg import sql

from connect.converters.json_converter import JsonConverter
from connect.converters.primitives import StringConverter
from connect.transforms.schema_metadata import ValueToKey
from millstream.connect import SinkRecord, SinkTask, SourceRecord, TopicPartition
from tests.connect.connectors.round_trips.held_values import ASKED, as_float32
from tests.lib.connect_tasks import Kept, started_sink, started_source
from tests.lib.postgresql import PostgreSql

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


def plain_names() -> st.SearchStrategy[str]:
    """Names that are also names in Avro."""
    return st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,11}", fullmatch=True)


@st.composite
def cases(draw: st.DrawFn, names_of: st.SearchStrategy[str] = NAMES) -> Case:
    names = draw(st.lists(names_of, min_size=2, max_size=7, unique=True))
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

    def held_rows(self, held: Callable[[str, Any], Any]) -> list[dict[str, Any]]:
        """Return what a target has to hold of each row: of a value of a type, what `held` says."""
        columns = (*self._case.keys, *self._case.others)
        asked = sql.SQL(", ").join(
            sql.SQL(ASKED.get(one.kind, "{}")).format(sql.Identifier(one.name)) for one in columns
        )
        rows = self._database.execute(sql.SQL("SELECT {} FROM a").format(asked)).fetchall()
        return [
            {one.name: held(one.kind, value) for one, value in zip(columns, row, strict=True)}
            for row in rows
        ]


class Topic:
    """Bytes, and up to where they were stored and read."""

    def __init__(self, *, has_text_keys: bool) -> None:
        self._records: list[tuple[str, bytes | None, bytes | None]] = []
        self._converters: dict[str, Any] = {}
        for kind in ("key", "value"):
            converter = self._converters[kind] = JsonConverter()
            has_schema = str(kind == "value" or not has_text_keys).lower()
            converter.configure({"converter.type": kind, "schemas.enable": has_schema})
        self._readers: dict[str, Any] = dict(self._converters)
        if has_text_keys:
            self._readers["key"] = StringConverter()
            self._readers["key"].configure({"converter.type": "key"})

    def begin_of(self, count: int) -> dict[TopicPartition, int]:
        """Return the offset up to which so many records were read."""
        return {TopicPartition(self._records[0][0], 0): count} if self._records else {}

    def tombstones(self) -> set[int]:
        return {offset for offset, record in enumerate(self._records) if record[2] is None}

    def __len__(self) -> int:
        return len(self._records)

    def append(self, record: SourceRecord, value: Any) -> None:
        schema = None if value is None else value.schema
        convert = {kind: one.from_connect_data for kind, one in self._converters.items()}
        key = convert["key"](record.topic, record.key_schema, record.key)
        self._records.append((record.topic, key, convert["value"](record.topic, schema, value)))

    def read(self, begin: int) -> Iterator[SinkRecord]:
        for offset, (topic, key, value) in enumerate(self._records[begin:], begin):
            read = {kind: one.to_connect_data for kind, one in self._readers.items()}
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


class Target(NamedTuple):
    """A sink, and how its records come to it."""

    task: Callable[[], SinkTask]
    config: dict[str, str]
    change: Callable[[SinkRecord], SinkRecord] = lambda record: record
    """The sink's transformations."""
    is_unwrapped: bool = True
    """Whether the topic has rows, not changes with the row before and after."""
    has_text_keys: bool = False
    """Whether the sink reads keys as texts: their JSON."""
    key_fields: tuple[str, ...] = ()
    """The fields of the value of which the source's transformation makes the key, if any."""


def bulk(server: PostgreSql, granularity: str) -> dict[str, str]:
    return {
        "connection.url": server.url,
        "mode": "bulk",
        "table.whitelist": "a",
        "topic.prefix": "",
        "timestamp.granularity": granularity,
        "poll.interval.ms": "1",
        "batch.max.rows": "3",
    }


class Way:
    """A source and a sink, which can be killed."""

    def __init__(self, source: Any, config: dict[str, str], target: Target) -> None:
        self._made, self._config, self.target = source, config, target
        self.kept, self.topic = Kept(), Topic(has_text_keys=target.has_text_keys)
        self._committed = 0
        self._source: Any = None
        self._sink: Any = None
        self._next = 0
        self._keyed = ValueToKey()
        if target.key_fields:
            self._keyed.configure({"fields": ",".join(target.key_fields)})

    def deliver(self, *, is_kept: bool = True, polls: int = 3) -> int:
        """Read and write what there is. Returns how many records there were."""
        if self._source is None:
            self._source = started_source(self._made(), self._config, self.kept)
        count = 0
        for _ in range(polls):
            for record in self._source.poll() or ():
                count += 1
                told = self._keyed.apply(record) if self.target.key_fields else record
                self.topic.append(told, self._value(told))
                self._source.commit_record(record, None)
                if is_kept:
                    self.kept.keep(record)
        self.write(is_kept=is_kept)
        return count

    def _value(self, record: SourceRecord) -> Any:
        value = record.value
        names = {field.name for field in (value.schema.fields if value else ())}
        return value["after"] if self.target.is_unwrapped and "after" in names else value

    def write(self, *, is_kept: bool = True) -> None:
        """Give the sink what the topic has."""
        if self._sink is None:
            self._sink = self.target.task()
            started_sink(self._sink, self.target.config)
            self._sink.open(list(self.topic.begin_of(0)))
            self._next = self._committed
        self._sink.put([self.target.change(record) for record in self.topic.read(self._next)])
        self._next = len(self.topic)
        if is_kept and self._next:
            (self._committed,) = self._sink.pre_commit(self.topic.begin_of(self._next)).values()

    def kill(self) -> None:
        for task in (self._source, self._sink):
            if task is not None:
                task.stop()
        self._source = self._sink = None


def cdc(server: PostgreSql, modes: dict[str, str]) -> dict[str, str]:
    return {
        "database.hostname": "127.0.0.1",
        "database.port": str(server.port),
        "database.user": "postgres",
        "database.dbname": "postgres",
        "table.include.list": "public.a",
        "topic.prefix": "shop",
        "slot.name": "s",
        "publication.name": "p",
        "max.batch.size": "3",
        "poll.interval.ms": "1",
        **modes,
    }


def comparable(case: Case, rows: list[dict[str, Any]]) -> list[str]:
    """Return rows as texts, in an order of their own."""
    reals = {one.name for one in (*case.keys, *case.others) if one.kind == "REAL"}

    def alike(name: str, value: Any) -> Any:
        # A number of 32 bits has many texts, a point in time many zones.
        is_moment = isinstance(value, datetime.datetime)
        return as_float32(value) if name in reals else value.isoformat() if is_moment else value

    return sorted(repr(sorted((name, alike(name, row[name])) for name in row)) for row in rows)


LIMITS = settings(
    max_examples=COUNT,
    deadline=None,
    derandomize="ROUND_TRIPS" not in os.environ,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.generate),
)


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


FEWER = settings(LIMITS, max_examples=COUNT if "ROUND_TRIPS" in os.environ else 6)
