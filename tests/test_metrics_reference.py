"""docs/metrics.md has every metric of every program; REWRITE=1 writes it."""

import os
from pathlib import Path

import pytest

from tests.lib.metrics_reference import Family, page_text, programs

PAGE = Path(__file__).parent.parent / "docs" / "metrics.md"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, list[Family]]]:
    return list(programs(tmp_path_factory.mktemp("metrics")))


def test_the_page_is_that_of_the_code(found: list[tuple[str, list[Family]]]) -> None:
    text = page_text(found)
    if os.environ.get("REWRITE"):
        PAGE.write_text(text)
    assert PAGE.read_text() == text


def test_every_metric_says_what_it_is(found: list[tuple[str, list[Family]]]) -> None:
    for title, families in found:
        assert families, title
        for each in families:
            assert " " in each.about, each
            assert each.about != each.name
            assert each.kind != "unknown", each
