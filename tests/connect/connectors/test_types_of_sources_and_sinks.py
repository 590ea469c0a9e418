"""Every type that a source makes, in every sink: the table of pairs.

A row of PostgreSQL goes through PostgresSource and the bytes of a converter into a table with the
same columns, a table that the sink makes, a document, and a file of each format.
"""

import base64
import io
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import fastavro
import psycopg
import pytest
from pyarrow import parquet

from connect.connectors.elasticsearch.documents import Documents
from connect.connectors.elasticsearch.settings import CONFIG as DOCUMENTS
from connect.connectors.jdbc.sink_task import JdbcSinkTask
from connect.connectors.object_store.files import File
from connect.connectors.object_store.formats import format_of
from connect.connectors.object_store.settings import CONFIG as FILES
from connect.converters.json_converter import JsonConverter
from millstream.connect import SinkRecord, Struct
from millstream.connect.data.logical import decimal_of
from tests.lib.connect_tasks import sink_record, started_sink
from tests.lib.postgresql import PostgreSql
from tests.lib.postgresql_changes import Reader, emptied

pytestmark = pytest.mark.slow


class Pair(NamedTuple):
    """A type of PostgreSQL, a value, and the text of the value in a table that the sink made.

    The text is None if the sink refuses to make a column, with a sentence.
    """

    kind: str
    value: str
    in_made: str | None


BIG = "123456789012345678901234567890.0123456789"
BASE: dict[str, Pair] = {
    "bool": Pair("BOOLEAN", "true", "true"),
    "int2": Pair("SMALLINT", "-32768", "-32768"),
    "int8": Pair("BIGINT", "-9223372036854775808", "-9223372036854775808"),
    "float8": Pair("DOUBLE PRECISION", "0.1", "0.1"),
    "numeric": Pair("NUMERIC", BIG, BIG),
    "numeric_whole": Pair("NUMERIC", "-1200", "-1200"),
    "numeric_2": Pair("NUMERIC(9,2)", "-1.25", "-1.25"),
    "money": Pair("MONEY", "'-12.34'", "-12.34"),
    "text": Pair("TEXT", "E'\\u00e9\"\\\\,{}'", 'é"\\,{}'),
    "char": Pair("CHAR(3)", "'a'", "a  "),
    "bytea": Pair("BYTEA", "'\\x00ff'", "\\x00ff"),
    "bit1": Pair("BIT", "B'1'", "true"),
    "bits": Pair("BIT(12)", "B'000000000101'", "\\x0500"),
    "json": Pair("JSON", "'{\"a\": 1}'", '{"a": 1}'),
    "jsonb": Pair("JSONB", "'{\"a\": 1}'", '{"a": 1}'),
    "xml": Pair("XML", "'<a/>'", "<a/>"),
    "uuid": Pair("UUID", f"'{'ab' * 16}'", "abababab-abab-abab-abab-abababababab"),
    "inet": Pair("INET", "'10.0.0.1/8'", "10.0.0.1/8"),
    "range": Pair("INT4RANGE", "'[1,5)'", "[1,5)"),
    "vector": Pair("TSVECTOR", "'a:1'", "'a':1"),
    "mood": Pair("mood", "'a,b'", "a,b"),
    "point": Pair("POINT", "'(1.5,-2)'", None),
    "timestamptz": Pair("TIMESTAMPTZ", "'2026-01-02 03:04:05.678901+00'",
                        "2026-01-02T03:04:05.678901Z"),
    "timestamptz_late": Pair("TIMESTAMPTZ", "'12345-01-02 03:04:05+00'",
                             "+12345-01-02T03:04:05.000000"),
    "timestamptz_bc": Pair("TIMESTAMPTZ", "'0044-03-15 00:00:00+00 BC'",
                           "-0043-03-15T00:00:00.000000"),
    "timestamptz_inf": Pair("TIMESTAMPTZ", "'-infinity'", "-infinity"),
    "timetz": Pair("TIMETZ", "'01:02:03.5+00'", "01:02:03.5Z"),
    "ints": Pair("INT[]", "'{1,NULL,3}'", "{1,NULL,3}"),
    "texts": Pair("TEXT[]", "ARRAY['a,b', 'NULL', NULL, '\"', '\\']",
                  '{"a,b","NULL",NULL,"\\"","\\\\"}'),
    "uuids": Pair("UUID[]", f"'{{{'ab' * 16}}}'", "{abababab-abab-abab-abab-abababababab}"),
    "numerics": Pair("NUMERIC[]", "'{1.25,-3}'", "{1.25,-3}"),
    "moods": Pair("mood[]", "'{ok,\"a,b\"}'", '{ok,"a,b"}'),
    "points": Pair("POINT[]", "'{\"(1,2)\"}'", None),
}  # fmt: skip
CLOCKS: dict[str, Pair] = {
    "date": Pair("DATE", "'2026-01-02'", "20455"),
    "date_bc": Pair("DATE", "'0044-03-15 BC'", "-735160"),
    "date_late": Pair("DATE", "'12345-01-02'", None),
    "time": Pair("TIME", "'03:04:05.678901'", "11045678901"),
    "time_end": Pair("TIME", "'24:00'", "86400000000"),
    "time_3": Pair("TIME(3)", "'03:04:05.678'", "11045678"),
    "timestamp": Pair("TIMESTAMP", "'2026-01-02 03:04:05.678901'", "1767323045678901"),
    "timestamp_bc": Pair("TIMESTAMP", "'0044-03-15 00:00:00.5 BC'", "-63517823999500000"),
    "timestamp_3": Pair("TIMESTAMP(3)", "'1969-12-31 23:59:59.999'", "-1"),
    "timestamp_inf": Pair("TIMESTAMP", "'infinity'", "9223372036825200000"),
    "dates": Pair("DATE[]", "'{2026-01-02,NULL}'", "{20455,NULL}"),
    "timestamps": Pair("TIMESTAMP[]", "'{\"2026-01-02 03:04:05\"}'", "{1767323045000000}"),
    "interval": Pair("INTERVAL", "'76:05:06.789'", "273906789000"),
}
CONNECTS: dict[str, Pair] = {
    "date": Pair("DATE", "'2026-01-02'", "2026-01-02"),
    "time": Pair("TIME", "'03:04:05.678'", "03:04:05.678"),
    "timestamp": Pair("TIMESTAMP", "'2026-01-02 03:04:05.678'", "2026-01-02 03:04:05.678"),
    "dates": Pair("DATE[]", "'{2026-01-02,NULL}'", "{2026-01-02,NULL}"),
    "hstore": Pair("HSTORE", '\'"a"=>"b\\"\\\\c", "n"=>NULL\'', None),
}
SETS: dict[str, tuple[dict[str, Pair], dict[str, str]]] = {
    "base": (BASE, {}),
    "adaptive": (CLOCKS, {}),
    "microseconds": (CLOCKS, {"time.precision.mode": "microseconds"}),
    "isostring": (
        CLOCKS,
        {"time.precision.mode": "isostring", "interval.handling.mode": "string"},
    ),
    "connect": (CONNECTS, {"time.precision.mode": "connect", "hstore.handling.mode": "map"}),
    "string": (
        {name: BASE[name] for name in ("numeric", "numeric_whole", "numeric_2", "money")},
        {"decimal.handling.mode": "string"},
    ),
}
"""Of each set: the types, and the settings that make other schemas of them."""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgreSql]:
    with PostgreSql() as running:
        yield running


