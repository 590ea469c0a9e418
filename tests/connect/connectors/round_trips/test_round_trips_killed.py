"""Random tables into every target while the worker's process, or the broker's, is killed."""

import os
import time
from collections.abc import Iterator
from itertools import count

import pytest

pytest.importorskip("pyarrow")

from hypothesis import assume, given, settings

from millstream.testing import LocalBroker
from tests.connect.connectors.round_trips.random_parts import SESSION_MS, RandomParts
from tests.connect.connectors.round_trips.random_tables import (
    COUNT,
    LIMITS,
    Case,
    Table,
    cases,
    plain_names,
)
from tests.lib.elasticsearch_server import Elasticsearch
from tests.lib.postgresql import PostgreSql
from tests.lib.postgresql_changes import emptied
from tests.lib.s3_server import S3, s3_server

IS_LONG = "ROUND_TRIPS" in os.environ
pytestmark = [
    pytest.mark.slow,
    # Connections of servers that are killed are left to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    # The long run takes as long as there are tables; each of them has a limit.
    *([pytest.mark.timeout(0)] if IS_LONG else []),
]
FEW = settings(LIMITS, max_examples=max(1, COUNT // 10) if IS_LONG else 1)
FEWEST_STEPS, MOST_KILLS = 6, 3
END_SECONDS = 90.0
_NUMBERS = count()


@pytest.fixture(scope="module")
def broker() -> Iterator[LocalBroker]:
    with LocalBroker(**{"group.min.session.timeout.ms": SESSION_MS}) as running:
        yield running


@pytest.fixture(scope="module")
def database() -> Iterator[PostgreSql]:
    with PostgreSql() as running:
        yield running


@pytest.fixture(scope="module")
def store() -> Iterator[S3]:
    with s3_server() as running:
        yield running


@pytest.mark.parametrize("which", ["worker", "broker"])
@pytest.mark.parametrize("has_changes", [True, False], ids=["changes", "rows"])
@FEW
@given(case=cases(plain_names()))
def test_every_target_is_what_the_source_is(
    broker: LocalBroker,
    database: PostgreSql,
    elasticsearch: Elasticsearch,
    store: S3,
    tmp_path_factory: pytest.TempPathFactory,
    which: str,
    has_changes: bool,
    case: Case,
) -> None:
    assume(len(case.steps) >= FEWEST_STEPS)
    # The JDBC source gives such a number the scale 127, which no decimal of a file has.
    assume(has_changes or all(one.kind != "NUMERIC" for one in case.others))
    name = f"trip{next(_NUMBERS)}"
    folder = tmp_path_factory.mktemp(name)
    with emptied(database) as connection:
        table = Table(connection, case)
        parts = RandomParts(
            folder, case, broker, database, elasticsearch, store, name=name, has_changes=has_changes
        )
        with parts.worker:
            change(table, case, parts, which, has_deletes=has_changes)
            parts.kill(which)
            differences = settled(parts, table)
            assert not differences, (differences, parts.worker.log()[-6000:])


def change(table: Table, case: Case, parts: RandomParts, which: str, *, has_deletes: bool) -> None:
    """Do the steps of a case; deliveries are pauses, in which the connectors deliver."""
    kills = 0
    for verb, number, row in case.steps:
        match verb:
            case "write":
                table.write(row)
            case "delete" if has_deletes:
                table.delete(number)
            case "move" if has_deletes:
                table.move(number, row)
            case "deliver":
                time.sleep(number / 10)
            case "kill" | "lose" if kills < MOST_KILLS:
                kills += 1
                parts.kill(which)
            case _:
                pass


def settled(parts: RandomParts, table: Table) -> dict[str, object]:
    """Wait until all targets agree; return what still differs when the time is over."""
    deadline = time.monotonic() + END_SECONDS
    while (found := parts.differences(table)) and time.monotonic() < deadline:
        if parts.reads_again_and_again and "table" not in found and "index" not in found:
            # What it has read since is not in the files yet.
            parts.stop_source()
        time.sleep(0.3)
    return found
