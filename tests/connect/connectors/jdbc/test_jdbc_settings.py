"""Addresses, lists of tables and the other settings of Confluent's JDBC connectors."""

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connect.connectors.jdbc import JdbcSinkConnector, JdbcSourceConnector
from connect.connectors.jdbc.addresses import address_of
from connect.connectors.jdbc.connection import engine_of
from connect.connectors.jdbc.sink_settings import SINK_CONFIG
from connect.connectors.jdbc.sink_task import JdbcSinkTask
from connect.connectors.jdbc.source_settings import SOURCE_CONFIG
from connect.connectors.jdbc.table_lists import tables_in
from millstream.connect import ConfigException, ConnectException, RetriableException, Schema, Struct
from tests.lib.connect_tasks import Kept, polled, sink_record, started_sink, started_source
from tests.lib.postgresql import PostgreSql

KEYED = {"insert.mode": "upsert", "pk.mode": "record_key", "delete.enabled": "true"}
ROW = Schema.struct({"n": Schema.int32(optional=True, default=7), "t": Schema.string()})


@pytest.fixture(scope="module")
def server() -> Iterator[PostgreSql]:
    with PostgreSql() as running:
        yield running


@pytest.fixture
def url(server: PostgreSql) -> str:
    emptied(server.url)
    return server.url


def emptied(url: str) -> None:
    """Make the schema anew; what a test that failed has left open goes first."""
    run(
        url,
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE pid <> "
        "pg_backend_pid() AND backend_type = 'client backend'",
        "DROP SCHEMA IF EXISTS other CASCADE",
        "DROP SCHEMA public CASCADE",
        "CREATE SCHEMA public",
    )


def run(url: str, *statements: str) -> list[tuple[Any, ...]]:
    engine = engine_of(SINK_CONFIG.parse({"connection.url": url}))
    with engine.begin() as connection:
        for statement in statements:
            result = connection.exec_driver_sql(statement)
        return [tuple(row) for row in result] if result.returns_rows else []


def source(url: str, **settings: str) -> dict[str, str]:
    told = {name.replace("_", "."): value for name, value in settings.items()}
    base = {"mode": "bulk", "topic.prefix": "", "poll.interval.ms": "1"}
    return {"connection.url": url, **base, **told}


def sink(url: str, **settings: str) -> JdbcSinkTask:
    told = {name.replace("_", "."): value for name, value in settings.items()}
    task = JdbcSinkTask()
    started_sink(task, {"connection.url": url, "retry.backoff.ms": "1", **told})
    return task


@pytest.mark.parametrize(
    ("text", "url", "arguments"),
    [
        ("jdbc:postgresql:d", "postgresql+psycopg://localhost/d", {}),
        ("jdbc:postgresql://h/d?stringtype=unspecified", "postgresql+psycopg://h:5432/d", {}),
        ("jdbc:postgresql://h:1/d?ssl=true&sslmode=require", "postgresql+psycopg://h:1/d",
         {"sslmode": "require"}),
        ("jdbc:postgresql://h/d?ssl=true", "postgresql+psycopg://h:5432/d",
         {"sslmode": "verify-full"}),
        ("jdbc:postgresql://h/d?sslfactory=org.postgresql.ssl.NonValidatingFactory&ssl=true",
         "postgresql+psycopg://h:5432/d", {"sslmode": "require"}),
        ("jdbc:postgresql://a:1,b/d?targetServerType=primary&currentSchema=my%20s,public",
         "postgresql+psycopg:///d?host=a%3A1&host=b%3A5432",
         {"target_session_attrs": "primary", "options": "-c search_path=my\\ s,public"}),
        ("jdbc:postgresql://[::1]:5433/d?user=u&password=p%26q&ApplicationName=x",
         "postgresql+psycopg://u:p%26q@[::1]:5433/d", {"application_name": "x"}),
        ("jdbc:mysql://h/d?useSSL=false&serverTimezone=UTC&connectTimeout=5000",
         "mysql+pymysql://h:3306/d", {"connect_timeout": 5}),
        ("jdbc:sqlite:/a/b.db", "sqlite:////a/b.db", {}),
        ("postgresql://u@h/d?sslmode=require", "postgresql+psycopg://u@h/d?sslmode=require", {}),
    ],
)  # fmt: skip
def test_addresses_of_java_are_translated(text: str, url: str, arguments: dict[str, Any]) -> None:
    address = address_of(text)
    assert address.url.render_as_string(hide_password=False) == url
    assert address.arguments == arguments


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("jdbc:postgresql://h/d?socketFactory=x&escapeSyntaxCallMode=y", "socketFactory, escape"),
        ("jdbc:postgresql://h/d?sslfactory=x", "sslfactory"),
        ("jdbc:postgresql://h:x/d", "no URL"),
        ("jdbc:mysql://h/d?zeroDateTimeBehavior=convertToNull", "zeroDateTimeBehavior"),
        ("jdbc:sqlite:a.db?journal_mode=WAL", "journal_mode"),
        ("jdbc:oracle:thin:@h:1521:orcl", "oracle give SQLAlchemy's URL"),
        ("jdbc:sqlserver://h;databaseName=d", "sqlserver give SQLAlchemy's URL"),
        ("postgresql://h/d?stringtype=unspecified", "stringtype are not parameters of libpq"),
        ("nothing", "no URL"),
    ],
)
def test_addresses_that_are_not_understood_are_refused(text: str, said: str) -> None:
    for connector, more in (
        (JdbcSinkConnector(), {}),
        (JdbcSourceConnector(), {"mode": "bulk", "topic.prefix": ""}),
    ):
        given = {"connection.url": text, **more}
        values = connector.validate(given)
        wrong = {one.name: one.error_messages for one in values.values() if one.error_messages}
        assert list(wrong) == ["connection.url"]
        assert said in wrong["connection.url"][0]
        with pytest.raises(ConfigException):
            connector.start(given)


