"""What stock clients do with each kind of fault: docs/faults.md, cell by cell."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lib.faults_table import CLIENTS, CONSUMED, PRODUCED, Bench, bench, read_page, tables

PAGE = Path(__file__).parents[3] / "docs" / "faults.md"

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def measured() -> Iterator[Bench]:
    with bench() as made:
        yield made


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    ("heading", "number"),
    [
        *[("A producer that is idempotent", number) for number in range(len(PRODUCED))],
        *[("A producer that is not idempotent", number) for number in range(len(PRODUCED))],
        *[("A consumer in a group", number) for number in range(len(CONSUMED))],
    ],
)
def test_a_client_does_what_the_page_says(
    measured: Bench, heading: str, number: int, client: str
) -> None:
    rows, cell_of = tables(measured)[heading]
    row = rows[number]
    page = read_page(PAGE.read_text())
    assert page[heading, row.text, client] == cell_of(row, client)


def test_the_page_has_no_other_cells() -> None:
    rows = 2 * len(PRODUCED) + len(CONSUMED)
    assert len(read_page(PAGE.read_text())) == rows * len(CLIENTS)
