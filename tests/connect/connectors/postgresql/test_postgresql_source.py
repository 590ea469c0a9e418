"""Changes of a real PostgreSQL as records, and what hostile bytes are read as."""

import datetime
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.connectors.postgresql.pgoutput import message_of
from millstream.connect import ConnectException, DataException, RetriableException, SourceRecord
from tests.lib.connect_tasks import Kept
from tests.lib.postgresql import PostgreSql
from tests.lib.postgresql_changes import Reader, emptied

TABLE = """
CREATE TABLE orders (id INTEGER, shop TEXT, note TEXT, price NUMERIC(10, 2), at TIMESTAMPTZ,
day DATE, clock TIME, raw BYTEA, part REAL, flag BOOLEAN, odd INET, PRIMARY KEY (id, shop))
"""
FULL = """
INSERT INTO orders VALUES (1, 'a', 'x', 1.5, '2026-01-02 03:04:05.678+00', '2026-01-02',
'03:04:05.678', '\\x00ff', 1.5, true, '10.0.0.1')
"""
NEXT = "INSERT INTO orders (id, shop, note) VALUES ({}, 'a', 'n{}')"


@given(st.binary(max_size=40), st.sampled_from("BCRIUDTYOM"))
def test_any_message_is_read_or_refused(body: bytes, kind: str) -> None:
    for data in (body, kind.encode() + body):
        try:
            message_of(data)
        except DataException:
            pass


@pytest.fixture(scope="module")
def server() -> Iterator[PostgreSql]:
    with PostgreSql() as running:
        yield running


@pytest.fixture
def database(server: PostgreSql) -> Iterator[psycopg.Connection[Any]]:
    with emptied(server) as connection:
        connection.execute(TABLE)
        yield connection


def told(records: list[SourceRecord]) -> list[tuple[str, Any]]:
    return [
        ("tombstone", record.key["id"])
        if record.value is None
        else (record.value["op"], (record.value["after"] or record.value["before"])["id"])
        for record in records
    ]


