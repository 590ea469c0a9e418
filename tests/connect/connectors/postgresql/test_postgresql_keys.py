"""Keys are the same in snapshot and log, whatever the replica identity is."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from connect.connectors.postgresql.source import PostgresSourceConnector
from millstream.connect import ConnectException, DataException, SourceRecord
from tests.lib.connect_tasks import Kept
from tests.lib.postgresql import PostgreSql
from tests.lib.postgresql_changes import Reader, emptied

pytestmark = pytest.mark.slow
IDENTITIES = {
    "default": "",
    "full": "ALTER TABLE t REPLICA IDENTITY FULL",
    "index": "ALTER TABLE t REPLICA IDENTITY USING INDEX t_code",
}
TABLE = """CREATE TABLE t (shop TEXT, id INT, code TEXT NOT NULL, n INT, PRIMARY KEY (id, shop));
CREATE UNIQUE INDEX t_code ON t (code)"""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgreSql]:
    with PostgreSql() as running:
        yield running


@pytest.fixture
def database(server: PostgreSql) -> Iterator[psycopg.Connection[Any]]:
    with emptied(server) as connection:
        yield connection


def run(database: psycopg.Connection[Any], text: str) -> None:
    database.execute(text.encode())


def fields(struct: Any) -> dict[str, Any] | None:
    return None if struct is None else {field.name: each for field, each in struct.items()}


def told(record: SourceRecord) -> tuple[Any, ...]:
    """Return the operation, the key and the row before."""
    key = fields(record.key)
    if record.value is None:
        return "tombstone", key
    return record.value["op"], key, fields(record.value["before"])


@pytest.mark.parametrize("identity", IDENTITIES)
def test_the_key_is_the_primary_key(
    server: PostgreSql, database: psycopg.Connection[Any], identity: str
) -> None:
    run(database, TABLE)
    run(database, IDENTITIES[identity] or "SELECT 1")
    run(database, "INSERT INTO t VALUES ('a', 1, 'x', 1)")
    reader = Reader(server)
    (first,) = reader.read(1)
    key = {"id": 1, "shop": "a"}
    assert told(first) == ("r", key, None)
    assert list(fields(first.key) or ()) == ["id", "shop"]
    run(database, "UPDATE t SET n = 2")
    (update,) = reader.read(1)
    before = {"shop": "a", "id": 1, "code": "x", "n": 1} if identity == "full" else None
    assert told(update) == ("u", key, before)
    assert update.key_schema == first.key_schema
    assert update.value_schema == first.value_schema
    run(database, "UPDATE t SET code = 'y'")
    (update,) = reader.read(1)
    assert told(update)[:2] == ("u", key)
    if identity == "index":
        assert update.value["before"]["code"] == "x"
        run(database, "DELETE FROM t")
        with pytest.raises(
            DataException, match=r"t: a delete in the log lacks a column of the key"
        ):
            reader.task.poll()
        reader.task.stop()
        return
    run(database, "UPDATE t SET id = 7")
    moved = reader.read(3)
    new = {"id": 7, "shop": "a"}
    assert [told(record)[:2] for record in moved] == [("d", key), ("tombstone", key), ("c", new)]
    run(database, "DELETE FROM t")
    assert [told(record)[:2] for record in reader.read(2)] == [("d", new), ("tombstone", new)]
    reader.task.stop()


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ("CREATE TABLE t (a INT, b INT)", None),
        ("CREATE TABLE t (a INT NOT NULL, b INT, UNIQUE (a))", {"a": 1}),
        ("CREATE TABLE t (a INT, b INT, UNIQUE (a))", None),
        ("CREATE TABLE t (a INT NOT NULL, b INT); CREATE UNIQUE INDEX ON t (a) WHERE b > 0", None),
        ("CREATE TABLE t (a INT NOT NULL, b INT); CREATE UNIQUE INDEX ON t ((a + 1))", None),
    ],
)
def test_without_a_primary_key_snapshot_and_log_agree(
    server: PostgreSql, database: psycopg.Connection[Any], table: str, key: Any
) -> None:
    run(database, table + "; ALTER TABLE t REPLICA IDENTITY FULL; INSERT INTO t VALUES (1, 1)")
    reader = Reader(server)
    records = reader.read(1)
    run(database, "UPDATE t SET b = 2")
    records += reader.read(1)
    assert [told(record)[:2] for record in records] == [("r", key), ("u", key)]
    run(database, "DELETE FROM t")
    deleted = reader.read(1 if key is None else 2)
    assert told(deleted[0])[:2] == ("d", key)
    reader.task.stop()


def test_the_key_is_what_message_key_columns_says(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    run(database, TABLE + "; ALTER TABLE t REPLICA IDENTITY FULL")
    run(database, "CREATE TABLE other (id INT PRIMARY KEY, a INT)")
    run(database, "INSERT INTO t VALUES ('a', 1, 'x', NULL); INSERT INTO other VALUES (1, 2)")
    more = {"message.key.columns": "(.*).t:n,code ; public.none:a"}
    reader = Reader(server, more=more)
    other, first = reader.read(2)
    assert told(other)[1] == {"id": 1}
    assert told(first)[1] == {"n": None, "code": "x"}
    run(database, "UPDATE t SET id = 9")
    (update,) = reader.read(1)
    assert told(update)[:2] == ("u", {"n": None, "code": "x"})
    assert update.key_schema == first.key_schema
    run(database, "UPDATE t SET n = 5")
    assert [told(record)[:2] for record in reader.read(3)] == [
        ("d", {"n": None, "code": "x"}),
        ("tombstone", {"n": None, "code": "x"}),
        ("c", {"n": 5, "code": "x"}),
    ]
    reader.task.stop()


def test_entries_of_message_key_columns_that_are_none_are_refused() -> None:
    values = PostgresSourceConnector().validate({"message.key.columns": "public.t"})
    assert not values["message.key.columns"].error_messages  # More is missing: told first.
    given = dict.fromkeys(("database.hostname", "database.user", "database.dbname"), "x")
    given |= {"topic.prefix": "x", "message.key.columns": "public.t"}
    values = PostgresSourceConnector().validate(given)
    assert "table:column" in values["message.key.columns"].error_messages[0]


def test_a_key_that_changes_while_nobody_reads(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    run(database, TABLE + "; INSERT INTO t VALUES ('a', 1, 'x', 1)")
    reader = Reader(server)
    reader.read(1)
    run(database, "UPDATE t SET n = 2")
    run(database, "ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (code)")
    run(database, "UPDATE t SET n = 3")
    assert [told(record)[1] for record in reader.read(2)] == [
        {"shop": "a", "id": 1},
        {"code": "x"},
    ]
    reader.task.stop()


def test_a_part_of_a_key_is_never_taken_for_the_key(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    """Rows that differ only in the other part would overwrite each other."""
    run(database, "CREATE TABLE t (a INT, b INT, n INT, PRIMARY KEY (a, b))")
    run(database, "ALTER TABLE t REPLICA IDENTITY FULL; INSERT INTO t VALUES (1, 1, 1), (1, 2, 1)")
    kept = Kept()
    reader = Reader(server, kept)
    reader.read(2)
    reader.task.stop()
    run(database, "UPDATE t SET n = 2 WHERE b = 1")
    run(database, "ALTER TABLE t RENAME b TO c")
    run(database, "UPDATE t SET n = 3")
    reader = Reader(server, kept)
    with pytest.raises(ConnectException, match=r"public\.t lacks c of its key.*message\.key\.col"):
        reader.read(1)
    reader.task.stop()
    reader = Reader(server, kept, {"message.key.columns": "public.t:a,b;public.t:a,c"})
    first, *others = [told(record)[1] for record in reader.read(3)]
    assert first == {"a": 1, "b": 1}
    assert sorted(key["c"] for key in others) == [1, 2]
    reader.task.stop()


def test_a_key_with_a_generated_column_is_refused(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    run(
        database, "CREATE TABLE t (a INT, g INT GENERATED ALWAYS AS (n * 2) STORED, n INT NOT NULL)"
    )
    run(database, "ALTER TABLE t ADD PRIMARY KEY (a, g); INSERT INTO t (a, n) VALUES (1, 1)")
    reader = Reader(server)
    with pytest.raises(ConnectException, match=r"public\.t lacks g of its key"):
        reader.read(1)
    reader.task.stop()
    reader = Reader(server, more={"message.key.columns": "public.t:a,n"})
    assert told(reader.read(1)[0])[1] == {"a": 1, "n": 1}
    run(database, "UPDATE t SET n = 2")
    assert [told(record)[:2] for record in reader.read(1)] == [("u", {"a": 1, "n": 2})]
    reader.task.stop()


def test_a_large_key_that_an_update_left_alone(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    run(database, "CREATE TABLE t (a TEXT PRIMARY KEY, n INT)")
    run(database, "ALTER TABLE t ALTER a SET STORAGE EXTERNAL")
    run(database, "INSERT INTO t SELECT string_agg(n::text, ''), 1 FROM generate_series(1, 680) n")
    reader = Reader(server)
    (first,) = reader.read(1)
    run(database, "UPDATE t SET n = 2")
    (update,) = reader.read(1)
    assert told(update)[0] == "u"
    assert update.key["a"] == first.key["a"]
    assert update.value["after"]["a"] == first.key["a"]
    reader.task.stop()