@pytest.mark.slow
def test_an_address_with_parameters_is_connected_to(server: PostgreSql, url: str) -> None:
    run(url, "CREATE SCHEMA other", "CREATE TABLE other.t (id INT PRIMARY KEY, t JSONB, u UUID)")
    query = (
        "currentSchema=other,public&stringtype=unspecified&ApplicationName=mine&prepareThreshold=0"
        "&reWriteBatchedInserts=true&options=-c%20statement_timeout%3D60000"
    )
    address = f"jdbc:postgresql://127.0.0.1:{server.port}/postgres?user=postgres&{query}"
    task = sink(address, table_name_format="t")
    value = Schema.struct({"id": Schema.int32(), "t": Schema.string(), "u": Schema.string()})
    row = Struct(value, {"id": 1, "t": '{"a":1}', "u": "ab" * 16})
    task.put([sink_record(0, None, row)])
    task.stop()
    assert run(url, "SELECT t->>'a' FROM other.t") == [("1",)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "tables"),
    [
        ({}, ["a", "a_b", "other.a"]),
        ({"schema_pattern": "public"}, ["public.a", "public.a_b"]),
        ({"schema_pattern": "oth%"}, ["other.a"]),
        ({"table_include_list": "a.*"}, ["a", "a_b", "other.a"]),
        ({"table_include_list": r"public\..*,postgres\.other\.a"}, ["a", "a_b", "other.a"]),
        ({"table_include_list": ".*", "table_exclude_list": "A,a"}, ["a_b"]),
        ({"table_whitelist": "other.a"}, ["other.a"]),
        ({"table_blacklist": "a_b"}, ["a", "other.a"]),
        ({"table_types": "VIEW"}, ["v"]),
        ({"table_types": "TABLE,VIEW", "table_blacklist": "a"}, ["a_b", "v"]),
    ],
)
def test_which_tables_are_read(url: str, settings: dict[str, str], tables: list[str]) -> None:
    run(url, "CREATE TABLE a (id INT)", "CREATE TABLE a_b (id INT)", "CREATE SCHEMA other")
    run(url, "CREATE TABLE other.a (id INT)", "CREATE VIEW v AS SELECT 1 AS id")
    parsed = SOURCE_CONFIG.parse(source(url, **settings))
    assert tables_in(engine_of(parsed), parsed) == tables


@pytest.mark.parametrize(
    ("settings", "name", "said"),
    [
        ({"table.include.list": "a("}, "table.include.list", "not a regular expression"),
        ({"table.include.list": "a", "table.whitelist": "a"}, "table.whitelist", "not both"),
        ({"query": "SELECT 1", "query.masked": "SELECT 1"}, "query.masked", "not both"),
        ({"query.masked": "SELECT 1", "table.whitelist": "a"}, "query", "exclude each other"),
        ({"db.timezone": "Nowhere/Else"}, "db.timezone", "time zone"),
        (
            {"transaction.isolation.mode": "sql_server_snapshot"},
            "transaction.isolation.mode",
            "one",
        ),
        ({"timestamp.columns.mapping": "a:[b]"}, "timestamp.columns.mapping", "not supported"),
        ({"catalog.pattern": "x"}, "catalog.pattern", "not supported"),
    ],
)
def test_what_is_wrong_with_a_source_is_refused(
    settings: dict[str, str], name: str, said: str
) -> None:
    values = JdbcSourceConnector().validate({**source("sqlite://"), **settings})
    wrong = {one.name: one.error_messages for one in values.values() if one.error_messages}
    assert list(wrong) == [name]
    assert said in wrong[name][0]


