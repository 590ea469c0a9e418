"""Every type of column through source and sink and back: exact, in time zones with summer time."""

import datetime
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from connect.connectors.jdbc import JdbcSourceConnector
from connect.connectors.jdbc.connection import engine_of
from connect.connectors.jdbc.sink_settings import SINK_CONFIG
from connect.connectors.jdbc.sink_task import JdbcSinkTask
from connect.converters.json_converter import JsonConverter
from millstream.connect import ConnectException, DataException, Schema, SourceRecord, Struct
from tests.lib.connect_tasks import Kept, polled, sink_record, started_sink, started_source
from tests.lib.postgresql import PostgreSql

pytestmark = pytest.mark.slow
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"]


@pytest.fixture(scope="module")
def server() -> Iterator[PostgreSql]:
    with PostgreSql() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, server: PostgreSql, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"jdbc:sqlite:{tmp_path / 'shop.db'}"
    emptied(server.url)
    return f"jdbc:{server.url}"


def emptied(url: str) -> None:
    """Make the schema anew; what a test that failed has left open goes first."""
    run(
        url,
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE pid <> "
        "pg_backend_pid() AND backend_type = 'client backend'",
        "DROP SCHEMA public CASCADE",
        "CREATE SCHEMA public",
    )


def run(url: str, *statements: str) -> list[tuple[Any, ...]]:
    """Execute statements; return the rows of the last one, as the driver has them."""
    engine = engine_of(SINK_CONFIG.parse({"connection.url": url}))
    with engine.begin() as connection:
        for statement in statements:
            result = connection.exec_driver_sql(statement)
        return [tuple(row) for row in result] if result.returns_rows else []


def read(url: str, kept: Kept | None = None, **settings: str) -> list[SourceRecord]:
    told = {name.replace("_", "."): value for name, value in settings.items()}
    config = {
        "connection.url": url,
        "mode": "bulk",
        "topic.prefix": "",
        "poll.interval.ms": "1",
        "batch.max.rows": "10000",
        **told,
    }
    kept = Kept() if kept is None else kept
    task = started_source(JdbcSourceConnector(), config, kept)
    try:
        return polled(task, kept, 2 if config["mode"] != "bulk" else 1)
    finally:
        task.stop()


def written(url: str, records: list[SourceRecord], table: str, **settings: str) -> None:
    """Write what was read to another table, through the converter's bytes."""
    told = {name.replace("_", "."): value for name, value in settings.items()}
    task = JdbcSinkTask()
    started_sink(
        task,
        {"connection.url": url, "table.name.format": table, "auto.create": "true", **told},
    )
    task.put([sink_record(place, None, one.value) for place, one in enumerate(records)])
    task.stop()


OF_POSTGRESQL = """
CREATE TYPE mood AS ENUM ('ok', 'a,b');
CREATE TABLE a (id BIGINT PRIMARY KEY, i2 SMALLINT, i4 INT, i8 BIGINT, r REAL, d DOUBLE PRECISION,
n NUMERIC, n2 NUMERIC(20, 5), b BOOLEAN, t TEXT, c CHAR(4), v VARCHAR(9), raw BYTEA, dd DATE,
tt TIME, ts TIMESTAMP, tz TIMESTAMPTZ, ttz TIMETZ, iv INTERVAL, j JSON, jb JSONB, u UUID, ip INET,
m mood, ar INT[], ta TEXT[], mo MONEY, bi BIT(5), x XML, rg INT4RANGE, pt POINT, h TSVECTOR);
INSERT INTO a VALUES (1, -32768, 2147483647, -9223372036854775808, 1.17549435e-38,
1.7976931348623157e308, 12345678901234567890.000000000123456789, -12345.00001, false, E'a\\tb''"',
'x', 'y', '\\x00ff', '0001-01-01', '23:59:59.999999', '9999-12-31 23:59:59.999999',
'2026-03-29 02:30:00.123456+02', '01:02:03.4+05:30', '1 year -2 days 03:00', '{"a" :  1.0}',
'{"b": 123456789012345678901234567890}', 'abababab-abab-abab-abab-abababababab', '10.0.0.1/8',
'a,b', '{1,NULL}', '{"a,b",NULL}', '-1234.56', B'10101', '<a/>', '[1,5)', '(1.5,2)', 'a:1 b:2');
INSERT INTO a (id) VALUES (2);
INSERT INTO a (id, d, r, n2, ts) VALUES (3, '-Infinity', '-0', 0.00001,
'1969-12-31 23:59:59.999999')
"""
OF_SQLITE = """
CREATE TABLE a (id INTEGER PRIMARY KEY, i2 SMALLINT, i8 BIGINT, r REAL, n NUMERIC,
n2 DECIMAL(20, 5), b BOOLEAN, t TEXT, v VARCHAR(9), raw BLOB, dd DATE, tt TIME,
ts TIMESTAMP, td DATETIME);
INSERT INTO a VALUES (1, -32768, -9223372036854775808, 1.7976931348623157e308, 0.1, -12345.00001, 0,
'a''"', 'y', x'00ff', '0001-01-01', '23:59:59.999999', '9999-12-31 23:59:59.999999',
'2026-03-29 01:30:00.000000');
INSERT INTO a (id) VALUES (2);
INSERT INTO a (id, n, r) VALUES (3, 9007199254740993, -0.0)
"""


