"""JDBC source and sink against SQLite and a real PostgreSQL: the same rules for both."""

import datetime
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from connect.connectors.jdbc import JdbcSinkConnector, JdbcSourceConnector
from connect.connectors.jdbc.connection import url_of
from connect.connectors.jdbc.sink_task import JdbcSinkTask
from connect.connectors.jdbc.source_settings import SOURCE_CONFIG
from millstream.connect import ConnectException, RetriableException, Schema, Struct
from tests.lib.connect_tasks import (
    Kept,
    polled,
    sink_record,
    started_sink,
    started_source,
)
from tests.lib.postgresql import PostgreSql

pytestmark = pytest.mark.slow
ORDER = Schema.struct(
    {
        "id": Schema.int64(),
        "note": Schema.string(optional=True),
        "price": Schema.decimal(2),
        "at": Schema.timestamp(optional=True),
        "day": Schema.date(optional=True),
        "clock": Schema.time(optional=True),
        "flag": Schema.boolean(default=True),
        "part": Schema.float64(optional=True),
        "raw": Schema.bytes(optional=True),
    }
)
AT = datetime.datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=datetime.UTC)
UPSERT = {
    "insert.mode": "upsert",
    "pk.mode": "record_key",
    "pk.fields": "id",
    "delete.enabled": "true",
    "auto.create": "true",
    "auto.evolve": "true",
    "retry.backoff.ms": "1",
}