@pytest.mark.slow
def test_tables_with_commas_in_their_names_are_read(url: str) -> None:
    names = ["a,b", "c\\", "d, ,e"]
    for name in names:
        run(url, f'CREATE TABLE "{name}" AS SELECT 1 AS id')
    task = started_source(JdbcSourceConnector(), source(url), Kept())
    assert sorted(one.topic for one in polled(task, Kept(), 3)) == sorted(names)
    task.stop()


@pytest.mark.slow
def test_a_source_without_tables_says_so(url: str) -> None:
    connector = JdbcSourceConnector()
    connector.start(source(url, table_include_list="never"))
    assert "no table to read" in str(connector.note())
    assert connector.task_configs(1) == []
    connector.stop()


@pytest.mark.slow
def test_microseconds_that_are_cut_are_said(url: str) -> None:
    run(url, "CREATE TABLE a (at TIMESTAMP, clock TIME)")
    run(url, "INSERT INTO a VALUES ('2026-01-02 03:04:05.678', '01:02:03.000001')")
    for granularity, said in (("connect_logical", "a.clock. Set"), ("micros_long", "a.clock. Set")):
        settings = source(url, timestamp_granularity=granularity)
        task = started_source(JdbcSourceConnector(), settings, Kept())
        assert task.note() is None
        polled(task, Kept())
        assert said in str(task.note())
        task.stop()
    run(url, "UPDATE a SET at = '2026-01-02 03:04:05.678901', clock = NULL")
    task = started_source(JdbcSourceConnector(), source(url), Kept())
    polled(task, Kept())
    assert "a.at. Set timestamp.granularity" in str(task.note())
    task.stop()


@pytest.mark.slow
def test_a_query_that_is_not_shown_and_a_suffix(url: str) -> None:
    run(url, "CREATE TABLE a (id INT)", "INSERT INTO a SELECT generate_series(1, 9)")
    settings = source(url, query_masked="SELECT * FROM a WHERE id > 2", query_suffix="LIMIT 3")
    task = started_source(JdbcSourceConnector(), settings, Kept())
    assert len(polled(task, Kept())) == 3
    task.stop()


@pytest.mark.slow
def test_where_changes_begin_and_end(url: str) -> None:
    now = datetime.datetime.now(datetime.UTC)
    moments = [now - datetime.timedelta(seconds=seconds) for seconds in (7200, 1800, 5)]
    rows = ", ".join(f"({place}, '{one:%Y-%m-%d %H:%M:%S}')" for place, one in enumerate(moments))
    run(url, "CREATE TABLE a (id INT, at TIMESTAMP NOT NULL)", f"INSERT INTO a VALUES {rows}")
    settings = source(url, mode="timestamp", timestamp_column_name="at")
    initial = str(int((now.timestamp() - 3600) * 1000))
    more = {"timestamp.initial": initial, "timestamp.delay.interval.ms": "600000"}
    task = started_source(JdbcSourceConnector(), {**settings, **more}, Kept())
    assert [one.value["id"] for one in polled(task, Kept())] == [1]
    task.stop()


@pytest.mark.slow
def test_the_isolation_level_is_what_was_asked_for(url: str) -> None:
    settings = source(
        url,
        transaction_isolation_mode="SERIALIZABLE",
        query="SELECT current_setting('transaction_isolation') AS level",
    )
    task = started_source(JdbcSourceConnector(), settings, Kept())
    assert polled(task, Kept())[0].value["level"] == "serializable"
    task.stop()


@pytest.mark.slow
@pytest.mark.parametrize(("is_replaced", "expected"), [("true", 7), ("false", None)])
def test_a_null_of_a_field_that_has_a_default(
    url: str, is_replaced: str, expected: int | None
) -> None:
    run(url, "CREATE TABLE orders (n INT, t TEXT)")
    task = sink(url, replace_null_with_default=is_replaced)
    task.put([sink_record(0, None, Struct(ROW, {"n": None, "t": "x"}))])
    task.stop()
    assert run(url, "SELECT n FROM orders") == [(expected,)]


