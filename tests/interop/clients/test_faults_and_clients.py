"""What stock clients do with each fault and in each situation: docs/faults.md, cell by cell."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lib.faults_table import CLIENTS, TABLES, Measured, read_page

PAGE = Path(__file__).parents[3] / "docs" / "faults.md"
pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def measured() -> Iterator[Measured]:
    with Measured() as made:
        yield made


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    ("heading", "text"),
    [
        pytest.param(heading, text, id=f"{heading}-{number}")
        for heading, rows in TABLES.items()
        for number, text in enumerate(rows)
    ],
)
def test_a_client_does_what_the_page_says(
    measured: Measured, heading: str, text: str, client: str
) -> None:
    page = read_page(PAGE.read_text())
    assert page[heading, text, client] == measured.cell(heading, text, client)


def test_the_page_has_no_other_cells() -> None:
    rows = sum(len(each) for each in TABLES.values())
    assert len(read_page(PAGE.read_text())) == rows * len(CLIENTS)