def test_every_type_comes_back_exactly(url: str) -> None:
    is_sqlite = "sqlite" in url
    statements = [one for one in (OF_SQLITE if is_sqlite else OF_POSTGRESQL).split(";\n") if one]
    run(url, *statements)
    # Into a table of the same columns, and into one that the sink makes.
    if is_sqlite:
        run(url, statements[0].strip().replace("TABLE a", "TABLE b"))
    else:
        run(url, "CREATE TABLE b (LIKE a INCLUDING ALL)")
    records = read(url, table_whitelist="a")
    assert len(records) == 3
    written(url, records, "b")
    written(url, records, "made")
    order = "ORDER BY id"
    assert run(url, f"SELECT * FROM b {order}") == run(url, f"SELECT * FROM a {order}")
    again = read(url, table_whitelist="made")
    for before, after in zip(records, sorted(again, key=lambda one: one.value["id"]), strict=True):
        for field, value in before.value.items():
            assert after.value[field.name] == value, field.name


def test_texts_are_those_that_postgresql_writes(url: str) -> None:
    if "sqlite" in url:
        pytest.skip("these types are PostgreSQL's")
    run(
        url,
        "CREATE TYPE pair AS (x INT, y INT)",
        'CREATE TABLE a (id INT PRIMARY KEY, ip INET, net CIDR, p pair, j JSON, c "char")',
        "INSERT INTO a VALUES (1, '10.0.0.1', '10.0.0.1', (1, NULL), 'null', 'x')",
        "INSERT INTO a VALUES (2, '10.0.0.1/8', '::/0', (NULL, NULL), '{\"a\" :  1.0}', '')",
        "INSERT INTO a VALUES (3)",
    )
    rows = [[value for _, value in one.value.items()] for one in read(url, table_whitelist="a")]
    assert rows == [
        [1, "10.0.0.1", "10.0.0.1/32", "(1,)", "null", "x"],
        [2, "10.0.0.1/8", "::/0", "(,)", '{"a" :  1.0}', ""],
        [3, None, None, None, None, None],
    ]


def converted(record: SourceRecord) -> Any:
    converter = JsonConverter()
    converter.configure({"converter.type": "value"})
    octets = converter.from_connect_data(record.topic, record.value_schema, record.value)
    return converter.to_connect_data(record.topic, octets).value


@pytest.mark.parametrize("zone", ZONES)
def test_moments_in_four_time_zones(url: str, zone: str) -> None:
    """Hours around changes of the clock, but for those that no clock shows."""
    stop = datetime.datetime(2026, 12, 31)  # noqa: DTZ001
    wall = datetime.datetime(2026, 1, 1)  # noqa: DTZ001
    walls = []
    while wall < stop:
        walls.append(wall)
        wall += datetime.timedelta(hours=31, minutes=31, seconds=7, milliseconds=123)
    for day in ((3, 28), (3, 29), (10, 25), (10, 24), (3, 8), (11, 1), (4, 5), (10, 4)):
        walls += [datetime.datetime(2026, *day, hour, 15) for hour in range(24)]  # noqa: DTZ001
    from zoneinfo import ZoneInfo

    shown = [
        one
        for one in walls
        if one.replace(tzinfo=ZoneInfo(zone))
        .astimezone(datetime.UTC)
        .astimezone(ZoneInfo(zone))
        .replace(tzinfo=None, fold=0)
        == one
    ]
    assert len(shown) > len(walls) - 5
    rows = ", ".join(f"({place}, '{one}')" for place, one in enumerate(shown))
    run(url, "CREATE TABLE a (id INT, at TIMESTAMP)", f"INSERT INTO a VALUES {rows}")
    records = read(url, table_whitelist="a", db_timezone=zone)
    first = shown[0].replace(tzinfo=ZoneInfo(zone)).astimezone(datetime.UTC)
    assert records[0].value["at"] == first
    task = JdbcSinkTask()
    config = {"connection.url": url, "table.name.format": "b", "auto.create": "true"}
    started_sink(task, {**config, "db.timezone": zone})
    task.put([sink_record(place, None, converted(one)) for place, one in enumerate(records)])
    task.stop()
    found = [row[1] for row in run(url, "SELECT id, at FROM b ORDER BY id")]
    assert [_moment(one) for one in found] == shown


