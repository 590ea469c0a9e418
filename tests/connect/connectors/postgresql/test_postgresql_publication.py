"""The publication is made, checked, mended or refused, and partitions come under one name."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from connect.connectors.postgresql import source_task
from millstream.connect import ConnectException
from tests.lib.connect_tasks import Kept
from tests.lib.postgresql import PostgreSql
from tests.lib.postgresql_changes import Reader, emptied

pytestmark = pytest.mark.slow
TABLES = "CREATE TABLE a (id INT PRIMARY KEY); CREATE TABLE b (id INT PRIMARY KEY)"
FILTERED = {"publication.autocreate.mode": "filtered"}


@pytest.fixture(scope="module")
def server() -> Iterator[PostgreSql]:
    with PostgreSql() as running:
        yield running


@pytest.fixture
def database(server: PostgreSql) -> Iterator[psycopg.Connection[Any]]:
    with emptied(server) as connection:
        connection.execute(TABLES)
        yield connection


def run(database: psycopg.Connection[Any], text: str) -> None:
    database.execute(text.encode())


def published(database: psycopg.Connection[Any], name: str = "p") -> list[str]:
    asked = "SELECT tablename FROM pg_publication_tables WHERE pubname = %s ORDER BY 1"
    return [table for (table,) in database.execute(asked, (name,)).fetchall()]


def topics(reader: Reader, count: int) -> list[str]:
    return [record.topic.removeprefix("shop.public.") for record in reader.read(count)]


@pytest.mark.parametrize(
    ("mode", "tables", "note"),
    [
        ("all_tables", ["a", "b"], None),
        ("filtered", ["a"], None),
        ("no_tables", [], "lacks public.a"),
    ],
)
def test_each_mode_without_a_publication(
    server: PostgreSql,
    database: psycopg.Connection[Any],
    mode: str,
    tables: list[str],
    note: str | None,
) -> None:
    more = {"publication.autocreate.mode": mode, "table.include.list": "public.a"}
    reader = Reader(server, more=more)
    assert reader.is_quiet()
    assert published(database) == tables
    said = reader.task.note()
    assert said is None if note is None else note in str(said)
    reader.task.stop()


def test_one_that_has_to_be_there_is_asked_for(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    more = {"publication.autocreate.mode": "disabled"}
    reader = Reader(server, more=more)
    with pytest.raises(ConnectException, match=r"no publication p.*make it"):
        reader.task.poll()
    run(database, "CREATE PUBLICATION p FOR TABLE a, b")
    run(database, "INSERT INTO a VALUES (1)")
    assert topics(reader, 1) == ["a"]
    reader.task.stop()


def test_two_connectors_of_one_publication(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    for mode in ("all_tables", "filtered"):
        more = {"publication.autocreate.mode": mode, "publication.name": f"p_{mode}"}
        readers = [
            Reader(
                server,
                more={
                    **more,
                    "table.include.list": f"public.{name}",
                    "slot.name": f"{mode}_{name}",
                },
            )
            for name in "ab"
        ]
        for reader in readers:
            assert reader.is_quiet()
        number = len(mode)
        run(database, f"INSERT INTO a VALUES ({number}); INSERT INTO b VALUES ({number})")
        assert [topics(reader, 1) for reader in readers] == [["a"], ["b"]]
        for reader in readers:
            reader.task.stop()
        run(database, "TRUNCATE a, b")


def test_a_table_that_is_added_to_the_list(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    kept = Kept()
    run(database, "INSERT INTO a VALUES (1)")
    reader = Reader(server, kept, more={**FILTERED, "table.include.list": "public.a"})
    assert topics(reader, 1) == ["a"]
    reader.task.stop()
    listed = {"table.include.list": "public.a,public.b"}
    reader = Reader(server, kept, more={**FILTERED, **listed})
    assert reader.is_quiet()
    assert published(database) == ["a", "b"]
    assert "published after the snapshot" in str(reader.task.note())
    run(database, "INSERT INTO b VALUES (1)")
    assert topics(reader, 1) == ["b"]
    reader.task.stop()
    # One that is not the connector's to change is refused.
    run(database, "ALTER PUBLICATION p DROP TABLE b")
    for mode in ("all_tables", "disabled"):
        reader = Reader(server, kept, more={**listed, "publication.autocreate.mode": mode})
        with pytest.raises(ConnectException, match=r"lacks public\.b.*ADD TABLE"):
            reader.task.poll()
        reader.task.stop()


@pytest.mark.parametrize("mode", ["all_tables", "filtered"])
def test_a_table_that_is_made_later(
    server: PostgreSql,
    database: psycopg.Connection[Any],
    mode: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(source_task, "_LOOK_MS", 0)
    reader = Reader(server, more={"publication.autocreate.mode": mode})
    assert reader.is_quiet()
    run(database, "CREATE TABLE later (id INT PRIMARY KEY)")
    assert reader.is_quiet()
    run(database, "INSERT INTO later VALUES (1)")
    assert topics(reader, 1) == ["later"]
    reader.task.stop()


def test_what_a_publication_of_ones_own_does_not_tell_is_refused(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    run(database, "CREATE PUBLICATION p FOR ALL TABLES WITH (publish = 'insert,truncate')")
    reader = Reader(server)
    with pytest.raises(ConnectException, match="does not publish each update and delete"):
        reader.task.poll()
    reader.task.stop()
    reader = Reader(server, more={"skipped.operations": "u,d,t"})
    assert reader.is_quiet()
    reader.task.stop()
    reader = Reader(server, more={**FILTERED, "slot.name": "s2"})
    with pytest.raises(ConnectException, match="one of all tables, and cannot be filtered"):
        reader.task.poll()
    reader.task.stop()


def test_a_filter_of_a_publication_of_ones_own_is_said(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    run(database, "CREATE TABLE t (id INT PRIMARY KEY, v INT); CREATE TABLE u (id INT PRIMARY KEY)")
    run(database, "CREATE TABLE w (id INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 1)")
    if database.info.server_version < 150_000:
        pytest.skip("publications have no filters before version 15")
    run(database, "CREATE PUBLICATION p FOR TABLE t WHERE (id > 1), TABLE u, TABLE w (id)")
    lists = {"table.include.list": "public.[tuw]", "publication.autocreate.mode": "disabled"}
    reader = Reader(server, more=lists)
    reader.read(1)
    said = reader.task.note()
    assert said is not None
    assert "a filter of rows or a list of columns for public.t, public.w:" in said
    reader.task.stop()


def test_a_publication_that_was_dropped_is_said_with_a_remedy(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    run(database, "CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1)")
    kept = Kept()
    reader = Reader(server, kept)
    reader.read(1)
    run(database, "DROP PUBLICATION p; INSERT INTO t VALUES (2)")
    for _ in range(2):  # The second start creates the publication anew.
        with pytest.raises(ConnectException, match="drop the replication slot s, and reset"):
            reader.read(1)
        reader.task.stop()
        reader = Reader(server, kept)
    reader.task.stop()


def test_nothing_to_follow_is_said(server: PostgreSql, database: psycopg.Connection[Any]) -> None:
    reader = Reader(server, more={"table.include.list": "public.never"})
    assert reader.is_quiet()
    assert "There is no table to follow" in str(reader.task.note())
    reader.task.stop()
    reader = Reader(server, more={**FILTERED, "table.include.list": "x", "publication.name": "q"})
    with pytest.raises(ConnectException, match="No table of the database"):
        reader.task.poll()
    reader.task.stop()


def test_a_user_who_may_not_make_it_is_told_what_to_do(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    run(database, "DROP ROLE IF EXISTS reader; CREATE ROLE reader LOGIN REPLICATION")
    reader = Reader(server, more={"database.user": "reader"})
    with pytest.raises(ConnectException, match="all_tables and an owner of the tables"):
        reader.task.poll()
    reader.task.stop()


PARTITIONED = """
CREATE TABLE parts (id INT, year INT, PRIMARY KEY (id, year)) PARTITION BY LIST (year);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (2) PARTITION BY LIST (id);
CREATE TABLE parts_2_x PARTITION OF parts_2 DEFAULT
"""


@pytest.mark.parametrize("is_via_root", ["true", "false"])
@pytest.mark.parametrize("mode", ["all_tables", "filtered"])
@pytest.mark.parametrize("listed", ["", "public.parts", r"public\.parts.*"])
def test_partitions_come_under_one_name_in_snapshot_and_log(
    server: PostgreSql,
    database: psycopg.Connection[Any],
    is_via_root: str,
    mode: str,
    listed: str,
) -> None:
    run(database, PARTITIONED + "; INSERT INTO parts VALUES (1, 1), (1, 2)")
    more = {
        "publish.via.partition.root": is_via_root,
        "publication.autocreate.mode": mode,
        "table.include.list": listed,
    }
    reader = Reader(server, more=more)
    expected = ["parts"] * 2 if is_via_root == "true" else ["parts_1", "parts_2_x"]
    assert topics(reader, 2) == expected
    run(database, "INSERT INTO parts VALUES (2, 1), (2, 2)")
    assert topics(reader, 2) == expected
    # A partition that comes later is published already.
    run(database, "CREATE TABLE parts_3 PARTITION OF parts FOR VALUES IN (3)")
    run(database, "INSERT INTO parts VALUES (1, 3)")
    assert topics(reader, 1) == [("parts" if is_via_root == "true" else "parts_3")]
    reader.task.stop()


def test_what_is_said_of_a_parent_holds_for_its_partitions(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    run(database, PARTITIONED + "; ALTER TABLE parts ADD secret TEXT, ADD note TEXT")
    run(database, "INSERT INTO parts VALUES (1, 1, 's', 'note')")
    more = {
        "table.include.list": "public.parts",
        "column.exclude.list": r"public\.parts\.secret",
        "column.mask.with.3.chars": r"public\.parts\.note",
        "message.key.columns": "public.parts:id",
    }
    reader = Reader(server, more=more)
    records = reader.read(1)
    run(database, "INSERT INTO parts VALUES (2, 1, 's', 'note')")
    records += reader.read(1)
    for record in records:
        assert [field.name for field in record.value["after"].schema.fields] == [
            "id",
            "year",
            "note",
        ]
        assert record.value["after"]["note"] == "***"
        assert [field.name for field in record.key.schema.fields] == ["id"]
    reader.task.stop()


def test_unlogged_tables_are_named(server: PostgreSql, database: psycopg.Connection[Any]) -> None:
    run(database, "CREATE UNLOGGED TABLE quick (id INT PRIMARY KEY)")
    reader = Reader(server)
    assert reader.is_quiet()
    assert "no changes to follow: public.quick" in str(reader.task.note())
    reader.task.stop()


def test_a_publication_that_is_there_says_how_partitions_come(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    run(database, PARTITIONED + "; INSERT INTO parts VALUES (1, 1)")
    run(database, "CREATE PUBLICATION p FOR TABLE parts WITH (publish_via_partition_root)")
    own = {"publication.autocreate.mode": "disabled", "table.include.list": "public.parts"}
    reader = Reader(server, more=own)
    records = topics(reader, 1)
    run(database, "INSERT INTO parts VALUES (2, 1)")
    assert records + topics(reader, 1) == ["parts", "parts"]
    reader.task.stop()
    run(database, "ALTER PUBLICATION p SET (publish_via_partition_root = false)")
    root = {"publish.via.partition.root": "true", "slot.name": "s2"}
    reader = Reader(server, more={**own, **root})
    with pytest.raises(ConnectException, match="publish_via_partition_root = true"):
        reader.task.poll()
    reader.task.stop()
    reader = Reader(server, more={**own, **root, **FILTERED})
    assert topics(reader, 2) == ["parts", "parts"]
    reader.task.stop()


def test_tables_that_inherit_have_their_own_rows_each(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    run(database, "CREATE TABLE child (PRIMARY KEY (id)) INHERITS (a)")
    run(database, "INSERT INTO a VALUES (1); INSERT INTO child VALUES (2)")
    reader = Reader(server, more=FILTERED)
    assert topics(reader, 2) == ["a", "child"]
    run(database, "INSERT INTO child VALUES (3)")
    assert topics(reader, 1) == ["child"]
    reader.task.stop()


def test_a_table_that_is_renamed_or_dropped_goes_on_under_its_name(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    reader = Reader(server, more={"table.exclude.list": "public.hidden"})
    assert reader.is_quiet()
    run(database, "INSERT INTO a VALUES (1)")
    run(database, "ALTER TABLE a RENAME TO c; INSERT INTO c VALUES (2)")
    run(database, "ALTER TABLE c RENAME TO hidden; INSERT INTO hidden VALUES (3)")
    run(database, "INSERT INTO b VALUES (1)")
    run(database, "DROP TABLE b")
    assert topics(reader, 3) == ["a", "c", "b"]
    assert reader.is_quiet()
    reader.task.stop()
