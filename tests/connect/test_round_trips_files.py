"""Random tables through CDC into Parquet files: each change is in them once.

The last change of each key, by its offset, is the source's row.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")

from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from connect.connectors.object_store.sink_task import ObjectStoreSinkTask
from connect.connectors.postgresql import PostgresSourceConnector
from connect.transforms.insert_field import InsertFieldValue
from tests.connect.held_values import EXACT, OWN_TYPES
from tests.connect.random_tables import (
    FEWER,
    Case,
    Table,
    Target,
    Way,
    cases,
    cdc,
    comparable,
    walk,
)
from tests.lib.postgresql import PostgreSql
from tests.lib.postgresql_changes import emptied

pytestmark = pytest.mark.slow


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
        sink = {
            "store.url": folder.as_uri(),
            "flush.size": str(flush_size),
            "behavior.on.null.values": "ignore",
        }
        transform = InsertFieldValue()
        transform.configure({"offset.field": "offset"})
        target = Target(ObjectStoreSinkTask, sink, transform.apply, is_unwrapped=False)
        modes = EXACT if is_exact else OWN_TYPES
        way = Way(PostgresSourceConnector, cdc(server, modes), target)
        walk(table, case, way, deletes=True)
        while way.deliver():
            pass
        way.kill()
        # The last files are not full.
        sink["flush.size"] = "1"
        way.write()
        way.kill()
        changes = changes_in(folder)
        offsets = set(range(len(way.topic))) - way.topic.tombstones()
        assert [one["offset"] for one in changes] == sorted(offsets)
        wanted = table.held_rows(is_exact=is_exact, is_document=False)
        assert comparable(case, last_rows(case, changes)) == comparable(case, wanted)


def changes_in(folder: Path) -> list[dict[str, Any]]:
    """Return what the files hold, in the order of the offsets."""
    found = [
        row for path in folder.rglob("*.parquet") for row in parquet.read_table(path).to_pylist()
    ]
    return sorted(found, key=lambda row: int(row["offset"]))


def last_rows(case: Case, changes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the last row of each key, without those that were deleted."""
    last = {}
    for change in changes:
        row = change["after"] or change["before"]
        last[repr([row[one.name] for one in case.keys])] = change["after"]
    return [row for row in last.values() if row is not None]