def _moment(value: Any) -> datetime.datetime:
    return datetime.datetime.fromisoformat(value) if isinstance(value, str) else value


def test_a_time_that_no_clock_shows_is_refused(url: str) -> None:
    run(url, "CREATE TABLE a (at TIMESTAMP)", "INSERT INTO a VALUES ('2026-03-29 02:30:00')")
    with pytest.raises(DataException, match=r"Table a, column at, .*02:30:00.*db\.timezone to UTC"):
        read(url, db_timezone="Europe/Berlin")


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/Los_Angeles"])
def test_changes_up_to_now_are_found_in_the_databases_zone(url: str, zone: str) -> None:
    from zoneinfo import ZoneInfo

    now = datetime.datetime.now(ZoneInfo(zone)).replace(tzinfo=None)
    ago, later = now - datetime.timedelta(minutes=5), now + datetime.timedelta(minutes=30)
    run(
        url,
        "CREATE TABLE a (id INT NOT NULL, at TIMESTAMP NOT NULL)",
        f"INSERT INTO a VALUES (1, '{ago}'), (2, '{later}')",
    )
    kept = Kept()
    settings = {"mode": "timestamp", "timestamp.column.name": "at", "db.timezone": zone}
    records = read(url, kept, **settings)
    assert [one.value["id"] for one in records] == [1]
    moment = ago.replace(tzinfo=ZoneInfo(zone)).timestamp()
    assert records[0].source_offset is not None
    assert records[0].source_offset["timestamp"] == int(moment * 1000)
    run(url, f"INSERT INTO a VALUES (3, '{now - datetime.timedelta(minutes=2)}')")
    assert [one.value["id"] for one in read(url, kept, **settings)] == [3]


GRANULARITIES = {
    "micros_long": 1767323045678901,
    "micros_string": "1767323045678901",
    "micros_iso_datetime_string": "2026-01-02T08:34:05.678901",
    "nanos_long": 1767323045678901000,
    "nanos_string": "1767323045678901000",
    "nanos_iso_datetime_string": "2026-01-02T08:34:05.678901000",
}


@pytest.mark.parametrize("granularity", GRANULARITIES)
def test_moments_in_each_granularity(url: str, granularity: str) -> None:
    run(url, "CREATE TABLE a (at TIMESTAMP)", "INSERT INTO a VALUES ('2026-01-02 08:34:05.678901')")
    (record,) = read(url, timestamp_granularity=granularity, db_timezone="Asia/Kolkata")
    assert record.value["at"] == GRANULARITIES[granularity]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ("DECIMAL", "DECIMAL", "DECIMAL", "DECIMAL")),
        ({"numeric.mapping": "precision_only"}, ("INT32", "DECIMAL", "DECIMAL", "DECIMAL")),
        ({"numeric.precision.mapping": "true"}, ("INT32", "DECIMAL", "DECIMAL", "DECIMAL")),
        ({"numeric.mapping": "best_fit"}, ("INT32", "FLOAT64", "DECIMAL", "DECIMAL")),
        ({"numeric.mapping": "best_fit_eager_double"}, ("INT32", "FLOAT64", "FLOAT64", "DECIMAL")),
    ],
)
def test_numbers_by_their_mapping(
    url: str, settings: dict[str, str], expected: tuple[str, ...]
) -> None:
    run(
        url,
        "CREATE TABLE a (w NUMERIC(9, 0), s NUMERIC(9, 2), l NUMERIC(25, 2), n NUMERIC)",
        "INSERT INTO a VALUES (123456789, 1.5, 12345.5, 0.25)",
    )
    (record,) = read(url, **settings)
    kinds = tuple(
        "DECIMAL" if field.schema.name else field.schema.type.name
        for field in record.value.schema.fields
    )
    assert kinds == expected
    assert [float(value) for _, value in record.value.items()] == [123456789, 1.5, 12345.5, 0.25]


