"""What the definition of a column says is in the schema, as in Debezium."""

import datetime
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from connect.connectors.postgresql.rows import with_default, zero_text
from connect.connectors.postgresql.types import Type
from connect.connectors.postgresql.values import Modes, codec_of
from connect.converters.json_converter import JsonConverter
from millstream.connect import Schema, SourceRecord
from tests.lib.connect_tasks import Kept
from tests.lib.postgresql import PostgreSql
from tests.lib.postgresql_changes import Reader, emptied

ZEROS = {
    "b": ("BOOLEAN", False),
    "i": ("INT", 0),
    "r": ("REAL", 0.0),
    "n": ("NUMERIC(9,2)", Decimal("0.00")),
    "t": ("TEXT", ""),
    "raw": ("BYTEA", b""),
    "d": ("DATE", 0),
    "ts": ("TIMESTAMP", 0),
    "tz": ("TIMESTAMPTZ", "1970-01-01T00:00:00.000000Z"),
    "j": ("JSONB", "{}"),
    "u": ("UUID", "00000000-0000-0000-0000-000000000000"),
    "bits": ("BIT(9)", b"\0\0"),
    "ar": ("INT[]", []),
    "m": ("mood", ""),
}
DEFAULTS: list[tuple[str, str, Any]] = [
    ("INT", "7", 7),
    ("INT", "-7", -7),
    ("BIGINT", "9223372036854775807", (1 << 63) - 1),
    ("REAL", "1.5", 1.5),
    ("DOUBLE PRECISION", "1e300", 1e300),
    ("NUMERIC(9,2)", "1.5", Decimal("1.50")),
    ("BOOLEAN", "true", True),
    ("TEXT", "'it''s'", "it's"),
    ("VARCHAR(9)", "''", ""),
    ("CHAR(3)", "'a'", "a"),
    ("DATE", "'2026-01-02'", 20455),
    ("TIME", "'03:04'", 11_040_000_000),
    ("TIMESTAMP", "'2026-01-02 03:04:05'", 1_767_323_045_000_000),
    ("TIMESTAMPTZ", "'2026-01-02 03:04:05+02'", "2026-01-02T01:04:05.000000Z"),
    ("INTERVAL", "'1 day'", 86_400_000_000),
    ("JSONB", "'{}'", "{}"),
    ("UUID", f"'{'ab' * 16}'", "abababab-abab-abab-abab-abababababab"),
    ("BIT", "B'1'", True),
    ("mood", "'ok'", "ok"),
    # The call of a function: a zero of its type.
    ("TIMESTAMP", "now()", 0),
    ("DATE", "CURRENT_DATE", 0),
    ("INT", "nextval('counted')", 0),
    ("UUID", "gen_random_uuid()", "00000000-0000-0000-0000-000000000000"),
    ("TEXT", "upper('a')", ""),
    # What is no constant, has no simple value, or is of a domain, has no default.
    ("price", "5", None),
    ("price", "", None),
    ("INT", "1 + 1", None),
    ("TEXT", "CURRENT_USER", None),
    ("TEXT", "'a' || 'b'", None),
    ("TEXT", "NULL", None),
    ("INT[]", "'{1}'", None),
    ("NUMERIC", "1", None),
    ("DATE", "'infinity'", None),
]


@pytest.fixture(scope="module")
def server() -> Iterator[PostgreSql]:
    with PostgreSql() as running:
        yield running


@pytest.fixture
def database(server: PostgreSql) -> Iterator[psycopg.Connection[Any]]:
    with emptied(server) as connection:
        connection.execute("CREATE TYPE mood AS ENUM ('ok', 'sad')")
        connection.execute("CREATE DOMAIN price AS NUMERIC(8,3) DEFAULT 1.5")
        connection.execute("CREATE DOMAIN sure AS INT NOT NULL")
        connection.execute("CREATE SEQUENCE counted")
        yield connection


def field(record: SourceRecord, name: str) -> Schema:
    found = record.value_schema and record.value_schema.field("after")
    assert found is not None
    column = found.schema.field(name)
    assert column is not None
    return column.schema


def is_written(record: SourceRecord) -> bool:
    """Return whether the schema holds the value: a converter checks it."""
    converter = JsonConverter()
    converter.configure({"converter.type": "value"})
    data = converter.from_connect_data("t", record.value_schema, record.value)
    return bool(converter.to_connect_data("t", data).value == record.value)