@pytest.fixture(scope="module")
def postgresql() -> Iterator[PostgreSql]:
    with PostgreSql() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"jdbc:sqlite:{tmp_path / 'shop.db'}"
    server: PostgreSql = request.getfixturevalue("postgresql")
    run(server.url, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
    return f"jdbc:{server.url}"


def engine(url: str) -> sa.Engine:
    return sa.create_engine(url_of(SOURCE_CONFIG.parse(source(url))), poolclass=sa.NullPool)


def run(url: str, *statements: str) -> None:
    with engine(url).begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


def rows(url: str, query: str) -> list[tuple[Any, ...]]:
    with engine(url).connect() as connection:
        return [tuple(row) for row in connection.exec_driver_sql(query)]


def source(url: str, mode: str = "bulk", **more: str) -> dict[str, str]:
    told = {name.replace("_", "."): value for name, value in more.items()}
    return {
        "connection.url": url,
        "mode": mode,
        "topic.prefix": "db-",
        "poll.interval.ms": "1",
        **told,
    }


def order(id_: int, note: str | None = "x", **more: Any) -> Struct:
    return Struct(ORDER, {"id": id_, "note": note, "price": Decimal("1.50"), **more})


def values(records: list[Any], name: str) -> list[Any]:
    return [record.value[name] for record in records]


ORDERS = "CREATE TABLE orders (id INTEGER NOT NULL PRIMARY KEY, note VARCHAR(20), at TIMESTAMP)"


def test_bulk_gives_every_row_each_time(url: str) -> None:
    run(url, ORDERS, "INSERT INTO orders VALUES (1, 'a', NULL), (2, NULL, '2026-01-02 03:04:05')")
    kept = Kept()
    task = started_source(JdbcSourceConnector(), source(url, batch_max_rows="1"), kept)
    records = polled(task, kept, 2)
    assert [record.topic for record in records] == ["db-orders"] * 2
    assert values(records, "note") == ["a", None]
    assert records[1].value["at"] == AT.replace(microsecond=0)
    assert not kept.offset_of
    task.stop()


def test_incrementing_goes_on_where_it_was(url: str) -> None:
    run(url, ORDERS, "INSERT INTO orders VALUES (1, 'a', NULL), (7, 'b', NULL)")
    kept = Kept()
    settings = source(url, "incrementing", incrementing_column_name="id", table_whitelist="orders")
    task = started_source(JdbcSourceConnector(), settings, kept)
    assert values(polled(task, kept), "id") == [1, 7]
    run(url, "UPDATE orders SET note = 'c'", "INSERT INTO orders VALUES (8, 'd', NULL)")
    assert values(polled(task, kept, 2), "id") == [8]
    task.stop()
    run(url, "INSERT INTO orders VALUES (9, 'e', NULL)")
    task = started_source(JdbcSourceConnector(), settings, kept)
    records = polled(task, kept)
    assert values(records, "id") == [9]
    assert records[0].source_partition == {"protocol": "1", "table": "orders"}
    assert records[0].source_offset == {"incrementing": 9}
    task.stop()


def test_timestamp_and_incrementing_find_changes_too(url: str) -> None:
    run(
        url,
        ORDERS,
        "INSERT INTO orders VALUES (1, 'a', '2026-01-02 03:04:05.678901')",
        "INSERT INTO orders VALUES (2, 'b', '2026-01-02 03:04:05.678901')",
        "INSERT INTO orders VALUES (3, 'later', '2999-01-02 03:04:05')",
    )
    kept = Kept()
    settings = source(
        url,
        "timestamp+incrementing",
        incrementing_column_name="id",
        timestamp_column_name="at",
        validate_non_null="false",
        batch_max_rows="1",
    )
    task = started_source(JdbcSourceConnector(), settings, kept)
    assert values(polled(task, kept), "note") == ["a"]
    task.stop()
    task = started_source(JdbcSourceConnector(), settings, kept)
    records = polled(task, kept, 3)
    assert values(records, "note") == ["b"]
    assert records[0].source_offset == {
        "incrementing": 2,
        "timestamp": 1767323045678,
        "timestamp_nanos": 678901000,
    }
    run(url, "UPDATE orders SET note = 'changed', at = '2026-02-01 00:00:00' WHERE id = 1")
    assert values(polled(task, kept, 3), "note") == ["changed"]
    task.stop()


def test_no_batch_ends_among_rows_of_one_timestamp(url: str) -> None:
    """A transaction that ended there would be followed by the same rows again."""
    rows_at = [f"({number}, 'x', '2026-01-0{1 + number // 3} 03:04:05')" for number in range(9)]
    run(url, ORDERS, f"INSERT INTO orders VALUES {', '.join(rows_at)}")
    settings = source(url, "timestamp", timestamp_column_name="at", validate_non_null="false")
    task = started_source(JdbcSourceConnector(), {**settings, "batch.max.rows": "2"}, Kept())
    batches = [task.poll() or [] for _ in range(3)]
    assert [len(batch) for batch in batches] == [3, 3, 3]
    assert sorted(values([one for batch in batches for one in batch], "id")) == list(range(9))
    last = [batch[-1].source_offset["timestamp"] for batch in batches]
    assert last == sorted(set(last))
    task.stop()


def test_a_query_is_read_with_its_types(url: str) -> None:
    run(url, ORDERS, "INSERT INTO orders VALUES (1, 'a', '2026-01-02 03:04:05'), (2, 'b', NULL)")
    kept = Kept()
    settings = source(
        url,
        "incrementing",
        incrementing_column_name="id",
        query="SELECT id, at FROM orders WHERE note <> 'z:z';",
    )
    task = started_source(JdbcSourceConnector(), settings, kept)
    records = polled(task, kept)
    assert values(records, "id") == [1, 2]
    assert records[0].topic == "db-"
    assert records[0].value["at"] == AT.replace(microsecond=0)
    task.stop()


def test_a_column_that_may_be_null_and_one_that_is_not_there_are_refused(url: str) -> None:
    run(url, ORDERS)
    for column, said in (("at", "nullable"), ("never", "no column never")):
        settings = source(url, "timestamp", timestamp_column_name=column)
        task = started_source(JdbcSourceConnector(), settings, Kept())
        with pytest.raises(ConnectException, match=said):
            task.poll()
        task.stop()


@pytest.mark.parametrize("kind", ["INTEGER", "INT"])
def test_sqlites_row_id_is_never_null_and_another_key_may_be(tmp_path: Path, kind: str) -> None:
    url = f"jdbc:sqlite:{tmp_path / 'items.db'}"
    run(url, f"CREATE TABLE items (id {kind} PRIMARY KEY)", "INSERT INTO items VALUES (7)")
    settings = source(url, "incrementing", incrementing_column_name="id")
    task = started_source(JdbcSourceConnector(), settings, Kept())
    if kind == "INTEGER":
        assert values(task.poll(), "id") == [7]
    else:
        with pytest.raises(ConnectException, match="nullable"):
            task.poll()
    task.stop()


def test_new_tables_are_found_and_divided(url: str) -> None:
    run(url, ORDERS, "CREATE TABLE other (id INTEGER)", "CREATE TABLE third (id INTEGER)")
    connector = JdbcSourceConnector()
    connector.start(source(url, table_blacklist="third"))
    assert [config["tables"] for config in connector.task_configs(5)] == ["orders", "other"]
    assert [config["tables"] for config in connector.task_configs(1)] == ["orders,other"]
    connector.stop()


@pytest.mark.parametrize("mode", ["bulk", "incrementing"])
def test_a_table_that_is_missing_or_dropped_does_not_stop_the_others(url: str, mode: str) -> None:
    run(url, ORDERS, "CREATE TABLE other (id INTEGER NOT NULL PRIMARY KEY)")
    run(url, "INSERT INTO orders VALUES (1, 'a', NULL)", "INSERT INTO other VALUES (1)")
    column = {"incrementing_column_name": "id"} if mode == "incrementing" else {}
    settings = source(url, mode, table_whitelist="never,orders,other", **column)
    connector, kept = JdbcSourceConnector(), Kept()
    task = started_source(connector, settings, kept)
    assert "do not exist: never." in str(connector.note())
    assert {one.topic for one in polled(task, kept, 6)} == {"db-orders", "db-other"}
    assert task.note() is None

    run(url, "DROP TABLE orders", "INSERT INTO other VALUES (2)")
    found = polled(task, kept, 6)
    assert {one.topic for one in found} == {"db-other"}
    assert 2 in values(found, "id")
    assert "do not exist: orders." in str(task.note())

    run(url, ORDERS, "INSERT INTO orders VALUES (3, 'b', NULL)")
    assert 3 in values([one for one in polled(task, kept, 8) if one.topic == "db-orders"], "id")
    assert task.note() is None
    task.stop()
    connector.stop()


def test_tables_of_the_whitelist_are_read_when_they_come(url: str) -> None:
    run(url, ORDERS)
    connector = JdbcSourceConnector()
    connector.start(source(url, table_whitelist="never,orders"))
    assert [config["tables"] for config in connector.task_configs(2)] == ["orders"]
    connector.stop()
    run(url, "CREATE TABLE never (id INTEGER)")
    connector.start(source(url, table_whitelist="never,orders"))
    assert [config["tables"] for config in connector.task_configs(2)] == ["never", "orders"]
    assert connector.note() is None
    connector.stop()


def test_what_a_sink_writes_a_source_reads(url: str) -> None:
    task = JdbcSinkTask()
    started_sink(task, {"connection.url": url, **UPSERT})
    full = order(
        1,
        at=AT,
        day=AT.date(),
        clock=datetime.time(3, 4, 5),
        part=1.5,
        raw=b"\x00\xff",
        flag=False,
    )
    task.put([sink_record(0, 1, full), sink_record(1, 2, order(2, None))])
    kept = Kept()
    reader = started_source(JdbcSourceConnector(), source(url), kept)
    first, second = polled(reader, kept)
    for name in ("id", "note", "at", "day", "clock", "part", "raw", "flag"):
        assert first.value[name] == full[name], name
    assert first.value["price"].normalize() == Decimal("1.5")
    assert (second.value["note"], second.value["flag"]) == (None, True)
    reader.stop()
    task.stop()


def test_upserts_and_deletes_leave_the_last_of_each_key_however_often_they_come(url: str) -> None:
    records = [
        sink_record(0, 1, order(1, "a")),
        sink_record(1, 2, order(2, "b")),
        sink_record(2, 1, order(1, "c")),
        sink_record(3, 2, None),
        sink_record(4, 3, None),
        sink_record(5, 2, order(2, "d")),
        sink_record(6, 4, order(4, "e")),
        sink_record(7, 4, None),
    ]
    task = JdbcSinkTask()
    started_sink(task, {"connection.url": url, **UPSERT})
    for _ in range(2):
        task.put(records)
        assert rows(url, "SELECT id, note FROM orders ORDER BY id") == [(1, "c"), (2, "d")]
    task.stop()


def test_a_table_is_widened_for_new_fields_and_only_when_told(url: str) -> None:
    settings = {"connection.url": url, **UPSERT}
    task = JdbcSinkTask()
    started_sink(task, settings)
    task.put([sink_record(0, 1, order(1))])
    wide = Schema.struct(
        {
            "id": Schema.int64(),
            "price": Schema.decimal(2),
            "odd%name": Schema.string(optional=True),
            "n": Schema.int32(default=7),
        }
    )
    struct = Struct(wide, {"id": 2, "price": Decimal("2.00"), "odd%name": "new"})
    task.put([sink_record(1, 2, struct)])
    assert rows(url, "SELECT id, n FROM orders ORDER BY id") == [(1, 7), (2, 7)]
    task.stop()
    strict = JdbcSinkTask()
    started_sink(strict, {**settings, "auto.evolve": "false"})
    more = Schema.struct({"id": Schema.int64(), "more": Schema.string(optional=True)})
    with pytest.raises(ConnectException, match="more"):
        strict.put([sink_record(2, 3, Struct(more, {"id": 3}))])
    strict.stop()


def test_insert_and_update_and_keys_of_kafka(url: str) -> None:
    task = JdbcSinkTask()
    started_sink(task, {"connection.url": url, "pk.mode": "kafka", "auto.create": "true"})
    task.put([sink_record(5, None, order(1)), sink_record(6, None, order(1))])
    assert rows(url, 'SELECT "__connect_offset", id FROM orders ORDER BY 1') == [(5, 1), (6, 1)]
    task.stop()
    update = JdbcSinkTask()
    settings = {"connection.url": url, "pk.mode": "record_value", "pk.fields": "id"}
    started_sink(update, {**settings, "insert.mode": "update", "fields.whitelist": "note"})
    update.put([sink_record(7, None, order(1, "new")), sink_record(8, None, order(9, "nobody"))])
    assert rows(url, "SELECT note FROM orders") == [("new",), ("new",)]
    update.stop()


def test_one_bad_row_is_reported_and_the_others_are_written(url: str) -> None:
    run(url, "CREATE TABLE orders (id BIGINT PRIMARY KEY, note TEXT NOT NULL)")
    settings = {"connection.url": url, **UPSERT, "fields.whitelist": "note"}
    task = JdbcSinkTask()
    side = started_sink(task, settings, tolerates=True)
    task.put(
        [
            sink_record(0, 1, order(1, "a")),
            sink_record(1, 2, order(2, None)),
            sink_record(2, 3, {"no": "schema"}),
            sink_record(3, 4, order(4, "d")),
        ]
    )
    assert [record.kafka_offset for record, _ in side.reported] == [2, 1]
    assert rows(url, "SELECT id FROM orders ORDER BY id") == [(1,), (4,)]
    task.stop()
    strict = JdbcSinkTask()
    started_sink(strict, settings)
    with pytest.raises(ConnectException, match="refuses a row"):
        strict.put([sink_record(1, 2, order(2, None))])
    strict.stop()


# SQLAlchemy leaves the cursor of a connection that broke to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:.*deleted while still open:ResourceWarning")
def test_a_database_that_goes_and_comes_back_loses_nothing() -> None:
    with PostgreSql() as server:
        run(server.url, ORDERS)
        task = JdbcSinkTask()
        side = started_sink(
            task,
            {
                "connection.url": server.url,
                **UPSERT,
                "fields.whitelist": "note",
                "max.retries": "2",
            },
        )
        kept = Kept()
        settings = source(server.url, "incrementing", incrementing_column_name="id")
        reader = started_source(JdbcSourceConnector(), settings, kept)
        task.put([sink_record(0, 1, order(1))])
        assert values(polled(reader, kept), "id") == [1]
        server.stop()
        for _ in range(2):
            with pytest.raises(RetriableException):
                task.put([sink_record(1, 2, order(2))])
            with pytest.raises(RetriableException):
                reader.poll()
        assert side.timeouts_ms == [1, 1]
        with pytest.raises(ConnectException) as failed:
            task.put([sink_record(1, 2, order(2))])
        assert not isinstance(failed.value, RetriableException)
        server.start()
        task.put([sink_record(1, 2, order(2))])
        assert values(polled(reader, kept), "id") == [2]
        reader.stop()
        task.stop()


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"mode": "timestamp"}, "timestamp.column.name"),
        ({"query": "SELECT 1", "table.whitelist": "a"}, "query"),
        ({"table.include.list": "a", "table.blacklist": "b"}, "table.blacklist"),
    ],
)
def test_settings_of_a_source_that_do_not_go_together(settings: dict[str, str], name: str) -> None:
    values = JdbcSourceConnector().validate({**source("sqlite://"), **settings})
    assert [one.name for one in values.values() if one.error_messages] == [name]


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"insert.mode": "upsert"}, "insert.mode"),
        ({"delete.enabled": "true", "pk.mode": "kafka"}, "delete.enabled"),
        ({"pk.mode": "kafka", "pk.fields": "a"}, "pk.fields"),
    ],
)
def test_settings_of_a_sink_that_do_not_go_together(settings: dict[str, str], name: str) -> None:
    values = JdbcSinkConnector().validate({"connection.url": "sqlite://", **settings})
    assert [one.name for one in values.values() if one.error_messages] == [name]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("jdbc:sqlite:/tmp/a.db", "sqlite:////tmp/a.db"),
        ("jdbc:postgresql://h:5/d?user=u&password=p", "postgresql+psycopg://u:p@h:5/d"),
        ("postgresql://h/d", "postgresql+psycopg://h/d"),
    ],
)
def test_urls_of_java_are_understood(text: str, expected: str) -> None:
    url = url_of(SOURCE_CONFIG.parse(source(text)))
    assert url.render_as_string(hide_password=False) == expected


