"""Every type of PostgreSQL with its extreme values: told exactly, or refused."""

import datetime
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.connectors import temporal
from connect.connectors.postgresql.types import Type
from connect.connectors.postgresql.values import Modes, codec_of, elements_of, pairs_of
from connect.converters.json_converter import JsonConverter
from millstream.connect import DataException, SourceRecord, Struct
from tests.lib.postgresql import PostgreSql
from tests.lib.postgresql_changes import Reader, emptied

WKB = bytes.fromhex("0101000000000000000000f83f00000000000000c0")
"""The point (1.5, -2) as PostGIS writes it."""
INF_US = 9_223_372_036_825_200_000


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


def plain(value: Any) -> Any:
    """Return a struct as a dict, so that it can be compared."""
    if isinstance(value, Struct):
        return {field.name: plain(each) for field, each in value.items()}
    return value


def told(
    server: PostgreSql,
    database: psycopg.Connection[Any],
    columns: dict[str, tuple[str, str]],
    **settings: str,
) -> tuple[dict[str, Any], SourceRecord]:
    """Return one row as the snapshot and the log tell it, which have to agree."""
    kinds = ", ".join(f"{name} {kind}" for name, (kind, _) in columns.items())
    values = ", ".join(value for _, value in columns.values())
    run(database, f"CREATE TABLE t (id INT PRIMARY KEY, {kinds})")
    run(database, f"INSERT INTO t VALUES (1, {values})")
    reader = Reader(server, **settings)
    (first,) = reader.read(1)
    run(database, f"INSERT INTO t VALUES (2, {values})")
    (second,) = reader.read(1)
    reader.task.stop()
    assert first.value_schema == second.value_schema
    rows = [plain(record.value["after"]) for record in (first, second)]
    assert repr({**rows[0], "id": 0}) == repr({**rows[1], "id": 0})
    # What is told can be written.
    converter = JsonConverter()
    converter.configure({"converter.type": "value"})
    written = converter.from_connect_data(first.topic, first.value_schema, first.value)
    assert converter.to_connect_data(first.topic, written).value is not None
    del rows[0]["id"]
    return rows[0], first


