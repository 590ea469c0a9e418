"""docs/settings.md has every setting of every program; REWRITE=1 writes it."""

import os
from pathlib import Path

import pytest

from millstream.cli.commands import GROUPS
from tests.lib.settings_reference import Section, page_text, sections

PAGE = Path(__file__).parent.parent / "docs" / "settings.md"


@pytest.fixture(scope="module")
def found() -> list[Section]:
    return list(sections())


def test_the_page_is_that_of_the_code(found: list[Section]) -> None:
    text = page_text(found)
    if os.environ.get("REWRITE"):
        PAGE.write_text(text)
    assert PAGE.read_text() == text


def test_every_setting_says_what_it_does(found: list[Section]) -> None:
    for section in found:
        assert section.rows, section.title
        for row in section.rows:
            assert " " in row.about, row
            assert row.about != row.name
            assert bool(row.more) <= bool(section.more)


def test_every_program_is_there() -> None:
    page = PAGE.read_text()
    pipeline = {"service", "streams", "spark-job", "dashboard"}
    assert pipeline <= GROUPS["The order pipeline"].keys()
    for name in ("lag", "faults", *GROUPS["Servers"], *pipeline):
        assert f"`millstream {name}" in page, name


def test_ranges_are_those_of_the_code(found: list[Section]) -> None:
    ranges = {row.name: row.range for section in reversed(found) for row in section.rows}
    assert ranges["num.partitions"] == "between 1 and 2147483647"
    assert ranges["sasl.oauthbearer.clock.skew.seconds"] == "between 0 and 2147483647"
    assert ranges["min.cleanable.dirty.ratio"] == "between 0 and 1"
    assert ranges["api.v3.produce.batch.maximum.entries"] == "1 to 50"
    assert ranges["share.isolation.level"] == "read_uncommitted, read_committed"
