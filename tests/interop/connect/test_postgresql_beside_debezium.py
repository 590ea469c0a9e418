"""Every type of PostgreSQL as Debezium tells it: schemas and values, in each mode, beside ours.

Debezium 3.6.1 runs in its own engine, with its jars from Maven. The differences are in `DIFFERENT`
and `DIFFERENT_IN`, each with its reason, and a difference that is not there fails, as does one that
is there and has gone.
"""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from connect.converters.json_converter import JsonConverter
from tests.lib.java import JAVA, fetched_libs, java_program
from tests.lib.postgresql import PostgreSql
from tests.lib.postgresql_changes import Reader, emptied
from tests.lib.running_program import running

pytestmark = [pytest.mark.interop, pytest.mark.slow]

TYPES = """
CREATE EXTENSION IF NOT EXISTS hstore;
CREATE EXTENSION IF NOT EXISTS citext;
CREATE EXTENSION IF NOT EXISTS ltree;
CREATE TYPE mood AS ENUM ('ok', 'sad', 'a,b');
CREATE TYPE pair AS (a INT, b TEXT);
CREATE DOMAIN price AS NUMERIC(8,3) DEFAULT 1.5;
CREATE DOMAIN cheap AS price CHECK (VALUE < 5);
CREATE DOMAIN words AS TEXT[];
CREATE SEQUENCE counted;
"""
COLUMNS = {
    "bool": ("BOOLEAN", "false"),
    "int2": ("SMALLINT", "-32768"),
    "int4": ("INT", "2147483647"),
    "int8": ("BIGINT", "-9223372036854775808"),
    "serial4": ("SERIAL", "7"),
    "serial2": ("SMALLSERIAL", "7"),
    "serial8": ("BIGSERIAL", "7"),
    "oid": ("OID", "4294967295"),
    "float4": ("REAL", "1.5"),
    "float8": ("DOUBLE PRECISION", "'1.7976931348623157e308'"),
    "float_inf": ("DOUBLE PRECISION", "'-infinity'"),
    "float_nan": ("REAL", "'NaN'"),
    "char": ("CHAR(5)", "'a'"),
    "onechar": ('"char"', "'c'"),
    "name": ("NAME", "'nm'"),
    "text": ("TEXT", "E'\\u00e9\\t\\n\\\\ \\U0001f600'"),
    "varchar": ("VARCHAR(9)", "'v'"),
    "citext": ("CITEXT", "'Ab'"),
    "bit1": ("BIT", "B'1'"),
    "bit12": ("BIT(12)", "B'100000000001'"),
    "bit8": ("BIT(8)", "B'00000001'"),
    "varbit": ("VARBIT", "B'101'"),
    "varbit_empty": ("VARBIT", "B''"),
    "varbit9": ("VARBIT(9)", "B'111111111'"),
    "bytea": ("BYTEA", "'\\x00ff'"),
    "json": ("JSON", "'{\"a\" :  1}'"),
    "jsonb": ("JSONB", "'{\"a\" :  1}'"),
    "jsonpath": ("JSONPATH", "'$.a'"),
    "xml": ("XML", "'<a/>'"),
    "uuid": ("UUID", "'abababab-abab-abab-abab-abababababab'"),
    "point": ("POINT", "'(1.5,-2)'"),
    "line": ("LINE", "'{1,2,3}'"),
    "lseg": ("LSEG", "'((0,0),(1,1))'"),
    "box": ("BOX", "'(1,1),(0,0)'"),
    "path": ("PATH", "'((0,0),(1,1))'"),
    "polygon": ("POLYGON", "'((0,0),(1,1))'"),
    "circle": ("CIRCLE", "'<(0,0),1>'"),
    "inet": ("INET", "'10.0.0.1'"),
    "inet_net": ("INET", "'10.0.0.1/8'"),
    "cidr": ("CIDR", "'::/0'"),
    "macaddr": ("MACADDR", "'08002b010203'"),
    "macaddr8": ("MACADDR8", "'08002b0102030405'"),
    "int4range": ("INT4RANGE", "'(1,5]'"),
    "int8range": ("INT8RANGE", "'(1,5]'"),
    "numrange": ("NUMRANGE", "'[1.5,2)'"),
    "tsrange": ("TSRANGE", "'[2026-01-02,infinity)'"),
    "tstzrange": ("TSTZRANGE", "'[2026-01-02 00:00:00+00,)'"),
    "daterange": ("DATERANGE", "'[2026-01-02,2026-01-03]'"),
    "int4multirange": ("INT4MULTIRANGE", "'{[1,2),[5,6)}'"),
    "tsvector": ("TSVECTOR", "'b:2 a:1'"),
    "tsquery": ("TSQUERY", "'a & b'"),
    "ltree": ("LTREE", "'a.b'"),
    "pg_lsn": ("PG_LSN", "'0/10'"),
    "xid8": ("XID8", "'12'"),
    "regclass": ("REGCLASS", "'pg_class'"),
    "tid": ("TID", "'(0,1)'"),
    "snap": ("PG_SNAPSHOT", "'10:20:10,14'"),
    "date": ("DATE", "'2026-01-02'"),
    "date_bc": ("DATE", "'0044-03-15 BC'"),
    "date_late": ("DATE", "'5874897-12-31'"),
    "time": ("TIME", "'03:04:05.678901'"),
    "time24": ("TIME", "'24:00:00'"),
    "time0": ("TIME(0)", "'03:04:05'"),
    "time3": ("TIME(3)", "'03:04:05.678'"),
    "time6": ("TIME(6)", "'03:04:05.678901'"),
    "timetz": ("TIMETZ", "'01:02:03.5+05:30'"),
    "timetz0": ("TIMETZ(0)", "'01:02:03+05:30'"),
    "timetz_six": ("TIMETZ", "'01:02:03.123456+00'"),
    "timetz_no": ("TIMETZ", "'01:02:00+00'"),
    "ts": ("TIMESTAMP", "'2026-01-02 03:04:05.678901'"),
    "ts0": ("TIMESTAMP(0)", "'2026-01-02 03:04:05'"),
    "ts3": ("TIMESTAMP(3)", "'1969-12-31 23:59:59.999'"),
    "ts6": ("TIMESTAMP(6)", "'2026-01-02 03:04:05.678901'"),
    "ts_bc": ("TIMESTAMP", "'0044-03-15 00:00:00.000001 BC'"),
    "ts_inf": ("TIMESTAMP", "'infinity'"),
    "ts_ninf": ("TIMESTAMP", "'-infinity'"),
    "tz": ("TIMESTAMPTZ", "'2026-01-02 03:04:05.678901+05:30'"),
    "tz_whole": ("TIMESTAMPTZ", "'2026-01-02 03:04:05+00'"),
    "tz0": ("TIMESTAMPTZ(0)", "'2026-01-02 03:04:05+00'"),
    "tz3": ("TIMESTAMPTZ(3)", "'2026-01-02 03:04:05.5+00'"),
    "tz_late": ("TIMESTAMPTZ", "'12345-01-01 00:00:00+00'"),
    "tz_bc": ("TIMESTAMPTZ", "'0044-03-15 00:00:00+00 BC'"),
    "tz_inf": ("TIMESTAMPTZ", "'infinity'"),
    "tz_ninf": ("TIMESTAMPTZ", "'-infinity'"),
    "interval": ("INTERVAL", "'1 year 2 mons -3 days -04:05:06.78'"),
    "numeric": ("NUMERIC", "'123456789012345678901234567890.5'"),
    "numeric_int": ("NUMERIC", "'1200'"),
    "numeric38": ("NUMERIC(38,10)", "'-0.0000000001'"),
    "numeric5": ("NUMERIC(5)", "'77'"),
    "numeric_neg": ("NUMERIC(3,-2)", "12345"),
    "decimal": ("DECIMAL(6,2)", "1.5"),
    "money": ("MONEY", "'-1234.56'"),
    "mood": ("mood", "'sad'"),
    "moods": ("mood[]", "'{ok,sad}'"),
    "price": ("price", "1.5"),
    "cheap": ("cheap", "1.5"),
    "words": ("words", "'{a,b}'"),
    "pair": ("pair", "ROW(1,'x,y')"),
    "hstore": ("HSTORE", "'a=>b, n=>NULL'"),
    "bools": ("BOOLEAN[]", "'{t,f,NULL}'"),
    "int2s": ("INT2[]", "'{1,NULL}'"),
    "ints": ("INT[]", "'[3:5]={1,NULL,3}'"),
    "int8s": ("INT8[]", "'{}'"),
    "texts": ("TEXT[]", "ARRAY['a,b','NULL',NULL,'\"','\\','',' ']"),
    "varchars": ("VARCHAR(5)[]", "'{a,b}'"),
    "chars": ("CHAR(3)[]", "'{a,b}'"),
    "numerics": ("NUMERIC(5,2)[]", "'{1.5,-2}'"),
    "numerics_free": ("NUMERIC[]", "'{1.5,-2}'"),
    "floats": ("FLOAT8[]", "'{1.5,-2}'"),
    "reals": ("REAL[]", "'{1.5,NaN}'"),
    "dates": ("DATE[]", "'{1970-01-02,1970-01-01}'"),
    "times": ("TIME[]", "'{03:04:05.678901}'"),
    "tss": ("TIMESTAMP[]", "'{2026-01-02 03:04:05.678901}'"),
    "tss3": ("TIMESTAMP(3)[]", "'{2026-01-02 03:04:05.678}'"),
    "tzs": ("TIMESTAMPTZ[]", "'{2026-01-02 03:04:05.5+00}'"),
    "timetzs": ("TIMETZ[]", "'{01:02:03.5+05:30}'"),
    "jsons": ("JSON[]", "ARRAY['{\"a\": 1}'::json]"),
    "jsonbs": ("JSONB[]", 'ARRAY[\'{"a": "b"}\'::jsonb]'),
    "uuids": ("UUID[]", "'{abababab-abab-abab-abab-abababababab}'"),
    "byteas": ("BYTEA[]", "ARRAY['\\x00ff'::bytea]"),
    "bits": ("BIT(3)[]", "'{101}'"),
    "inets": ("INET[]", "'{10.0.0.1}'"),
    "cidrs": ("CIDR[]", "'{10.0.0.0/8}'"),
    "macs": ("MACADDR[]", "'{08:00:2b:01:02:03}'"),
    "oids": ("OID[]", "'{4294967295}'"),
    "points": ("POINT[]", "'{\"(1,2)\"}'"),
    "boxes": ("BOX[]", "'{(1,1),(0,0);(2,2),(0,0)}'"),
    "intervals": ("INTERVAL[]", "'{1 day}'"),
    "moneys": ("MONEY[]", "'{1.5}'"),
    "hstores": ("HSTORE[]", "ARRAY['a=>b'::hstore]"),
    "ranges": ("INT4RANGE[]", "ARRAY['[1,2)'::int4range]"),
    "xmls": ("XML[]", "ARRAY['<a/>'::xml]"),
    "ltrees": ("LTREE[]", "'{a.b}'"),
    "citexts": ("CITEXT[]", "'{Ab}'"),
    "tsvectors": ("TSVECTOR[]", "ARRAY['a:1'::tsvector]"),
    "prices": ("price[]", "'{1.5}'"),
    "names": ("NAME[]", "'{a}'"),
}
"""A column of each type, and its value."""
DEFAULTS = [
    ("INT", "7"),
    ("INT", "-7"),
    ("INT2", "5"),
    ("BIGINT", "9223372036854775807"),
    ("REAL", "1.5"),
    ("DOUBLE PRECISION", "1e300"),
    ("NUMERIC(9,2)", "1.5"),
    ("NUMERIC", "1"),
    ("BOOLEAN", "true"),
    ("TEXT", "'it''s'"),
    ("VARCHAR(9)", "''"),
    ("VARCHAR(9)", "'v'"),
    ("CHAR(3)", "'a'"),
    ("DATE", "'2026-01-02'"),
    ("TIME", "'03:04'"),
    ("TIME(3)", "'03:04'"),
    ("TIMETZ", "'03:04+00'"),
    ("TIMESTAMP", "'2026-01-02 03:04:05'"),
    ("TIMESTAMPTZ", "'2026-01-02 03:04:05+02'"),
    ("INTERVAL", "'1 day'"),
    ("JSON", "'{}'"),
    ("JSONB", "'{\"a\": 1}'"),
    ("XML", "'<a/>'"),
    ("UUID", "'abababab-abab-abab-abab-abababababab'"),
    ("BIT", "B'1'"),
    ("BIT(3)", "B'101'"),
    ("VARBIT(5)", "B'101'"),
    ("price", "5"),
    ("price", ""),
    ("mood", "'ok'"),
    ("BYTEA", "'\\x00'"),
    ("MONEY", "5"),
    ("INET", "'10.0.0.1'"),
    ("CITEXT", "'c'"),
    ("NAME", "'n'"),
    ("OID", "5"),
    ("TIMESTAMP", "now()"),
    ("TIMESTAMPTZ", "CURRENT_TIMESTAMP"),
    ("DATE", "CURRENT_DATE"),
    ("INT", "1 + 1"),
    ("INT", "nextval('counted')"),
    ("TEXT", "NULL"),
    ("INT", "NULL"),
    ("TEXT", "upper('a')"),
    ("TEXT", "CURRENT_USER"),
    ("UUID", "gen_random_uuid()"),
    ("INT[]", "'{1}'"),
    ("BOOLEAN", "(1 > 2)"),
    ("DOUBLE PRECISION", "random()"),
    ("JSONB", "jsonb_build_object()"),
    ("INTERVAL", "'1 year 2 mons'"),
    ("NUMERIC(9,2)", "-1.25"),
    ("TEXT", "'a'||'b'"),
]
"""Types and defaults: `d`, a nullable column, and `n`, one that is NOT NULL."""
LEFT_OUT = "Debezium leaves the column out, unless include.unknown.datatypes is true"
NULL_THERE = "Debezium has an array of this type as a null, or as another type"
DIFFERENT = {
    **dict.fromkeys(
        ("line", "lseg", "box", "path", "polygon", "circle", "jsonpath", "int4multirange",
         "tsquery", "pg_lsn", "xid8", "regclass", "tid", "snap", "pair"), LEFT_OUT),
    **dict.fromkeys(
        ("names", "points", "boxes", "intervals", "moneys", "xmls", "prices"), LEFT_OUT),
    "bits": NULL_THERE,
    **dict.fromkeys(("name", "'n'"), "Debezium's log has a null for a name, unlike its snapshot"),
    "times": "Debezium cuts the microseconds off",
    "timetzs": "Debezium cuts the fraction off",
    "date_bc": "Debezium's day is another: the Julian calendar's, and more than a century off",
    "numeric_neg": "Debezium takes the scale -2 for 2046",
    "'it''s'": "Debezium's default ends at the quote",
    "'a'||'b'": "Debezium's default is the first text in the expression",
    "(1 > 2)": "Debezium's default is false for every expression that is not true",
    "CURRENT_USER": "Debezium's default is the text of the expression",
}  # fmt: skip
"""The columns of which the schema or a value is another there, by name or by default."""
MODES = {
    "": {},
    "isostring": {"time.precision.mode": "isostring"},
    "texts": {
        "time.precision.mode": "microseconds",
        "decimal.handling.mode": "string",
        "interval.handling.mode": "string",
        "binary.handling.mode": "hex",
        "hstore.handling.mode": "map",
    },
    "doubles": {
        "time.precision.mode": "adaptive_time_microseconds",
        "decimal.handling.mode": "double",
        "binary.handling.mode": "base64",
        "include.unknown.datatypes": "true",
    },
}
MORE_DIFFERENT: dict[str, dict[str, str]] = {
    "isostring": {
        "time24": "Debezium has the hour 24 as 0",
        "ts_inf": "Debezium has a day of the year 294247",
        "ts_ninf": "Debezium has a day of the year -290308",
    },
}