PLAIN: dict[str, tuple[str, str, Any]] = {
    "bool": ("BOOLEAN", "false", False),
    "int2": ("SMALLINT", "-32768", -32768),
    "int4": ("INT", "2147483647", 2147483647),
    "int8": ("BIGINT", "-9223372036854775808", -(1 << 63)),
    "oid": ("OID", "4294967295", 4294967295),
    "float4": ("REAL", "'1e-45'", pytest.approx(1.4e-45)),
    "float8": ("DOUBLE PRECISION", "'1.7976931348623157e308'", 1.7976931348623157e308),
    "float_inf": ("DOUBLE PRECISION", "'-infinity'", -math.inf),
    "char": ("CHAR(5)", "'a'", "a    "),
    "text": ("TEXT", "E'\\u00e9\\t\\n\\\\ \\U0001f600'", "\u00e9\t\n\\ \U0001f600"),
    "bit1": ("BIT", "B'1'", True),
    "bits": ("BIT(12)", "B'100000000001'", b"\x01\x08"),
    "varbits": ("VARBIT", "B''", b""),
    "bytea": ("BYTEA", "'\\x00ff'", b"\x00\xff"),
    "json": ("JSON", "'{\"a\" :  1}'", '{"a" :  1}'),
    "jsonb": ("JSONB", "'{\"a\" :  1}'", '{"a": 1}'),
    "xml": ("XML", "'<a/>'", "<a/>"),
    "uuid": ("UUID", f"'{'ab' * 16}'", "abababab-abab-abab-abab-abababababab"),
    "point": ("POINT", "'(1.5,-2)'", {"x": 1.5, "y": -2.0, "wkb": WKB, "srid": None}),
    "inet": ("INET", "'10.0.0.1'", "10.0.0.1"),
    "inet_net": ("INET", "'10.0.0.1/8'", "10.0.0.1/8"),
    "cidr": ("CIDR", "'::/0'", "::/0"),
    "macaddr8": ("MACADDR8", "'08002b0102030405'", "08:00:2b:01:02:03:04:05"),
    "int4range": ("INT4RANGE", "'(1,5]'", "[2,6)"),
    "tsrange": ("TSRANGE", "'[,infinity)'", '(,infinity)'),
    "tsvector": ("TSVECTOR", "'b:2 a:1'", "'a':1 'b':2"),
    "timestamptz": ("TIMESTAMPTZ", "'2026-01-02 03:04:05.678901+05:30'",
                    "2026-01-01T21:34:05.678901Z"),
    "timestamptz_bc": ("TIMESTAMPTZ", "'0044-03-15 00:00:00+00 BC'",
                       "-0043-03-15T00:00:00.000000Z"),
    "timestamptz_late": ("TIMESTAMPTZ", "'12345-01-01 00:00:00+00'",
                         "+12345-01-01T00:00:00.000000Z"),
    "timestamptz_inf": ("TIMESTAMPTZ", "'-infinity'", "-infinity"),
    "timetz": ("TIMETZ", "'01:02:03.5+05:30'", "19:32:03.5Z"),
    "numeric": ("NUMERIC(38,10)", "'-0.0000000001'", Decimal("-1E-10")),
    "numeric_negative": ("NUMERIC(3,-2)", "12345", Decimal("1.23E+4")),
    "money": ("MONEY", "'-92233720368547758.08'", Decimal("-92233720368547758.08")),
    "ints": ("INT[]", "'[3:5]={1,NULL,3}'", [1, None, 3]),
    "texts": ("TEXT[]", "ARRAY['a,b', 'NULL', NULL, '\"', '\\', '', '{}', ' ']",
              ["a,b", "NULL", None, '"', "\\", "", "{}", " "]),
    "numerics": ("NUMERIC(5,2)[]", "'{1.5,-2}'", [Decimal("1.50"), Decimal("-2.00")]),
    "dates": ("DATE[]", "'{1970-01-02,4713-01-01 BC}'", [1, -2440550]),
    "jsons": ("JSONB[]", "ARRAY['{\"a\": \"b\"}'::jsonb]", ['{"a": "b"}']),
    "boxes": ("BOX[]", "'{(1,1),(0,0);(2,2),(0,0)}'", ["(1,1),(0,0)", "(2,2),(0,0)"]),
    "empty": ("INT8[]", "'{}'", []),
}  # fmt: skip


@pytest.mark.slow
def test_every_type_is_told_exactly(server: PostgreSql, database: psycopg.Connection[Any]) -> None:
    row, record = told(
        server, database, {f"v_{name}": (kind, value) for name, (kind, value, _) in PLAIN.items()}
    )
    for name, (_, _, expected) in PLAIN.items():
        assert row[f"v_{name}"] == expected, name
    schema = record.value["after"].schema
    assert schema.field("v_bits").schema.parameters == {"length": "12"}
    assert schema.field("v_numeric").schema.parameters["connect.decimal.precision"] == "38"
    assert schema.field("v_jsonb").schema.name == "io.debezium.data.Json"


@pytest.mark.slow
def test_types_of_ones_own(server: PostgreSql, database: psycopg.Connection[Any]) -> None:
    run(database, "CREATE TYPE mood AS ENUM ('sad', 'ok', 'a,b')")
    run(database, "ALTER TYPE mood ADD VALUE 'first' BEFORE 'sad'")
    run(
        database,
        "CREATE DOMAIN price AS NUMERIC(8,3); CREATE DOMAIN cheap AS price CHECK (VALUE < 5)",
    )
    run(database, "CREATE TYPE pair AS (a INT, b TEXT)")
    columns = {
        "m": ("mood", "'a,b'"),
        "ms": ("mood[]", "'{ok,\"a,b\"}'"),
        "d": ("cheap", "1.5"),
        "c": ("pair", "ROW(1, 'x,y')"),
    }
    row, record = told(server, database, columns)
    assert row == {"m": "a,b", "ms": ["ok", "a,b"], "d": Decimal("1.500"), "c": '(1,"x,y")'}
    allowed = record.value["after"].schema.field("m").schema.parameters
    assert allowed == {"allowed": "first,sad,ok,a,b"}