def test_values_that_a_column_does_not_hold_are_refused(server: PostgreSql, tmp_path: Path) -> None:
    url = f"jdbc:sqlite:{tmp_path / 'odd.db'}"
    for kind, value in (
        ("INTEGER", "'many'"),
        ("REAL", "'much'"),
        ("DECIMAL(5,2)", "1.234"),
        ("BOOLEAN", "2"),
        ("DATE", "'soon'"),
        ("TIMESTAMP", "'soon'"),
        ("BLOB", "'text'"),
    ):
        run(url, "DROP TABLE IF EXISTS a", f"CREATE TABLE a (odd {kind})")
        run(url, f"INSERT INTO a VALUES ({value})")
        with pytest.raises(DataException, match="Table a, column odd, value"):
            read(url)
    emptied(server.url)
    run(server.url, "CREATE TABLE a (n NUMERIC)", "INSERT INTO a VALUES ('NaN')")
    with pytest.raises(DataException, match=r"column n, value 'NaN'.*casts it to text"):
        read(server.url)
    run(server.url, "DROP TABLE a", "CREATE TABLE a (at TIMESTAMP)")
    run(server.url, "INSERT INTO a VALUES ('infinity')")
    with pytest.raises(ConnectException, match="infinity"):
        read(server.url)


def test_a_decimal_that_sqlite_would_round_is_refused(tmp_path: Path) -> None:
    url = f"jdbc:sqlite:{tmp_path / 'shop.db'}"
    from millstream.connect import Schema, Struct

    schema = Schema.struct({"n": Schema.decimal(20)})
    task = JdbcSinkTask()
    started_sink(task, {"connection.url": url, "auto.create": "true"})
    task.put([sink_record(0, None, Struct(schema, {"n": Decimal("0.10000000000000000000")}))])
    exact = Decimal("0.12345678901234567890")
    with pytest.raises(ConnectException, match="SQLite's numbers have 15 digits"):
        task.put([sink_record(1, None, Struct(schema, {"n": exact}))])
    task.stop()
    assert run(url, "SELECT n FROM orders") == [(0.1,)]


def test_the_sinks_tables_are_read_by_sqlalchemy_too(url: str) -> None:
    engine = engine_of(SINK_CONFIG.parse({"connection.url": url}))
    run(
        url,
        "CREATE TABLE a (id INT, at TIMESTAMP)",
        "INSERT INTO a VALUES (1, '2026-01-02 03:04:05')",
    )
    written(url, read(url), "b")
    table = sa.Table("b", sa.MetaData(), autoload_with=engine)
    with engine.connect() as connection:
        (row,) = connection.execute(sa.select(table))
    assert row.at == datetime.datetime(2026, 1, 2, 3, 4, 5)  # noqa: DTZ001


def put(url: str, records: list[Any], *, tolerates: bool = False, **settings: str) -> Any:
    told = {name.replace("_", "."): value for name, value in settings.items()}
    task = JdbcSinkTask()
    config = {"connection.url": url, "auto.create": "true", "auto.evolve": "true", **told}
    side = started_sink(task, config, tolerates=tolerates)
    try:
        task.put(records)
    finally:
        task.stop()
    return side


def row(number: int, schema: Schema, value: Any) -> Any:
    of_row = Schema.struct({"id": Schema.int32(), "v": schema})
    return sink_record(number, None, Struct(of_row, {"id": number, "v": value}), topic="t")


