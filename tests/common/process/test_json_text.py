"""What JSON is read, and what is refused before anything behind it sees it."""

import argparse
import json
from decimal import Decimal

import pytest

from common.process.command_parser import CommandParser, odd_arguments
from common.process.json_text import NotJsonError, is_unicode, read_json

HALVES = [
    r'"\ud800"',
    r'"\uDfFf"',
    r'["a", {"b": "\uD83D"}]',
    r'{"\ude00": 1}',
    r'"\ude00\ud83d"',
    r'"\ud83d\\ude00"',
    b'"\xed\xa0\x80"',
    '"\ud800"'.encode("utf-16", "surrogatepass"),
]
REFUSED = ["NaN", "-Infinity", "1e999", "", "[1", "1 2", b"\xff", "[" * 100_000, "9" * 5000]


@pytest.mark.parametrize("text", HALVES)
def test_half_of_a_surrogate_pair_is_refused(text: str | bytes) -> None:
    with pytest.raises(NotJsonError):
        read_json(text)


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_written_again_is_refused(text: str | bytes) -> None:
    with pytest.raises(NotJsonError):
        read_json(text)


@pytest.mark.parametrize(
    "text", [r'"\ud83d\ude00"', r'"\\ud800"', r'"\u0000"', '"ä€😀"', '{"a": [1, 2.5, null, true]}']
)
def test_everything_else_is_as_python_reads_it(text: str) -> None:
    assert read_json(text) == json.loads(text)
    for coding in ("utf-8", "utf-8-sig", "utf-16", "utf-32"):
        assert read_json(text.encode(coding)) == json.loads(text)


def test_a_stored_text_may_have_halves_and_fractions_may_stay_exact() -> None:
    assert read_json(r'"\ud800"', may_have_halves=True) == "\ud800"
    assert read_json(r'[0.1, "\ud83d\ude00"]', Decimal) == [Decimal("0.1"), "😀"]


def test_an_argument_that_is_no_unicode_is_refused_unless_it_is_a_path(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert not is_unicode("\udcff")
    assert odd_arguments(argparse.Namespace(a="\udcff", b=["x", "\udcfe"], c="ä")) == ["a", "b"]
    parser = CommandParser()
    parser.add_argument("--topic")
    with pytest.raises(SystemExit):
        parser.parse_args(["--topic", "\udcff"])
    assert "topic: it is no UTF-8" in capsys.readouterr().err


def test_no_reader_is_made_for_a_single_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """One for each record of a topic takes longer than to read it."""
    monkeypatch.setattr(json, "JSONDecoder", None)
    assert read_json('{"a": 1.5}') == {"a": 1.5}