CLOCKS = {
    "d": ("DATE", "'5874897-12-31'"),
    "t": ("TIME", "'24:00:00'"),
    "t3": ("TIME(3)", "'03:04:05.678'"),
    "s": ("TIMESTAMP", "'0044-03-15 00:00:00.000001 BC'"),
    "s3": ("TIMESTAMP(3)", "'1969-12-31 23:59:59.999'"),
    "i": ("TIMESTAMP", "'infinity'"),
}
IDES = -63_517_824_000_000_000 + 1
BY_MODE: dict[str, list[Any]] = {
    "adaptive": [2145042905, 86_400_000_000, 11_045_678, IDES, -1, INF_US],
    "adaptive_time_microseconds": [2145042905, 86_400_000_000, 11_045_678_000, IDES, -1, INF_US],
    "microseconds": [2145042905, 86_400_000_000, 11_045_678_000, IDES, -1000, INF_US],
    "isostring": ["+5874897-12-31Z", "24:00:00Z", "03:04:05.678Z",
                  "-0043-03-15T00:00:00.000001Z", "1969-12-31T23:59:59.999Z", "infinity"],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("mode", BY_MODE)
def test_clocks_in_each_mode(
    server: PostgreSql, database: psycopg.Connection[Any], mode: str
) -> None:
    row, record = told(server, database, CLOCKS, time_precision_mode=mode)
    assert list(row.values()) == BY_MODE[mode]
    name = record.value["after"].schema.field("s").schema.name
    assert name == f"io.debezium.time.{'Iso' if mode == 'isostring' else 'Micro'}Timestamp"


@pytest.mark.slow
def test_clocks_as_connects_own_types(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    columns = {
        "d": ("DATE", "'9999-12-31'"),
        "t": ("TIME", "'03:04:05.678901'"),
        "s": ("TIMESTAMP", "'0001-01-01'"),
    }
    row, _ = told(server, database, columns, time_precision_mode="connect")
    assert row["d"] == datetime.date(9999, 12, 31)
    assert row["t"] == datetime.time(3, 4, 5, 678_000)
    assert row["s"] == datetime.datetime(1, 1, 1, tzinfo=datetime.UTC)


@pytest.mark.slow
def test_clocks_in_nanoseconds(server: PostgreSql, database: psycopg.Connection[Any]) -> None:
    columns = {
        "t": ("TIME", "'00:00:00.000001'"),
        "s": ("TIMESTAMP", "'2262-04-11 23:47:16.854775'"),
        "i": ("TIMESTAMP", "'-infinity'"),
    }
    row, _ = told(server, database, columns, time_precision_mode="nanoseconds")
    assert row == {"t": 1000, "s": 9_223_372_036_854_775_000, "i": -(1 << 63)}


REFUSED = [
    ("DATE", "'infinity'", {}, "isostring"),
    ("DATE", "'0044-03-15 BC'", {"time.precision.mode": "connect"}, "adaptive or isostring"),
    ("TIMESTAMP", "'infinity'", {"time.precision.mode": "connect"}, "adaptive or isostring"),
    ("TIMESTAMP", "'10000-01-01'", {"time.precision.mode": "connect"}, "adaptive or isostring"),
    ("TIME", "'24:00'", {"time.precision.mode": "connect"}, "adaptive or isostring"),
    ("TIMESTAMP", "'9999-12-31'", {"time.precision.mode": "nanoseconds"}, "isostring"),
    ("TIMESTAMP", "'294276-12-31'", {}, "isostring"),
    ("NUMERIC(9,2)", "'NaN'", {}, "decimal.handling.mode to string or double"),
    ("NUMERIC", "'Infinity'", {}, "decimal.handling.mode to string or double"),
    ("NUMERIC(9,2)[]", "'{NaN}'", {}, "decimal.handling.mode to string or double"),
    ("INTERVAL", "'178000000 years'", {}, "interval.handling.mode to string"),
    ("INT[]", "'{{1,2},{3,4}}'", {}, "several dimensions"),
    ("MONEY", "'1.25'", {"money.fraction.digits": "1"}, "money.fraction.digits"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "value", "settings", "remedy"), REFUSED)
def test_what_cannot_be_told_exactly_is_refused_with_its_place_and_a_remedy(
    server: PostgreSql,
    database: psycopg.Connection[Any],
    kind: str,
    value: str,
    settings: dict[str, str],
    remedy: str,
) -> None:
    run(database, f"CREATE TABLE t (id INT PRIMARY KEY, odd {kind})")
    reader = Reader(server, more=settings, snapshot_mode="no_data")
    assert reader.is_quiet()
    run(database, f"INSERT INTO t VALUES (1, {value})")
    shown = database.execute("SELECT odd::text FROM t").fetchone()
    assert shown is not None
    with pytest.raises(DataException) as refused:
        reader.task.poll()
    reader.task.stop()
    said = str(refused.value)
    assert "Table public.t, column odd, value" in said
    assert remedy in said
    assert str(shown[0]).strip("$")[:8] in said


NUMBERS = {
    "n": ("NUMERIC", "'123456789012345678901234567890.5'"),
    "s": ("NUMERIC(6,2)", "'-1.50'"),
    "m": ("MONEY", "'1234.56'"),
}
SPECIAL = {
    "a": ("NUMERIC", "'NaN'"),
    "b": ("NUMERIC(6,2)", "'NaN'"),
    "c": ("NUMERIC", "'-Infinity'"),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "numbers", "special"),
    [
        ("string", ["123456789012345678901234567890.5", "-1.50", "1234.56"],
         ["NAN", "NAN", "NEGATIVE_INFINITY"]),
        ("double", [1.2345678901234568e29, -1.5, 1234.56], [math.nan, math.nan, -math.inf]),
        ("precise", [{"scale": 1, "value": (1234567890123456789012345678905).to_bytes(13, "big")},
                     Decimal("-1.50"), Decimal("1234.56")], None),
    ],
)  # fmt: skip
def test_numbers_in_each_mode(
    server: PostgreSql,
    database: psycopg.Connection[Any],
    mode: str,
    numbers: list[Any],
    special: list[Any] | None,
) -> None:
    columns = NUMBERS if special is None else NUMBERS | SPECIAL
    row, _ = told(server, database, columns, decimal_handling_mode=mode)
    assert repr(list(row.values())) == repr([*numbers, *(special or ())])


@pytest.mark.slow
def test_intervals_hstores_and_bytes_in_each_mode(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    run(database, "CREATE EXTENSION IF NOT EXISTS hstore")
    columns = {
        "i": ("INTERVAL", "'1 year 2 mons -3 days -04:05:06.78'"),
        "h": ("HSTORE", '\'"a"=>"b\\"c", "n"=>NULL\''),
        "b": ("BYTEA", "'\\xfbff'"),
    }
    row, _ = told(server, database, columns)
    us = 14 * 2_629_800_000_000 - 3 * 86_400_000_000 - 14_706_780_000
    assert row == {"i": us, "h": '{"a":"b\\"c","n":null}', "b": b"\xfb\xff"}
    for mode, written in (("base64", "+/8="), ("base64-url-safe", "-_8="), ("hex", "fbff")):
        run(database, "DROP TABLE t")
        more = {
            "interval.handling.mode": "string",
            "hstore.handling.mode": "map",
            "binary.handling.mode": mode,
            "slot.name": f"s{len(written)}{mode[-1]}",
            "publication.name": f"p{mode[-1]}",
        }
        row, _ = told(server, database, columns, **more)
        assert row == {
            "i": "P1Y2M-3DT-4H-5M-6.78S",
            "h": {"a": 'b"c', "n": None},
            "b": written,
        }


@pytest.mark.slow
def test_types_that_the_mapping_does_not_know(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    columns = {"p": ("POLYGON", "'((0,0),(1,1))'"), "l": ("PG_LSN", "'0/10'"), "t": ("TEXT", "'x'")}
    row, _ = told(server, database, columns)
    assert row == {"p": "((0,0),(1,1))", "l": "0/10", "t": "x"}
    run(database, "DROP TABLE t")
    more = {"include.unknown.datatypes": "true", "slot.name": "s2", "publication.name": "p2"}
    row, _ = told(server, database, columns, **more)
    assert row == {"p": b"((0,0),(1,1))", "l": b"0/10", "t": "x"}


LARGE: dict[str, tuple[str, Any]] = {
    "TEXT": ("large", "__debezium_unavailable_value"),
    "VARCHAR(100000)": ("large", "__debezium_unavailable_value"),
    "BYTEA": ("large::bytea", b"__debezium_unavailable_value"),
    "JSON": ("to_json(large)", "__debezium_unavailable_value"),
    "JSONB": ("to_jsonb(large)", "__debezium_unavailable_value"),
    "XML": ("('<a>' || large || '</a>')::xml", "__debezium_unavailable_value"),
    "HSTORE": ("hstore('a', large)", "__debezium_unavailable_value"),
    "TEXT[]": ("ARRAY[large]", ["__debezium_unavailable_value"]),
    "BYTEA[]": ("ARRAY[large::bytea]", [b"__debezium_unavailable_value"]),
    "INT[]": ("digits", list(b"__debezium_unavailable_value")),
    "BIGINT[]": ("digits", list(b"__debezium_unavailable_value")),
    "FLOAT[]": ("digits", [float(one) for one in b"__debezium_unavailable_value"]),
    "NUMERIC": ("repeat('123', 30000)::numeric",
                {"scale": 0, "value": b"__debezium_unavailable_value"}),
    "TSVECTOR": ("(SELECT string_agg(n || 'x' || n * 7, ' ') FROM generate_series(1, 9000) n)"
                 "::tsvector", "__debezium_unavailable_value"),
    "PATH": ("(SELECT ('(' || string_agg('(' || n || ',' || n * 7 || ')', ',') || ')')::path "
             "FROM generate_series(1, 9000) n)", "__debezium_unavailable_value"),
    "VARBIT": ("repeat('1001', 30000)::varbit", b"__debezium_unavailable_value"),
    "UUID[]": ("(SELECT array_agg(gen_random_uuid()) FROM generate_series(1, 3000))",
               ["7ad87b1f-0f6e-3f8b-a4d3-5d1d8e5e8d1f"]),
    "TIMESTAMPTZ[]": ("(SELECT array_agg(now() + n * interval '1 s') FROM "
                      "generate_series(1, 3000) n)", ["__debezium_unavailable_value"]),
}  # fmt: skip
STATEMENT = """INSERT INTO t SELECT {id}, 0, {values} FROM (
SELECT string_agg(md5(n::text), '') AS large, array_agg(n * 7919) AS digits
FROM generate_series(1, 3000) n) x"""


@pytest.mark.slow
def test_a_large_value_that_an_update_left_alone(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    run(database, "CREATE EXTENSION IF NOT EXISTS hstore")
    kinds = ", ".join(f"c{place} {kind}" for place, kind in enumerate(LARGE))
    run(database, f"CREATE TABLE t (id INT PRIMARY KEY, n INT, {kinds})")
    for place in range(len(LARGE)):
        run(database, f"ALTER TABLE t ALTER c{place} SET STORAGE EXTERNAL")
    values = ", ".join(value for value, _ in LARGE.values())
    run(database, STATEMENT.format(id=1, values=values))
    reader = Reader(server)
    (whole,) = reader.read(1)
    run(database, "UPDATE t SET n = 1")
    (record,) = reader.read(1)
    after = plain(record.value["after"])
    for place, (kind, (_, expected)) in enumerate(LARGE.items()):
        if kind == "UUID[]":
            assert len(after[f"c{place}"]) == 1, kind
            continue
        assert after[f"c{place}"] == expected, kind
    run(database, "ALTER TABLE t REPLICA IDENTITY FULL; UPDATE t SET n = 2")
    (record,) = reader.read(1)
    last = plain(record.value["after"])
    assert {**last, "n": 0} == plain(whole.value["after"])
    reader.task.stop()


@pytest.mark.slow
def test_the_placeholder_is_what_the_setting_says(
    server: PostgreSql, database: psycopg.Connection[Any]
) -> None:
    run(database, "CREATE TABLE t (id INT PRIMARY KEY, n INT, a BYTEA, b BOOLEAN[])")
    run(database, "ALTER TABLE t ALTER a SET STORAGE EXTERNAL, ALTER b SET STORAGE EXTERNAL")
    run(database, STATEMENT.format(id=1, values="large::bytea, NULL"))
    more = {"unavailable.value.placeholder": "hex:00ff", "binary.handling.mode": "base64"}
    reader = Reader(server, more=more)
    reader.read(1)
    run(database, "UPDATE t SET n = 1")
    (record,) = reader.read(1)
    assert record.value["after"]["a"] == "AP8="
    run(database, "UPDATE t SET b = (SELECT array_agg(true) FROM generate_series(1, 9000))")
    reader.read(1)
    run(database, "UPDATE t SET n = 2")
    with pytest.raises(DataException, match=r"column b, value '\(unchanged\)'.*IDENTITY FULL"):
        reader.task.poll()
    reader.task.stop()


@given(st.dates(), st.times())
def test_clocks_are_those_of_python_where_python_has_them(
    day: datetime.date, time: datetime.time
) -> None:
    epoch = datetime.datetime(1970, 1, 1)  # noqa: DTZ001
    moment = datetime.datetime.combine(day, time)
    expected = (moment - epoch) // datetime.timedelta(microseconds=1)
    text = f"{day.isoformat()} {time.isoformat()}"
    assert temporal.moment_us(text) == expected
    assert temporal.days_in(day.isoformat()) == (day - epoch.date()).days
    assert temporal.iso_date((day - epoch.date()).days) == day.isoformat()
    assert temporal.moment_us(temporal.iso_moment(expected)[:-1].replace("T", " ")) == expected


@given(st.integers(-2_451_507, 2_145_031_948))
def test_every_day_that_postgresql_has_comes_back(days: int) -> None:
    assert temporal.days_of(*temporal.date_of(days)) == days


QUOTED = st.text(st.characters(codec="utf-8", exclude_characters="\0"))


@given(st.lists(st.none() | QUOTED))
def test_elements_of_arrays_come_back(elements: list[str | None]) -> None:
    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    text = "{" + ",".join("NULL" if one is None else quoted(one) for one in elements) + "}"
    assert elements_of(text, str) == elements


NAMES = "int4 numeric hstore bit bytea interval date timestamp timetz point money float8"


@given(st.text(), st.sampled_from(NAMES.split()))
def test_any_text_is_read_or_refused(text: str, name: str) -> None:
    for kind in (Type(name), Type(f"_{name}", -1, (), Type(name))):
        try:
            codec_of(kind, Modes(), optional=True).parse(text)
        except (ValueError, OverflowError, ArithmeticError):
            pass
    try:
        pairs_of(text)
    except ValueError:
        pass