WRONG = [
    ("a text that is not valid Unicode", Schema.string(), "\ud800"),
    ("a list in a column of numbers", Schema.array(Schema.int32()), [1]),
    ("a boolean in a column of numbers", Schema.boolean(), True),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_a_value_that_no_column_holds_costs_no_other_row(url: str, number: int) -> None:
    what, schema, value = WRONG[number]
    if url.startswith("jdbc:sqlite") and isinstance(value, bool | list):
        pytest.skip("SQLite's columns hold values of any type")
    kind = "TEXT" if isinstance(value, str) else "INTEGER"
    good = Schema.string() if kind == "TEXT" else Schema.int32()
    run(url, f"CREATE TABLE t (id INTEGER PRIMARY KEY, v {kind})")
    records = [row(1, good, "1" if kind == "TEXT" else 1), row(2, schema, value)]
    records.append(row(3, good, "3" if kind == "TEXT" else 3))
    side = put(url, records, tolerates=True)
    assert [each.kafka_offset for each, _ in side.reported] == [2], what
    assert [one[0] for one in run(url, "SELECT id FROM t ORDER BY id")] == [1, 3]
    with pytest.raises(ConnectException, match=r"[Tt]he database refuses a row"):
        put(url, [row(4, schema, value)])


@pytest.mark.parametrize(
    ("schema", "value"),
    [(Schema.decimal(400), Decimal("1e-400")), (Schema.float64(), float("nan"))],
)
def test_a_number_that_sqlite_would_change_costs_no_other_row(
    tmp_path: Path, schema: Schema, value: Any
) -> None:
    url = f"jdbc:sqlite:{tmp_path / 'shop.db'}"
    records = [row(1, schema, Decimal(0) if schema.name else 0.0), row(2, schema, value)]
    side = put(url, records, tolerates=True)
    assert [each.kafka_offset for each, _ in side.reported] == [2]
    assert run(url, "SELECT id FROM t") == [(1,)]
    with pytest.raises(ConnectException, match="SQLite"):
        put(url, records)


def test_defaults_of_columns_are_those_of_their_fields(url: str) -> None:
    text = "100% of d:o 'n' %% \\ %s"
    schema = Schema.string(default=text)
    put(url, [row(1, schema, "x")])
    wider = Schema.struct({"id": Schema.int32(), "more": schema})
    put(url, [sink_record(2, None, Struct(wider, {"id": 2, "more": "y"}), topic="t")])
    assert run(url, "SELECT id, v, more FROM t ORDER BY id") == [(1, "x", text), (2, text, "y")]


def test_a_name_that_the_database_cuts_is_refused_with_a_sentence(server: PostgreSql) -> None:
    emptied(server.url)
    url = f"jdbc:{server.url}"
    long = "é" * 32
    values = Struct(Schema.struct({"id": Schema.int32(), long: Schema.int32()}), {"id": 1, long: 1})
    for record in (
        sink_record(1, None, values, topic="t"),
        sink_record(1, None, values, topic="t" * 64),
    ):
        with pytest.raises(ConnectException, match="cuts names after 63 bytes, so it cannot have"):
            put(url, [record])


@pytest.mark.parametrize(
    "kind",
    ["SERIAL", "INTEGER GENERATED ALWAYS AS IDENTITY", "BIGINT GENERATED BY DEFAULT AS IDENTITY"],
)
def test_a_table_with_an_identity_is_written_to(server: PostgreSql, kind: str) -> None:
    emptied(server.url)
    url = f"jdbc:{server.url}"
    run(url, f"CREATE TABLE t (number {kind} PRIMARY KEY, id INTEGER, v INTEGER)")
    put(url, [row(1, Schema.int32(), 7), row(2, Schema.int32(), 8)])
    assert run(url, "SELECT number, v FROM t ORDER BY v") == [(1, 7), (2, 8)]


def test_a_domain_is_read_as_its_type(server: PostgreSql) -> None:
    emptied(server.url)
    url = f"jdbc:{server.url}"
    run(
        url,
        "CREATE DOMAIN price AS NUMERIC(8, 2); CREATE DOMAIN cheap AS price CHECK (VALUE < 10);"
        "CREATE DOMAIN moment AS TIMESTAMP; CREATE TABLE t (a cheap, b moment);"
        "INSERT INTO t VALUES (1.5, '2024-03-31 03:30')",
    )
    (record,) = read(url, db_timezone="Europe/Berlin")
    assert record.value["a"] == Decimal("1.50")
    assert record.value["b"].isoformat() == "2024-03-31T01:30:00+00:00"


def test_a_text_in_a_column_of_numbers_is_refused_in_words(tmp_path: Path) -> None:
    url = f"jdbc:sqlite:{tmp_path / 'shop.db'}"
    run(url, "CREATE TABLE t (v NUMERIC)", "INSERT INTO t VALUES ('x')")
    with pytest.raises(DataException, match="value 'x': it is not a number"):
        read(url)


@pytest.mark.parametrize(
    "value",
    ["DATE 'infinity'", "DATE '10000-01-01'", "TIMESTAMP '0044-03-15 BC'", "TIME '24:00'"],
)
def test_a_time_that_python_does_not_have_is_refused_with_a_remedy(
    server: PostgreSql, value: str
) -> None:
    emptied(server.url)
    url = f"jdbc:{server.url}"
    run(url, f"CREATE TABLE t AS SELECT {value} AS v")
    with pytest.raises(ConnectException, match=r"t cannot be read: .* casts the column to text"):
        read(url)
    (record,) = read(url, query="SELECT v::text AS v FROM t")
    assert record.value["v"] in value or record.value["v"] in ("0044-03-15 00:00:00 BC", "24:00:00")
