"""A row or table that cannot become records is set aside, and the other tables go on."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from millstream.connect import ConnectException, DataException, SourceRecord
from tests.lib.connect_tasks import Kept
from tests.lib.postgresql import PostgreSql
from tests.lib.postgresql_changes import Reader, emptied

pytestmark = pytest.mark.slow
TABLES = """
CREATE TABLE a (id INTEGER PRIMARY KEY, day DATE);
CREATE TABLE b (id INTEGER PRIMARY KEY, n INTEGER);
INSERT INTO a VALUES (1, '2026-01-02'); INSERT INTO b VALUES (1, 1)
"""
INFINITE = "INSERT INTO a VALUES (2, 'infinity')"
INDEXED = """
CREATE UNIQUE INDEX by_day ON a (day);
ALTER TABLE a ALTER day SET NOT NULL, REPLICA IDENTITY USING INDEX by_day
"""
FAIL = {"event.processing.failure.handling.mode": "fail"}


@pytest.fixture(scope="module")
def server() -> Iterator[PostgreSql]:
    with PostgreSql() as running:
        yield running


@pytest.fixture
def database(server: PostgreSql) -> Iterator[psycopg.Connection[Any]]:
    with emptied(server) as connection:
        connection.execute(TABLES)
        yield connection


def told(records: list[SourceRecord]) -> list[tuple[str, str, int]]:
    """Return table, operation and id of records with rows."""
    return [
        (one.topic.rpartition(".")[2], one.value["op"], one.value["after"]["id"])
        for one in records
        if not one.topic.startswith("__debezium-heartbeat")
    ]


def aside(reader: Reader) -> list[str]:
    return [
        one.labels["table"] for one in reader.task.metrics() if one.name.endswith("table_set_aside")
    ]


def test_a_row_of_the_snapshot_sets_its_table_aside(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    database.execute(INFINITE)
    database.execute("INSERT INTO a VALUES (3, '2026-01-03')")
    reader = Reader(server)
    assert told(reader.read(2)) == [("a", "r", 1), ("b", "r", 1)]
    assert aside(reader) == ["public.a"]
    note = str(reader.task.note())
    assert "public.a (Table public.a, column day, value 'infinity': is not a day" in note
    database.execute("INSERT INTO a VALUES (4, '2026-01-03')")
    database.execute("INSERT INTO b VALUES (2, 2)")
    assert told(reader.read(1)) == [("b", "c", 2)]
    reader.task.stop()
    reader = Reader(server, more={**FAIL, "slot.name": "s2"})
    with pytest.raises(DataException, match="value 'infinity'"):
        reader.task.poll()
    reader.task.stop()


@pytest.fixture
def reading(database: psycopg.Connection[Any]) -> Iterator[str]:
    """Yield a user who may not read table `a`."""
    database.execute(
        "CREATE ROLE reading LOGIN REPLICATION; GRANT USAGE ON SCHEMA public TO reading"
    )
    database.execute("GRANT SELECT ON b TO reading")
    database.execute("CREATE PUBLICATION p FOR TABLE a, b")
    yield "reading"
    database.execute("DROP OWNED BY reading; DROP ROLE reading")


def test_a_table_that_may_not_be_read_is_set_aside(
    server: PostgreSql, database: psycopg.Connection[Any], reading: str
) -> None:
    kept = Kept()
    reader = Reader(server, kept, database_user=reading)
    assert told(reader.read(1)) == [("b", "r", 1)]
    assert aside(reader) == ["public.a"]
    assert "permission denied for table a" in str(reader.task.note())
    database.execute("INSERT INTO a VALUES (4, NULL); INSERT INTO b VALUES (2, 2)")
    assert told(reader.read(1)) == [("b", "c", 2)]
    reader.task.stop()
    kept.offset_of.clear()
    reader = Reader(server, kept, more={**FAIL, "database.user": reading, "slot.name": "s2"})
    with pytest.raises(ConnectException, match=r"Table public\.a .*permission denied for table a"):
        reader.task.poll()
    reader.task.stop()


def test_a_table_that_is_dropped_before_its_rows_are_read_is_set_aside(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    database.execute("CREATE TABLE c (id INTEGER PRIMARY KEY); INSERT INTO c VALUES (5)")
    reader = Reader(server, max_batch_size="1")
    assert told(reader.read(1)) == [("a", "r", 1)]
    database.execute("DROP TABLE c")
    assert told(reader.read(1)) == [("b", "r", 1)]
    assert not reader.task.poll()
    assert aside(reader) == ["public.c"]
    reader.task.stop()


@pytest.mark.parametrize(
    ("before", "change", "reason"),
    [
        ("", INFINITE, "value 'infinity'"),
        (INDEXED, "DELETE FROM a", "lacks a column of the key"),
        (
            "",
            "TRUNCATE a; ALTER TABLE a DROP day, DROP id, "
            "ADD g INTEGER GENERATED ALWAYS AS (1) STORED PRIMARY KEY, ADD id INTEGER; "
            "INSERT INTO a (id) VALUES (7)",
            "lacks g of its key",
        ),
    ],
)
def test_a_change_of_the_log_sets_its_table_aside(
    server: PostgreSql,
    database: psycopg.Connection[Any],
    before: str,
    change: str,
    reason: str,
) -> None:
    database.execute(before.encode())
    kept = Kept()
    reader = Reader(server, kept)
    assert told(reader.read(2)) == [("a", "r", 1), ("b", "r", 1)]
    with database.transaction():
        database.execute("INSERT INTO b VALUES (2, 2)")
        database.execute(change.encode())
        database.execute("INSERT INTO b VALUES (3, 3)")
    assert told(reader.read(2)) == [("b", "c", 2), ("b", "c", 3)]
    assert aside(reader) == ["public.a"]
    assert reason in str(reader.task.note())
    assert reader.is_quiet()
    reader.task.stop()
    # A task that starts again knows it from the offset, since the slot is past that change.
    reader = Reader(server, kept)
    database.execute("INSERT INTO b VALUES (4, 4)")
    assert told(reader.read(1)) == [("b", "c", 4)]
    assert aside(reader) == ["public.a"]
    reader.task.stop()


def test_with_fail_a_change_stops_all_tables(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    reader = Reader(server, more=FAIL)
    reader.read(2)
    database.execute(INFINITE)
    with pytest.raises(DataException, match="value 'infinity'"):
        reader.read(1)
    reader.task.stop()


def test_the_last_table_is_not_set_aside(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    database.execute("CREATE TABLE odd (g INTEGER GENERATED ALWAYS AS (1) STORED PRIMARY KEY)")
    reader = Reader(server, table_include_list="public.odd")
    with pytest.raises(ConnectException, match="lacks g of its key"):
        reader.task.poll()
    reader.task.stop()
    reader = Reader(server, table_include_list="public.a,public.odd", slot_name="s2")
    assert told(reader.read(1)) == [("a", "r", 1)]
    database.execute(INFINITE)
    with pytest.raises(DataException, match="value 'infinity'"):
        reader.read(1)
    reader.task.stop()


def test_the_slot_waits_until_the_offset_says_what_is_set_aside(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    kept = Kept()
    reader = Reader(server, kept, max_batch_size="1")
    reader.read(2)
    before = dict(kept.offset_of)
    database.execute(INFINITE)
    (beat,) = reader.read(1)
    assert beat.topic == "__debezium-heartbeat.shop"
    # The offset is not stored yet, as until a flush, and the other table goes on all the same.
    kept.offset_of = dict(before)
    for id_ in range(10, 20):
        database.execute(f"INSERT INTO b VALUES ({id_}, 1)".encode())
        assert told(reader.read(1)) == [("b", "c", id_)]
        kept.offset_of = dict(before)
    reader.task.stop()
    # After a crash, the change comes again.
    reader = Reader(server, kept)
    assert told(reader.read(10)) == [("b", "c", id_) for id_ in range(10, 20)]
    assert aside(reader) == ["public.a"]
    reader.task.stop()


def test_a_new_snapshot_takes_a_table_up_again(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    database.execute(INFINITE)
    kept = Kept()
    reader = Reader(server, kept)
    reader.read(2)
    assert aside(reader) == ["public.a"]
    reader.task.stop()
    database.execute("UPDATE a SET day = '2026-01-04' WHERE id = 2")
    kept.offset_of.clear()
    reader = Reader(server, kept, snapshot_mode="always")
    assert told(reader.read(3)) == [("a", "r", 1), ("a", "r", 2), ("b", "r", 1)]
    assert reader.task.note() is None
    reader.task.stop()
