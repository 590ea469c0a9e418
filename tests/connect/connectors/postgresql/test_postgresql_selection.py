"""Which tables and columns are captured, and which texts are masked."""

import hashlib
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from connect.connectors.name_patterns import Patterns, patterns_in
from connect.connectors.postgresql.masks import Masks
from connect.connectors.postgresql.source import PostgresSourceConnector
from millstream.connect import ConfigException
from tests.lib.postgresql import PostgreSql
from tests.lib.postgresql_changes import Reader, emptied

NEEDED = {
    "database.hostname": "h",
    "database.user": "u",
    "database.dbname": "d",
    "topic.prefix": "p",
}


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" a.b , c.d,", ["a.b", "c.d"]),
        (r"a\,b,c{1\,3}", ["a,b", "c{1,3}"]),
        (r"public\.a,\\", [r"public\.a", r"\\"]),
    ],
)
def test_lists_are_taken_apart_as_the_original_does(text: str, expected: list[str]) -> None:
    assert patterns_in(text) == expected


def test_an_expression_matches_the_whole_name_in_any_case() -> None:
    patterns = Patterns([r"public\.or.*", "a|b"])
    assert patterns.match("PUBLIC.orders")
    assert not patterns.match("xpublic.orders")
    assert not patterns.match("ab")
    # What takes Python's own expressions for ever.
    assert not Patterns(["(a+)+b"]).match("a" * 60)


@pytest.mark.parametrize(
    ("settings", "name", "said"),
    [
        ({"table.include.list": "a(", "x": ""}, "table.include.list", "not a regular expression"),
        ({"column.exclude.list": "(?!a)b"}, "column.exclude.list", "look-ahead"),
        ({"schema.include.list": "a", "schema.exclude.list": "b"}, "schema.exclude.list", "give"),
        ({"table.include.list": "a", "table.exclude.list": "b"}, "table.exclude.list", "give one"),
        ({"column.mask.hash.SHA-1.with.salt.": "a"}, "column.mask.hash.SHA-1.with.salt.", "salt"),
        ({"column.mask.hash.none.with.salt.s": "a"}, "column.mask.hash.none.with.salt.s", "known"),
        ({"column.truncate.to.x.chars": "a"}, "column.truncate.to.x.chars", "lacks its length"),
        ({"skipped.operations": "none,c"}, "skipped.operations", "only none"),
        ({"topic.prefix": "a b"}, "topic.prefix", "letters"),
        ({"time.precision.mode": "structured"}, "time.precision.mode", "one of"),
        ({"signal.data.collection": "a.b"}, "signal.data.collection", "signals"),
        ({"table.whitelist": "public.a"}, "table.whitelist", "the name is table.include.list"),
        ({"replica.identity.autoset.values": "a:SOME"}, "replica.identity.autoset.values", "FULL"),
        ({"plugin.name": "decoderbufs"}, "plugin.name", "pgoutput"),
    ],
)
def test_what_is_wrong_is_refused_with_a_sentence(
    settings: dict[str, str], name: str, said: str
) -> None:
    values = PostgresSourceConnector().validate({**NEEDED, **settings})
    wrong = {value.name: value.error_messages for value in values.values() if value.error_messages}
    assert list(wrong) == [name]
    assert said in wrong[name][0]
    with pytest.raises(ConfigException, match=name.replace(".", r"\.")):
        PostgresSourceConnector().start({**NEEDED, **settings})