@pytest.fixture(scope="module")
def libs() -> Path:
    return fetched_libs("debezium", "debezium-connector-postgres-*.jar")


@pytest.fixture(scope="module")
def server(libs: Path) -> Iterator[PostgreSql]:
    with PostgreSql() as started:
        yield started


@contextmanager
def debezium(
    libs: Path, folder: Path, server: PostgreSql, settings: dict[str, str]
) -> Iterator[Iterator[dict[str, Any]]]:
    """Run Debezium's engine and yield its events; it ends with the block."""
    told = {
        "name": "debezium",
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "offset.storage": "org.apache.kafka.connect.storage.MemoryOffsetBackingStore",
        "database.hostname": "127.0.0.1",
        "database.port": str(server.port),
        "database.user": "postgres",
        "database.password": "none",
        "database.dbname": "postgres",
        "topic.prefix": "shop",
        "plugin.name": "pgoutput",
        "slot.name": "debezium",
        "publication.name": "debezium",
        "converter.replace.null.with.default": "false",
        **settings,
    }
    properties = folder / "debezium.properties"
    properties.write_text("".join(f"{name}={value}\n" for name, value in told.items()))
    command = [*java_program(libs, JAVA / "RunDebezium.java", "-Xmx256m"), str(properties)]
    with running(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        yield map(json.loads, process.stdout)


def create_tables(database: psycopg.Connection[Any]) -> None:
    columns = [f'"{name}" {kind}' for name, (kind, _) in COLUMNS.items()]
    defaults = [
        f"{one}{place} {kind} {'DEFAULT ' + text if text else ''} {required}"
        for place, (kind, text) in enumerate(DEFAULTS)
        for one, required in (("d", ""), ("n", "NOT NULL"))
        if one == "d" or text != "NULL"
    ]
    database.execute(TYPES.encode())
    database.execute(f"CREATE TABLE a (id INT PRIMARY KEY, {', '.join(columns)})".encode())
    database.execute(f"CREATE TABLE b (id SERIAL PRIMARY KEY, {', '.join(defaults)})".encode())


def insert(database: psycopg.Connection[Any], row: int) -> None:
    values = ", ".join(value for _, value in COLUMNS.values())
    database.execute(f"INSERT INTO a VALUES ({row}, {values})".encode())
    database.execute(f"INSERT INTO b (id) VALUES ({row})".encode())


def after(event: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return schema and value of each column."""
    (row,) = [one for one in event["schema"]["fields"] if one["field"] == "after"]
    values = event["payload"]["after"]
    return {one["field"]: (one, values[one["field"]]) for one in row["fields"]}


def by_row(events: list[dict[str, Any]]) -> dict[tuple[str, int], dict[str, tuple[Any, Any]]]:
    payloads = [(event, event["payload"]) for event in events]
    return {(one["source"]["table"], one["after"]["id"]): after(event) for event, one in payloads}


def named(column: str) -> str:
    """Return the column, or the default that it is about."""
    return DEFAULTS[int(column[1:])][1] if column[1:].isdigit() else column


@pytest.mark.parametrize("mode", MODES)
def test_each_type_has_the_schema_and_the_value_of_debezium(
    libs: Path, server: PostgreSql, tmp_path: Path, mode: str
) -> None:
    settings = MODES[mode]
    converter = JsonConverter()
    converter.configure({"converter.type": "value", "replace.null.with.default": "false"})
    with emptied(server) as database:
        create_tables(database)
        insert(database, 1)
        reader = Reader(server, more=settings)
        records = reader.read(2)
        with debezium(libs, tmp_path, server, settings) as events:
            theirs = [next(events) for _ in range(2)]
            # The first row was in both snapshots; this is in both logs.
            insert(database, 2)
            theirs += [next(events) for _ in range(2)]
        records += reader.read(2)
        reader.task.stop()
    ours = by_row(
        [
            json.loads(converter.from_connect_data(one.topic, one.value_schema, one.value) or b"")
            for one in records
        ]
    )
    assert len(ours) == 4
    different: dict[str, list[Any]] = {}
    for row, columns in by_row(theirs).items():
        for column in columns.keys() | ours[row].keys():
            pair = columns.get(column), ours[row].get(column)
            if repr(pair[0]) != repr(pair[1]):
                different.setdefault(named(column), []).append((row, column, *pair))
    expected = DIFFERENT | MORE_DIFFERENT.get(mode, {})
    assert not {name: seen for name, seen in different.items() if name not in expected}
    if not mode:
        assert different.keys() == expected.keys()
