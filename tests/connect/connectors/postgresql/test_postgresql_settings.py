"""The other settings of the original, on a real server."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from connect.connectors.postgresql import server as reached
from connect.connectors.postgresql.names import field_adjustment, topic_name
from connect.connectors.postgresql.settings import CONFIG
from millstream.connect import ConnectException, DataException, RetriableException
from tests.lib.connect_tasks import Kept
from tests.lib.postgresql import PostgreSql
from tests.lib.postgresql_changes import Reader, emptied

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[PostgreSql]:
    with PostgreSql() as running:
        yield running


@pytest.fixture
def database(server: PostgreSql) -> Iterator[psycopg.Connection[Any]]:
    with emptied(server) as connection:
        connection.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT)")
        yield connection


def run(database: psycopg.Connection[Any], text: str) -> None:
    database.execute(text.encode())


def ops(reader: Reader, count: int) -> list[str]:
    return ["x" if one.value is None else one.value["op"] for one in reader.read(count)]


def test_how_the_server_is_reached(server: PostgreSql, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {
        "database.hostname": "h",
        "database.user": "u",
        "database.password": "a b'c",
        "database.dbname": "d",
        "topic.prefix": "p",
        "database.sslmode": "verify-full",
        "database.sslcert": "cert.pem",
        "database.sslkey": "key.pem",
        "database.sslpassword": "secret",
        "database.sslrootcert": "root.pem",
    }
    asked: list[str] = []

    class Connection:
        def close(self) -> None:
            """Nothing is open."""

    def connect(where: str, **_: Any) -> Any:
        asked.append(where)
        return Connection()

    monkeypatch.setattr(reached.psycopg, "connect", connect)
    reached.connected(CONFIG.parse(given))
    told = psycopg.conninfo.conninfo_to_dict(asked[0])
    assert told["password"] == "a b'c"
    shown = {name: told[f"ssl{name}"] for name in ("mode", "cert", "key", "password", "rootcert")}
    assert shown == {
        "mode": "verify-full",
        "cert": "cert.pem",
        "key": "key.pem",
        "password": "secret",
        "rootcert": "root.pem",
    }
    monkeypatch.undo()
    # The server has no TLS.
    reader = Reader(server, more={"database.sslmode": "require"})
    with pytest.raises(RetriableException, match="SSL"):
        reader.task.poll()


def test_statements_that_a_connection_begins_with(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    assert reached.statements_in("a;b ;; c; ;") == ["a", "b ; c"]
    statements = "SET statement_timeout = 60000; SELECT 'a;;b'; SET nothing.like_it = 'x'"
    reader = Reader(server, more={"database.initial.statements": statements})
    assert reader.is_quiet()
    reader.task.stop()
    reader = Reader(server, more={"database.initial.statements": "SELECT 1/0"})
    with pytest.raises(ConnectException, match="division by zero"):
        reader.task.poll()
    reader.task.stop()


def test_names_that_are_no_names_of_topics_or_of_avro(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    assert topic_name("p", "\u00e9t\u00e9", "a b", delimiter="-") == "p-_t_-a_b"
    assert topic_name("p", "x" * 300, delimiter=".") == "p." + "x" * 247
    assert field_adjustment("avro")("1 a-b") == "_1_a_b"
    assert field_adjustment("avro_unicode")("a_b\U0001f600") == "a_u005fb_ud83d_ude00"
    run(database, 'CREATE SCHEMA "Mein Schema"')
    table = '"Mein Schema"."Gr\u00f6\u00dfe ""x"" %s"'
    run(database, f'CREATE TABLE {table} ("1 id" INT PRIMARY KEY, "a%b" TEXT)')
    run(database, f"INSERT INTO {table} VALUES (1, 'a')")
    reader = Reader(
        server,
        more={
            "table.include.list": "Mein Schema.*",
            "publication.autocreate.mode": "filtered",
            "schema.name.adjustment.mode": "avro",
            "field.name.adjustment.mode": "avro",
        },
    )
    (first,) = reader.read(1)
    run(database, f"UPDATE {table} SET \"a%b\" = 'c'")
    (second,) = reader.read(1)
    for record in (first, second):
        assert record.topic == "shop.Mein_Schema.Gr__e__x___s"
        assert record.key["_1_id"] == 1
        assert record.value["source"]["table"] == 'Gr\u00f6\u00dfe "x" %s'
        schema = record.value_schema
        assert schema is not None
        assert schema.name == "shop.Mein_Schema.Gr__e__x___s.Envelope"
    assert second.value["after"]["a_b"] == "c"
    reader.task.stop()
    run(
        database, 'CREATE TABLE "a b" (id INT PRIMARY KEY); CREATE TABLE "a_b" (id INT PRIMARY KEY)'
    )
    reader = Reader(server, more={"slot.name": "s2"})
    with pytest.raises(ConnectException, match=r"would share the topic shop\.public\.a_b"):
        reader.task.poll()
    reader.task.stop()


def test_modes_of_the_snapshot(server: PostgreSql, database: psycopg.Connection[Any]) -> None:
    kept = Kept()
    run(database, "INSERT INTO t VALUES (1, 1)")
    reader = Reader(server, kept, more={"snapshot.mode": "initial_only"})
    assert ops(reader, 1) == ["r"]
    run(database, "UPDATE t SET n = 2")
    assert reader.is_quiet()
    assert "initial_only" in str(reader.task.note())
    # Nothing keeps the log for it.
    assert database.execute("SELECT 1 FROM pg_replication_slots").fetchone() is None
    reader.task.stop()
    reader = Reader(server, kept, more={"snapshot.mode": "when_needed"})
    assert ops(reader, 1) == ["r"]
    run(database, "UPDATE t SET n = 3")
    assert ops(reader, 1) == ["u"]
    reader.task.stop()
    run(database, "UPDATE t SET n = 4")
    reader = Reader(server, kept, more={"snapshot.mode": "always"})
    assert ops(reader, 2) == ["r", "u"]
    reader.task.stop()
    reader = Reader(server, more={"snapshot.mode": "never", "slot.name": "s2"})
    assert reader.is_quiet()
    run(database, "UPDATE t SET n = 5")
    assert ops(reader, 1) == ["u"]
    reader.task.stop()


def test_a_snapshot_of_some_tables_and_of_some_rows(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    run(database, "CREATE TABLE other (id INT PRIMARY KEY)")
    run(database, "INSERT INTO t VALUES (1, 1), (2, 2); INSERT INTO other VALUES (1)")
    more = {
        "snapshot.include.collection.list": r"public\.t",
        "snapshot.select.statement.overrides": "public.t",
        "snapshot.select.statement.overrides.public.t": "SELECT * FROM t WHERE n % 2 = 0;",
    }
    reader = Reader(server, more=more)
    (record,) = reader.read(1)
    assert record.key["id"] == 2
    run(database, "INSERT INTO other VALUES (2)")
    assert ops(reader, 1) == ["c"]
    reader.task.stop()


def test_operations_that_are_skipped(server: PostgreSql, database: psycopg.Connection[Any]) -> None:
    more = {
        "skipped.operations": "c,d",
        "skip.messages.without.change": "true",
        "column.exclude.list": "public.t.n",
    }
    run(database, "ALTER TABLE t ADD m INT, REPLICA IDENTITY FULL")
    reader = Reader(server, more=more)
    assert reader.is_quiet()
    run(database, "INSERT INTO t VALUES (1, 1); UPDATE t SET n = 2; UPDATE t SET m = 2")
    run(database, "DELETE FROM t; TRUNCATE t")
    assert ops(reader, 2) == ["u", "t"]
    reader.task.stop()
    run(database, "INSERT INTO t VALUES (1, 1)")
    reader = Reader(server, more={"slot.name": "s2"})
    assert ops(reader, 1) == ["r"]
    run(database, "TRUNCATE t")
    assert reader.is_quiet()
    reader.task.stop()


def test_heartbeats(server: PostgreSql, database: psycopg.Connection[Any]) -> None:
    run(database, "CREATE TABLE beats (at TIMESTAMPTZ)")
    more = {
        "heartbeat.interval.ms": "1",
        "heartbeat.action.query": "INSERT INTO beats VALUES (now())",
        "table.include.list": "public.t",
    }
    reader = Reader(server, more=more)
    found = [record for _ in range(20) for record in reader.task.poll() or ()]  # type: ignore[union-attr]
    assert found
    assert {record.topic for record in found} == {"__debezium-heartbeat.shop"}
    assert found[0].key["serverName"] == "shop"
    assert found[0].source_offset == {"lsn": found[0].source_offset["lsn"]}  # type: ignore[index]
    assert database.execute("SELECT 1 FROM beats").fetchone()
    reader.task.stop()


def test_a_change_that_cannot_be_told(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    run(database, "ALTER TABLE t ADD odd NUMERIC; INSERT INTO t VALUES (1, 1, 'NaN'), (2, 2, 2)")
    reader = Reader(server)
    with pytest.raises(DataException, match="column odd, value 'NaN'"):
        reader.task.poll()
    reader.task.stop()
    more = {"event.processing.failure.handling.mode": "warn", "slot.name": "s2"}
    reader = Reader(server, more=more)
    assert ops(reader, 1) == ["r"]
    run(database, "UPDATE t SET n = n + 1")
    assert ops(reader, 1) == ["u"]
    assert "2 changes were skipped, the last one: Table public.t" in str(reader.task.note())
    reader.task.stop()


def test_a_replica_identity_is_set(server: PostgreSql, database: psycopg.Connection[Any]) -> None:
    run(database, "CREATE TABLE other (id INT NOT NULL); CREATE UNIQUE INDEX by_id ON other (id)")
    wanted = r"public\.t:FULL,public.other:INDEX by_id"
    reader = Reader(server, more={"replica.identity.autoset.values": wanted})
    assert reader.is_quiet()
    run(database, "INSERT INTO t VALUES (1, 1); UPDATE t SET n = 2")
    _, update = reader.read(2)
    assert update.value["before"]["n"] == 1
    asked = "SELECT relreplident::text FROM pg_class WHERE relname = 'other'"
    assert database.execute(asked).fetchone() == ("i",)
    reader.task.stop()


def test_more_tables_than_allowed(
    server: PostgreSql, database: psycopg.Connection[Any], caplog: pytest.LogCaptureFixture
) -> None:
    run(database, "CREATE TABLE other (id INT)")
    reader = Reader(server, more={"guardrail.collections.max": "1"})
    assert reader.is_quiet()
    assert "2 tables are captured" in caplog.text
    reader.task.stop()
    more = {"guardrail.collections.max": "1", "guardrail.collections.limit.action": "fail"}
    reader = Reader(server, more=more)
    with pytest.raises(ConnectException, match="2 tables are captured"):
        reader.task.poll()
    reader.task.stop()