TABLES = """
CREATE SCHEMA sales; CREATE SCHEMA "Odd one";
CREATE TABLE orders (id INT PRIMARY KEY, note TEXT, secret TEXT);
CREATE TABLE orders_old (id INT PRIMARY KEY, note TEXT, secret TEXT);
CREATE TABLE sales.orders (id INT PRIMARY KEY, note TEXT, secret TEXT);
CREATE TABLE "Odd one"."My Table" (id INT PRIMARY KEY, note TEXT, secret TEXT)
"""
NAMES = ("public.orders", "public.orders_old", "sales.orders", '"Odd one"."My Table"')
ALL = {"public.orders", "public.orders_old", "sales.orders", "Odd_one.My_Table"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "topics"),
    [
        ({}, ALL),
        ({"schema.include.list": "pub.*"}, {"public.orders", "public.orders_old"}),
        ({"schema.exclude.list": "sales, odd one"}, {"public.orders", "public.orders_old"}),
        ({"table.include.list": r"public\.orders.*"}, {"public.orders", "public.orders_old"}),
        ({"table.include.list": "public.orders"}, {"public.orders"}),
        ({"table.include.list": r".*\.orders"}, {"public.orders", "sales.orders"}),
        ({"table.include.list": "Odd one.My Table"}, {"Odd_one.My_Table"}),
        ({"table.exclude.list": r".*\.orders,odd.*"}, {"public.orders_old"}),
        ({"schema.include.list": "public", "table.exclude.list": "public.orders"},
         {"public.orders_old"}),
    ],
)  # fmt: skip
def test_what_the_lists_leave_out_is_neither_read_nor_followed(
    server: PostgreSql,
    database: psycopg.Connection[Any],
    settings: dict[str, str],
    topics: set[str],
) -> None:
    run(database, TABLES)
    for name in NAMES:
        run(database, f"INSERT INTO {name} VALUES (1, 'a', 's')")
    reader = Reader(server, more=settings)
    first = reader.read(len(topics))
    for name in NAMES:
        run(database, f"INSERT INTO {name} VALUES (2, 'a', 's')")
    second = reader.read(len(topics))
    assert reader.is_quiet()
    for records in (first, second):
        assert {record.topic.removeprefix("shop.") for record in records} == topics
    reader.task.stop()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"column.include.list": r"public\.orders\.(id|note)"}, ["id", "note"]),
        ({"column.exclude.list": r".*\.secret,.*\.NOTE"}, ["id"]),
        ({"column.exclude.list": r"public.orders.id"}, ["note", "secret"]),
    ],
)
def test_columns_that_are_left_out_are_in_keys_alone(
    server: PostgreSql,
    database: psycopg.Connection[Any],
    settings: dict[str, str],
    names: list[str],
) -> None:
    run(database, TABLES + "; INSERT INTO orders VALUES (1, 'a', 's')")
    reader = Reader(server, more={**settings, "table.include.list": "public.orders"})
    records = reader.read(1)
    run(database, "UPDATE orders SET id = 2")
    records += reader.read(3)
    assert [record.key["id"] for record in records] == [1, 1, 1, 2]
    for record in (records[0], records[3]):
        assert [field.name for field in record.value["after"].schema.fields] == names
    reader.task.stop()


@pytest.mark.slow
def test_texts_are_masked(server: PostgreSql, database: psycopg.Connection[Any]) -> None:
    run(
        database, "CREATE TABLE t (id INT PRIMARY KEY, a TEXT, b VARCHAR(9), c TEXT, d TEXT, n INT)"
    )
    run(database, "INSERT INTO t VALUES (1, 'abcdef', 'secret', NULL, 'secret', 5)")
    more = {
        "column.truncate.to.3.chars": "public.t.a,public.t.n",
        "column.mask.with.5.chars": "public.t.c",
        "column.mask.hash.v2.SHA-256.with.salt.CzQMA0cB5K": r"public\.t\.(b|d)",
    }
    reader = Reader(server, more=more)
    (first,) = reader.read(1)
    run(database, "UPDATE t SET n = 6")
    (second,) = reader.read(1)
    digest = hashlib.sha256(b"CzQMA0cB5Ksecret").hexdigest()
    for record, number in ((first, 5), (second, 6)):
        row = {field.name: each for field, each in record.value["after"].items()}
        assert row == {"id": 1, "a": "abc", "b": digest[:9], "c": "*****", "d": digest, "n": number}
    reader.task.stop()


def test_the_first_kind_of_hash_is_of_what_java_serialises() -> None:
    (mask,) = Masks({"column.mask.hash.MD5.with.salt.s": "a"}).of("a")
    assert (
        mask("\u00e9\0", 0)
        == hashlib.md5(b"s\xac\xed\x00\x05t\x00\x04\xc3\xa9\xc0\x80").hexdigest()
    )
    assert mask(None, 0) is None