@pytest.mark.parametrize(
    ("kind", "value"),
    [("NUMERIC(10, 2)", "1.5"), ("NUMERIC(30)", "9223372036854775808"), ("TEXT", "'7'")],
)
def test_a_column_that_counts_nothing_is_refused_in_words(url: str, kind: str, value: str) -> None:
    """A fraction would be cut from the offset, and its row be read again for ever."""
    run(url, f"CREATE TABLE t (id {kind} PRIMARY KEY NOT NULL)", f"INSERT INTO t VALUES ({value})")
    kept = Kept()
    told = source(url, "incrementing", incrementing_column_name="id")
    task = started_source(JdbcSourceConnector(), told, kept)
    with pytest.raises(ConnectException, match="must be a whole number of 64 bits"):
        polled(task, kept)
    task.stop()


def test_a_row_without_a_number_is_left_out_of_an_incrementing_query(url: str) -> None:
    run(url, "CREATE TABLE t (id BIGINT)", "INSERT INTO t VALUES (NULL), (3)")
    kept = Kept()
    more = {"incrementing_column_name": "id", "validate_non_null": "false"}
    task = started_source(JdbcSourceConnector(), source(url, "incrementing", **more), kept)
    assert values(polled(task, kept, 2), "id") == [3]
    task.stop()