@pytest.mark.slow
def test_columns_that_are_not_null_are_required(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    database.execute("CREATE TABLE t (id INT PRIMARY KEY, a INT NOT NULL, b INT, c sure)")
    database.execute("INSERT INTO t VALUES (1, 1, NULL, 1)")
    reader = Reader(server)
    (first,) = reader.read(1)
    database.execute("INSERT INTO t VALUES (2, 1, 1, 1)")
    (second,) = reader.read(1)
    reader.task.stop()
    assert first.value_schema == second.value_schema
    assert {name: field(first, name).optional for name in ("id", "a", "b", "c")} == {
        "id": False,
        "a": False,
        "b": True,
        "c": False,
    }
    assert is_written(first)


@pytest.mark.slow
def test_a_constant_is_the_default_of_its_schema(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    columns = ", ".join(
        f"c{place} {kind} {'DEFAULT ' + text if text else ''} NOT NULL"
        if text != "NULL"
        else f"c{place} {kind} DEFAULT NULL"
        for place, (kind, text, _) in enumerate(DEFAULTS)
    )
    database.execute(f"CREATE TABLE t (id INT PRIMARY KEY, {columns})".encode())
    database.execute(
        b"INSERT INTO t (id, %s) VALUES (1, '2026-01-01')" % f"c{len(DEFAULTS) - 1}".encode()
    )
    reader = Reader(server)
    (record,) = reader.read(1)
    reader.task.stop()
    for place, (kind, text, expected) in enumerate(DEFAULTS):
        assert field(record, f"c{place}").default == expected, (kind, text)
    assert is_written(record)


@pytest.mark.slow
def test_a_nullable_column_has_its_default_until_its_first_null(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    database.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT DEFAULT 5)")
    database.execute("INSERT INTO t VALUES (1, 6)")
    reader = Reader(server)
    (first,) = reader.read(1)
    # The old row of a delete has its key alone: what the log lacks is no null of the column.
    database.execute("DELETE FROM t; INSERT INTO t VALUES (2, 7); INSERT INTO t VALUES (3, NULL)")
    *_, second, third = reader.read(4)
    reader.task.stop()
    assert [field(one, "n").default for one in (first, second, third)] == [5, 5, None]
    assert [one.value["after"]["n"] for one in (first, second, third)] == [6, 7, None]
    converter = JsonConverter()
    converter.configure({"converter.type": "value"})
    data = converter.from_connect_data("t", third.value_schema, third.value) or b""
    assert json.loads(data)["payload"]["after"]["n"] is None


@pytest.mark.slow
def test_what_the_identity_lacks_is_a_default_or_a_zero(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    columns = ", ".join(f"{name} {kind} NOT NULL" for name, (kind, _) in ZEROS.items())
    database.execute(
        f"CREATE TABLE t (id INT PRIMARY KEY, n5 INT DEFAULT 5 NOT NULL, x INT, {columns})".encode()
    )
    reader = Reader(server, snapshot_mode="no_data")
    assert reader.is_quiet()
    database.execute(
        "INSERT INTO t VALUES (1, 2, 3, true, 1, 1, 1, 'x', 'x', 'today', 'now', 'now', '1', "
        "gen_random_uuid(), B'111111111', '{1}', 'ok')"
    )
    database.execute("DELETE FROM t")
    _, deleted, _ = reader.read(3)
    reader.task.stop()
    before = deleted.value["before"]
    for name, (kind, zero) in ZEROS.items():
        assert before[name] == zero, kind
    assert (before["id"], before["n5"], before["x"]) == (1, 5, None)
    assert is_written(deleted)


@pytest.mark.slow
def test_a_null_that_is_older_than_its_constraint_is_a_null(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    database.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT)")
    kept = Kept()
    reader = Reader(server, kept, snapshot_mode="no_data")
    assert reader.is_quiet()
    reader.task.stop()
    database.execute("INSERT INTO t VALUES (1, NULL)")
    database.execute("UPDATE t SET n = 4")
    database.execute("ALTER TABLE t ALTER n SET NOT NULL")
    reader = Reader(server, kept, snapshot_mode="no_data")
    records = reader.read(2)
    reader.task.stop()
    assert [one.value["after"]["n"] for one in records] == [None, 4]
    assert all(map(is_written, records))


@pytest.mark.slow
def test_items_of_an_array_of_an_enum_are_required_until_one_is_null(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    database.execute("CREATE TABLE t (id INT PRIMARY KEY, m mood[], i INT[])")
    database.execute("INSERT INTO t VALUES (1, '{ok,sad}', '{1}')")
    reader = Reader(server)
    (first,) = reader.read(1)
    database.execute("INSERT INTO t VALUES (2, '{ok,NULL}', '{NULL}')")
    (second,) = reader.read(1)
    reader.task.stop()
    items = [field(one, "m").value_schema for one in (first, second)]
    assert [one is not None and one.optional for one in items] == [False, True]
    items_of_numbers = field(first, "i").value_schema
    assert items_of_numbers is not None
    assert items_of_numbers.optional
    assert second.value["after"]["m"] == ["ok", None]
    assert is_written(first)
    assert is_written(second)


@pytest.mark.parametrize(
    ("precision", "text", "expected"),
    [
        (-1, "2026-01-02 03:04:05+00", "2026-01-02T03:04:05.000000Z"),
        (-1, "2026-01-02 03:04:05.5+00", "2026-01-02T03:04:05.500000Z"),
        (-1, "1969-12-31 23:59:59.999999+00", "1969-12-31T23:59:59.999999Z"),
        (3, "2026-01-02 03:04:05+00", "2026-01-02T03:04:05.000Z"),
        (0, "2026-01-02 03:04:05+00", "2026-01-02T03:04:05Z"),
        (-1, "infinity", "infinity"),
    ],
)
def test_a_timestamptz_has_the_digits_of_its_column(
    precision: int, text: str, expected: str
) -> None:
    kind = Type("timestamptz", precision)
    assert codec_of(kind, Modes(), optional=True).parse(text) == expected


def test_days_of_connect_have_defaults_and_zeros() -> None:
    kind = Type("date")
    codec = codec_of(kind, Modes(times="connect"), optional=False)
    made = with_default(codec, kind, "'2026-01-02'::date")
    assert made.schema.default == datetime.date(2026, 1, 2)
    assert codec.parse(zero_text(kind)) == datetime.date(1970, 1, 1)
