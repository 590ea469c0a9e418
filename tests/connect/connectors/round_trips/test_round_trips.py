"""Random tables through CDC, or the JDBC source, into the JDBC sink: the target is the source.

`make round-trips SEEDS=500` tries more tables, with documents and files as targets too.
"""

from collections.abc import Iterator

import pytest
from hypothesis import given

from connect.connectors.jdbc import JdbcSourceConnector
from connect.connectors.jdbc.sink_task import JdbcSinkTask
from connect.connectors.postgresql.source import PostgresSourceConnector
from tests.connect.connectors.round_trips.held_values import EXACT
from tests.connect.connectors.round_trips.random_tables import (
    LIMITS,
    Case,
    Table,
    Target,
    Way,
    bulk,
    cases,
    cdc,
    walk,
)
from tests.lib.postgresql import PostgreSql
from tests.lib.postgresql_changes import emptied

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[PostgreSql]:
    with PostgreSql() as running:
        yield running


@LIMITS
@given(case=cases())
def test_changes_make_the_target_what_the_source_is(server: PostgreSql, case: Case) -> None:
    with emptied(server) as database:
        table = Table(database, case)
        sink = {
            "connection.url": server.url,
            "table.name.format": "b",
            "insert.mode": "upsert",
            "pk.mode": "record_key",
            "delete.enabled": "true",
        }
        way = Way(PostgresSourceConnector, cdc(server, EXACT), Target(JdbcSinkTask, sink))
        walk(table, case, way, deletes=True)
        while way.deliver():
            pass
        way.kill()
        assert table.differences() == []


@LIMITS
@given(case=cases())
def test_rows_that_are_read_make_the_target_what_the_source_is(
    server: PostgreSql, case: Case
) -> None:
    with emptied(server) as database:
        table = Table(database, case)
        config = bulk(server, "micros_iso_datetime_string")
        sink = {
            "connection.url": server.url,
            "table.name.format": "b",
            "insert.mode": "upsert",
            "pk.mode": "record_value",
            "pk.fields": ",".join(one.name for one in case.keys),
        }
        way = Way(JdbcSourceConnector, config, Target(JdbcSinkTask, sink))
        walk(table, case, way, deletes=False)
        way.kill()
        way.deliver(polls=20)
        way.kill()
        assert table.differences() == []