@pytest.fixture
def database(server: PostgreSql) -> Iterator[psycopg.Connection[Any]]:
    with emptied(server) as connection:
        connection.execute("CREATE TYPE mood AS ENUM ('ok', 'a,b')")
        connection.execute("CREATE EXTENSION hstore")
        connection.execute("SET timezone = 'UTC'")
        yield connection


def one_record(
    server: PostgreSql,
    database: psycopg.Connection[Any],
    pairs: dict[str, Pair],
    settings: dict[str, str],
) -> SinkRecord:
    """Return the row as a sink gets it."""
    kinds = ", ".join(f"{name} {pair.kind}" for name, pair in pairs.items())
    for table in ("a", "b"):
        database.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, {kinds})".encode())
    values = ", ".join(pair.value for pair in pairs.values())
    database.execute(f"INSERT INTO a VALUES (1, {values})".encode())
    reader = Reader(server, more={"table.include.list": "public.a", **settings})
    (record,) = reader.read(1)
    reader.task.stop()
    converter = JsonConverter()
    converter.configure({"converter.type": "value"})
    row = record.value["after"]
    data = converter.from_connect_data("a", row.schema, row)
    return sink_record(0, None, converter.to_connect_data("a", data).value)


def put(server: PostgreSql, record: SinkRecord, table: str) -> list[tuple[SinkRecord, Exception]]:
    task = JdbcSinkTask()
    config = {"connection.url": server.url, "table.name.format": table, "auto.create": "true"}
    side = started_sink(task, config, tolerates=True)
    task.put([record])
    task.stop()
    return side.reported