@pytest.mark.slow
def test_a_snapshot_and_then_every_change(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    database.execute(FULL)
    database.execute(NEXT.format(2, 2))
    reader = Reader(server, Kept(), max_batch_size="1", time_precision_mode="connect")
    first, second = reader.read(2)
    assert told([first, second]) == [("r", 1), ("r", 2)]
    row = first.value["after"]
    assert first.topic == "shop.public.orders"
    assert (first.key["id"], first.key["shop"]) == (1, "a")
    assert first.value["source"]["snapshot"] == "true"
    assert second.value["source"]["snapshot"] == "last"
    assert (row["price"], row["raw"], row["odd"]) == (Decimal("1.50"), b"\x00\xff", "10.0.0.1")
    assert row["at"] == "2026-01-02T03:04:05.678000Z"
    assert (row["clock"], row["flag"], row["part"]) == (
        datetime.time(3, 4, 5, 678_000),
        True,
        1.5,
    )
    database.execute(FULL.replace("(1,", "(3,"))
    database.execute("UPDATE orders SET note = 'changed' WHERE id = 2")
    database.execute("UPDATE orders SET id = 4 WHERE id = 2")
    database.execute("DELETE FROM orders WHERE id = 1")
    changes = reader.read(7)
    assert told(changes) == [
        ("c", 3),
        ("u", 2),
        *(("d", 2), ("tombstone", 2), ("c", 4)),
        *(("d", 1), ("tombstone", 1)),
    ]
    assert changes[0].value["after"]["raw"] == b"\x00\xff"
    # Snapshot and log speak of one schema.
    assert changes[0].value_schema == first.value_schema
    assert reader.is_quiet()
    reader.task.stop()


@pytest.mark.slow
def test_a_task_that_starts_again_misses_nothing(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    kept = Kept()
    reader = Reader(server, kept, snapshot_mode="no_data")
    assert reader.is_quiet()
    with database.transaction():
        for id_ in (1, 2, 3):
            database.execute(NEXT.format(id_, id_))
    database.execute(NEXT.format(4, 4))
    reader.read(4, confirmed=2)
    reader.task.stop()
    # Two of the first transaction were stored: all of it comes again.
    reader = Reader(server, kept)
    assert told(reader.read(4)) == [("c", 1), ("c", 2), ("c", 3), ("c", 4)]
    reader.task.stop()
    database.execute(NEXT.format(5, 5))
    reader = Reader(server, kept)
    assert told(reader.read(1)) == [("c", 5)]
    reader.task.stop()


@pytest.mark.slow
def test_what_comes_again_does_not_hide_what_is_behind_it(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    kept = Kept()
    reader = Reader(server, kept, snapshot_mode="no_data")
    assert reader.is_quiet()
    for id_ in range(1, 8):
        database.execute(NEXT.format(id_, id_))
    # Stored, and the slot is not moved on: as after a kill, or when PostgreSQL itself crashed.
    reader.read(7)
    reader.task.stop()
    database.execute(NEXT.format(9, 9))
    reader = Reader(server, kept, max_batch_size="1")
    assert told(reader.read(1)) == [("c", 9)]
    reader.task.stop()


@pytest.mark.slow
def test_a_snapshot_that_was_interrupted_begins_anew(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    for id_ in (1, 2, 3):
        database.execute(NEXT.format(id_, id_))
    kept = Kept()
    reader = Reader(server, kept, max_batch_size="1")
    assert told(reader.read(2)) == [("r", 1), ("r", 2)]
    reader.task.stop()
    database.execute("DELETE FROM orders WHERE id = 1")
    reader = Reader(server, kept)
    # The first row is in no snapshot after the DELETE, and its deletion is reported.
    assert told(reader.read(4)) == [("r", 2), ("r", 3), ("d", 1), ("tombstone", 1)]
    reader.task.stop()


@pytest.mark.slow
def test_what_goes_before_an_offset_is_kept_is_told(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    """A worker is killed that followed the log and had written no offset yet."""
    database.execute(NEXT.format(1, 1))
    reader = Reader(server, Kept())
    reader.read(1)
    database.execute(NEXT.format(2, 2))
    assert told(reader.read(1)) == [("c", 2)]
    reader.task.stop()
    database.execute("DELETE FROM orders")
    reader = Reader(server, Kept())
    deleted = [("d", 1), ("tombstone", 1), ("d", 2), ("tombstone", 2)]
    assert told(reader.read(5)) == [("c", 2), *deleted]
    assert reader.is_quiet()
    reader.task.stop()


@pytest.mark.slow
def test_a_slot_that_the_server_gave_up_is_made_anew_and_that_is_said(
    server: PostgreSql, database: psycopg.Connection[Any], caplog: pytest.LogCaptureFixture
) -> None:
    reader = Reader(server, Kept(), snapshot_mode="no_data")
    assert reader.is_quiet()
    reader.task.stop()
    database.execute("ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'")
    database.execute("SELECT pg_reload_conf()")
    try:
        for _ in range(3):
            database.execute("SELECT pg_logical_emit_message(false, '', repeat('x', 20000000))")
            database.execute("SELECT pg_switch_wal()")
            database.execute("CHECKPOINT")
    finally:
        database.execute("ALTER SYSTEM RESET max_slot_wal_keep_size")
        database.execute("SELECT pg_reload_conf()")
    database.execute(NEXT.format(1, 1))
    reader = Reader(server, Kept())
    assert told(reader.read(1)) == [("r", 1)]
    assert "the server has removed the log of slot s" in caplog.text
    reader.task.stop()


@pytest.mark.slow
def test_a_slot_of_a_standby_is_left_alone(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    database.execute(NEXT.format(1, 1))
    database.execute("SELECT pg_create_physical_replication_slot('s')")
    reader = Reader(server, Kept())
    with pytest.raises(ConnectException, match="slot s is a physical one"):
        reader.task.poll()
    reader.task.stop()
    assert database.execute("SELECT slot_type FROM pg_replication_slots").fetchone()


@pytest.mark.slow
def test_a_column_that_comes_is_in_the_next_record(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    reader = Reader(server, Kept(), tombstones_on_delete="false")
    assert reader.is_quiet()
    database.execute(NEXT.format(1, 1))
    database.execute("ALTER TABLE orders ADD COLUMN more INTEGER, DROP COLUMN raw")
    database.execute("UPDATE orders SET more = 7")
    database.execute("DELETE FROM orders")
    first, second, third = reader.read(3)
    assert first.value["after"].schema.field("more") is None
    assert second.value["after"]["more"] == 7
    assert told([third]) == [("d", 1)]
    reader.task.stop()


@pytest.mark.slow
def test_a_slot_that_is_gone_is_said(server: PostgreSql, database: psycopg.Connection[Any]) -> None:
    kept = Kept()
    database.execute(NEXT.format(1, 1))
    reader = Reader(server, kept)
    reader.read(1)
    reader.task.stop()
    database.execute("SELECT pg_drop_replication_slot('s')")
    reader = Reader(server, kept)
    with pytest.raises(ConnectException, match="slot s was dropped"):
        reader.task.poll()
    reader.task.stop()


@pytest.mark.slow
# The connections of the server that is killed are left to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_server_that_goes_and_comes_back_loses_nothing() -> None:
    with PostgreSql() as server:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(TABLE)
            connection.execute(NEXT.format(1, 1))
        reader = Reader(server, Kept(), max_batch_size="1")
        assert told(reader.read(1)) == [("r", 1)]
        # A server that crashes forgets how far the slot was moved on: these come again, in several
        # batches, before what is new.
        with psycopg.connect(server.url, autocommit=True) as connection:
            for id_ in range(2, 9):
                connection.execute(NEXT.format(id_, id_))
        assert len(reader.read(7)) == 7
        server.stop()
        with pytest.raises(RetriableException):
            reader.task.poll()
        server.start()
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(NEXT.format(9, 9))
        assert told(reader.read(1)) == [("c", 9)]
        reader.task.stop()
