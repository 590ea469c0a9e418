"""Random tables through CDC, or the JDBC source, into Parquet files: each record is there once.

The last record of each key, by its offset, is the source's row.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")

from hypothesis import assume, given
from hypothesis import strategies as st
from pyarrow import parquet

from connect.connectors.jdbc import JdbcSourceConnector
from connect.connectors.object_store.sink_task import ObjectStoreSinkTask
from connect.connectors.postgresql.source import PostgresSourceConnector
from connect.transforms.insert_field import InsertFieldValue
from tests.connect.connectors.round_trips.held_values import (
    EXACT,
    OWN_TYPES,
    held_value,
    read_value,
)
from tests.connect.connectors.round_trips.random_tables import (
    FEWER,
    Case,
    Table,
    Target,
    Way,
    bulk,
    cases,
    cdc,
    comparable,
    walk,
)
from tests.lib.postgresql import PostgreSql
from tests.lib.postgresql_changes import emptied

pytestmark = pytest.mark.slow
NULLS = {"behavior.on.null.values": "ignore"}
OFFSET = "the record's offset"
"""A field that no column is called like."""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgreSql]:
    with PostgreSql() as running:
        yield running


@FEWER
@given(case=cases(), is_exact=st.booleans(), flush_size=st.integers(1, 4))
def test_changes_are_each_in_one_file_and_the_last_ones_are_the_source(
    server: PostgreSql,
    tmp_path_factory: pytest.TempPathFactory,
    case: Case,
    is_exact: bool,
    flush_size: int,
) -> None:
    folder = tmp_path_factory.mktemp("files")
    with emptied(server) as database:
        table = Table(database, case)
        sink = {"store.url": folder.as_uri(), "flush.size": str(flush_size), **NULLS}
        target = files(sink, is_unwrapped=False)
        modes = EXACT if is_exact else OWN_TYPES
        way = Way(PostgresSourceConnector, cdc(server, modes), target)
        walk(table, case, way, deletes=True)
        while way.deliver():
            pass
        way.kill()
        changes = all_in_files(folder, way)
        held = partial(held_value, is_exact=is_exact, is_document=False)
        rows = [(one["after"] or one["before"], one["after"]) for one in changes]
        assert comparable(case, last_rows(case, rows)) == comparable(case, table.held_rows(held))


@FEWER
@given(case=cases(), is_exact=st.booleans(), flush_size=st.integers(1, 4))
def test_rows_that_are_read_are_each_in_one_file_and_the_last_ones_are_the_source(
    server: PostgreSql,
    tmp_path_factory: pytest.TempPathFactory,
    case: Case,
    is_exact: bool,
    flush_size: int,
) -> None:
    # Such a number has the scale 127 there, which no decimal of Parquet has.
    assume(all(one.kind != "NUMERIC" for one in case.others))
    folder = tmp_path_factory.mktemp("files")
    with emptied(server) as database:
        table = Table(database, case)
        form = "micros_iso_datetime_string" if is_exact else "connect_logical"
        sink = {"store.url": folder.as_uri(), "flush.size": str(flush_size), **NULLS}
        way = Way(JdbcSourceConnector, bulk(server, form), files(sink, is_unwrapped=True))
        walk(table, case, way, deletes=False)
        way.kill()
        way.deliver(polls=20)
        way.kill()
        found = all_in_files(folder, way)
        rows = [{name: row[name] for name in row if name != OFFSET} for row in found]
        held = partial(read_value, is_exact=is_exact, is_document=False)
        last = last_rows(case, [(row, row) for row in rows])
        assert comparable(case, last) == comparable(case, table.held_rows(held))


def files(sink: dict[str, str], *, is_unwrapped: bool) -> Target:
    transform = InsertFieldValue()
    transform.configure({"offset.field": OFFSET})
    return Target(ObjectStoreSinkTask, sink, transform.apply, is_unwrapped=is_unwrapped)


def all_in_files(folder: Path, way: Way) -> list[dict[str, Any]]:
    """Have the rest of the topic written, and return the files' records, of which each is once."""
    # The last files are not full.
    way.target.config["flush.size"] = "1"
    way.write()
    way.kill()
    found = changes_in(folder)
    offsets = set(range(len(way.topic))) - way.topic.tombstones()
    assert [one[OFFSET] for one in found] == sorted(offsets)
    return found


def changes_in(folder: Path) -> list[dict[str, Any]]:
    """Return what the files hold, in the order of the offsets."""
    found = [
        row for path in folder.rglob("*.parquet") for row in parquet.read_table(path).to_pylist()
    ]
    return sorted(found, key=lambda row: int(row[OFFSET]))


def last_rows(
    case: Case, rows: list[tuple[dict[str, Any], dict[str, Any] | None]]
) -> list[dict[str, Any]]:
    """Return the last row of each key, of rows that have the key and rows that it then had."""
    last = {repr([keyed[one.name] for one in case.keys]): row for keyed, row in rows}
    return [row for row in last.values() if row is not None]