@pytest.mark.parametrize("name", SETS)
def test_a_table_with_the_same_columns_gets_the_same_values(
    server: PostgreSql, database: psycopg.Connection[Any], name: str
) -> None:
    pairs, settings = SETS[name]
    record = one_record(server, database, pairs, settings)
    assert put(server, record, "b") == []
    for column in pairs:
        there, here = (
            database.execute(f"SELECT {column}::text FROM {table}".encode()).fetchall()
            for table in ("a", "b")
        )
        assert here == there, column


@pytest.mark.parametrize("name", ["base", "adaptive", "connect"])
def test_a_table_that_is_made_has_the_values_of_the_record(
    server: PostgreSql, database: psycopg.Connection[Any], name: str
) -> None:
    pairs, settings = SETS[name]
    record = one_record(server, database, pairs, settings)
    for column, pair in pairs.items():
        schema = record.value.schema.field(column).schema
        alone = Struct(type(schema).struct({column: schema}), {column: record.value[column]})
        reported = put(server, sink_record(0, None, alone), f"made_{column}")
        if pair.in_made is None and name != "adaptive":
            assert "doesn't have a mapping" in str(reported[0][1]), column
            continue
        assert reported == [], column
        found = database.execute(f"SELECT {column}::text FROM made_{column}".encode()).fetchall()
        if pair.in_made is not None:
            assert str(found[0][0]).removesuffix("Z") == pair.in_made.removesuffix("Z"), column


def test_a_table_of_sqlite_has_dates_times_and_exact_numbers(
    server: PostgreSql, database: psycopg.Connection[Any], tmp_path: Path
) -> None:
    names = ("date", "time", "time_3", "timestamp", "timestamp_3")
    pairs = {name: CLOCKS[name] for name in names} | {"n": Pair("NUMERIC", "-0.125", None)}
    record = one_record(server, database, pairs, {})
    with closing(sqlite3.connect(tmp_path / "a.db")) as there:
        kinds = ", ".join(f"{name} {pair.kind}" for name, pair in pairs.items())
        there.execute(f"CREATE TABLE b (id INTEGER, {kinds})")
        task = JdbcSinkTask()
        started_sink(
            task, {"connection.url": f"sqlite:///{tmp_path / 'a.db'}", "table.name.format": "b"}
        )
        task.put([record])
        task.stop()
        assert there.execute("SELECT * FROM b").fetchall() == [
            (
                1,
                "2026-01-02",
                "03:04:05.678901",
                "03:04:05.678000",
                "2026-01-02 03:04:05.678901",
                "1969-12-31 23:59:59.999000",
                -0.125,
            )
        ]


@pytest.mark.parametrize("name", SETS)
def test_documents_and_files_hold_every_value(
    server: PostgreSql, database: psycopg.Connection[Any], name: str, tmp_path: Path
) -> None:
    pairs, settings = SETS[name]
    record = one_record(server, database, pairs, settings)
    row = record.value
    documents = Documents(DOCUMENTS.parse({"connection.url": "http://x", "key.ignore": "true"}))
    operation = documents.operation(record)
    assert operation is not None
    document = json.loads(operation.lines[1])
    assert [one for one in ("id", *pairs) if document.get(one) is None] == []
    if isinstance(row["numeric"] if "numeric" in pairs else None, Struct):
        held = document["numeric"]
        unscaled = int.from_bytes(base64.b64decode(held["value"]), "big", signed=True)
        assert decimal_of(unscaled, held["scale"]) == Decimal(BIG)
    for kind, read in READERS.items():
        parsed = FILES.parse(
            {"store.url": tmp_path.as_uri(), "flush.size": "1", "format.class": kind}
        )
        (found,) = read(format_of(parsed)(File("a", row.schema, 0, 0, [record])))
        if kind == "JsonFormat":
            assert [one for one in ("id", *pairs) if found.get(one) is None] == []
            continue
        assert {one: told(value) for one, value in found.items()} == told(row), kind


def told(value: Any) -> Any:
    """Return a value with structs and maps as dicts, as files are read."""
    match value:
        case Struct():
            return {field.name: told(one) for field, one in value.items()}
        case [(str(), _), *_]:
            return dict(value)
        case list():
            return [told(one) for one in value]
        case _:
            return value


READERS: dict[str, Any] = {
    "ParquetFormat": lambda data: parquet.read_table(io.BytesIO(data)).to_pylist(),
    "AvroFormat": lambda data: list(fastavro.reader(io.BytesIO(data))),
    "JsonFormat": lambda data: [json.loads(line) for line in data.splitlines()],
}