@pytest.mark.slow
def test_a_value_that_is_a_text(url: str) -> None:
    task = sink(url, auto_create="true", pk_mode="kafka", string_output_value_column_name="said")
    task.put([sink_record(3, None, "hello")])
    task.stop()
    assert run(url, "SELECT said, __connect_offset FROM orders") == [("hello", 3)]


@pytest.mark.slow
def test_operations_on_one_key_are_done_in_their_order(url: str) -> None:
    """Across shapes of rows, deletes, and two topics that go to one table."""
    task = sink(
        url,
        **{name.replace(".", "_"): value for name, value in KEYED.items()},
        pk_fields="id",
        auto_create="true",
        auto_evolve="true",
        table_name_format="t",
    )
    wide = Schema.struct({"n": Schema.int32(optional=True), "m": Schema.int32(optional=True)})
    narrow = Schema.struct({"n": Schema.int32(optional=True)})
    rows: list[Any] = []
    for number in range(60):
        kind = number % 3
        value = (
            None
            if kind == 2
            else Struct(wide, {"n": number, "m": number})
            if kind
            else Struct(narrow, {"n": number})
        )
        rows.append(sink_record(number, number % 4, value, topic=f"topic-{number % 2}"))
    task.put(rows)
    task.stop()
    last = {one.key: one.value for one in rows}
    expected = {key: value["n"] for key, value in last.items() if value is not None}
    assert dict(run(url, "SELECT id, n FROM t")) == expected


UNMENDABLE = [
    ("CREATE TABLE orders (n INT)", {}, r'missing fields \(t\)'),
    ("CREATE TABLE orders (n INT, t INT)", {}, "invalid input syntax for type integer"),
    ("CREATE TABLE orders (n INT, t TEXT CHECK (n > 100))", {}, "violates check constraint"),
    ("CREATE VIEW orders AS SELECT 1 AS n, 'a' AS t", {}, "cannot insert into view"),
    ("CREATE TABLE orders (n INT, t TEXT)", {"insert.mode": "upsert", "pk.mode": "record_value",
                                             "pk.fields": "n"}, "no unique or exclusion"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("table", "settings", "said"), UNMENDABLE)
def test_what_no_second_attempt_can_mend_fails_at_once(
    url: str, table: str, settings: dict[str, str], said: str
) -> None:
    run(url, table)
    task = JdbcSinkTask()
    side = started_sink(task, {"connection.url": url, **settings})
    with pytest.raises(ConnectException, match=said) as failed:
        task.put([sink_record(0, None, Struct(ROW, {"n": 1, "t": "x"}))])
    assert not isinstance(failed.value, RetriableException)
    assert not side.timeouts_ms
    task.stop()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("/postgres", "/never"), 'database "never" does not exist'),
        (("postgres@", "nobody@"), 'role "nobody" does not exist'),
    ],
)
def test_a_server_that_turns_us_away_is_not_asked_again(
    url: str, change: tuple[str, str], said: str
) -> None:
    wrong = (
        url.replace(*change) if change[0] != "/postgres" else url[: -len("/postgres")] + "/never"
    )
    task = sink(wrong)
    with pytest.raises(ConnectException, match=said) as failed:
        task.put([sink_record(0, None, Struct(ROW, {"n": 1, "t": "x"}))])
    assert not isinstance(failed.value, RetriableException)
    task.stop()


@pytest.mark.slow
def test_a_table_that_was_made_anew_is_looked_at_again(url: str) -> None:
    task = sink(url, auto_create="true")
    row = Struct(ROW, {"n": 1, "t": "x"})
    task.put([sink_record(0, None, row)])
    run(url, "DROP TABLE orders")
    task.put([sink_record(1, None, row)])
    run(url, "DROP TABLE orders", "CREATE TABLE orders (t TEXT, n BIGINT, more INT)")
    task.put([sink_record(2, None, row)])
    task.stop()
    assert run(url, "SELECT count(*) FROM orders") == [(1,)]


@pytest.mark.slow
def test_a_locked_sqlite_is_tried_again(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "shop.db"
    url = f"jdbc:sqlite:{path}"
    run(url, "CREATE TABLE orders (n INT, t TEXT)")
    task = sink(url, max_retries="1")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    from sqlalchemy import create_engine

    task._engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": 0})
    row = [sink_record(0, None, Struct(ROW, {"n": 1, "t": "x"}))]
    with pytest.raises(RetriableException, match="locked"):
        task.put(row)
    other.execute("COMMIT")
    other.close()
    task.put(row)
    task.stop()
    task._engine.dispose()