def test_columns_that_come_go_or_get_another_type_are_read_at_once(url: str) -> None:
    """Values of a new column would be lost until the next start."""
    run(
        url,
        "CREATE TABLE t (id BIGINT PRIMARY KEY NOT NULL, v INTEGER)",
        "INSERT INTO t VALUES (1, 1)",
    )
    kept = Kept()
    told = source(url, "incrementing", incrementing_column_name="id")
    task = started_source(JdbcSourceConnector(), told, kept)

    def changed(*statements: str) -> dict[str, Any]:
        run(url, *statements)
        (record,) = polled(task, kept, 2)
        return {field.name: each for field, each in record.value.items()}

    assert changed() == {"id": 1, "v": 1}
    added = changed("ALTER TABLE t ADD COLUMN w TEXT", "INSERT INTO t VALUES (2, 2, 'x')")
    assert added == {"id": 2, "v": 2, "w": "x"}
    renamed = changed("ALTER TABLE t RENAME COLUMN v TO z", "INSERT INTO t VALUES (3, 3, 'y')")
    assert renamed == {"id": 3, "z": 3, "w": "y"}
    dropped = changed("ALTER TABLE t DROP COLUMN w", "INSERT INTO t VALUES (4, 4)")
    assert dropped == {"id": 4, "z": 4}
    if "postgresql" in url:
        retyped = changed("ALTER TABLE t ALTER z TYPE TEXT", "INSERT INTO t VALUES (5, 'five')")
        assert retyped == {"id": 5, "z": "five"}
    task.stop()
