"""Parse PostgreSQL's text format of arrays and hstores. Does no IO."""

import re
from collections.abc import Callable
from typing import Any, Final

_BOUNDS: Final = re.compile(r"(?:\[[+-]?\d+:[+-]?\d+\])+=")
_QUOTED: Final = r'"((?:[^"\\]|\\.)*)"'
_ELEMENT: Final = {
    delimiter: re.compile(rf'{_QUOTED}|([^{{}}"{delimiter}]+)', re.DOTALL) for delimiter in ",;"
}
_PAIR: Final = re.compile(rf"{_QUOTED}=>(?:{_QUOTED}|(NULL))(?:, |$)", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


def elements_of(text: str, parse: Callable[[str], Any], delimiter: str = ",") -> list[Any]:
    """Return the elements of an array of one dimension.

    Raise ValueError for an array of several dimensions and for invalid text.
    """
    text = _BOUNDS.sub("", text, count=1)
    if not (text.startswith("{") and text.endswith("}")):
        raise ValueError(text)
    found: list[Any] = []
    element = _ELEMENT[delimiter]
    place, end = 1, len(text) - 1
    while place < end:
        match = element.match(text, place, end)
        if match is None:
            raise ValueError("an array of several dimensions")
        quoted, bare = match.groups()
        if quoted is not None:
            found.append(parse(_ESCAPED.sub(r"\1", quoted)))
        else:
            found.append(None if bare == "NULL" else parse(_ESCAPED.sub(r"\1", bare)))
        place = match.end()
        if place < end:
            if text[place] != delimiter:
                raise ValueError(text)
            place += 1
    return found


def pairs_of(text: str) -> dict[str, str | None]:
    """Return the keys and values of an hstore; raise ValueError."""
    found: dict[str, str | None] = {}
    place = 0
    while place < len(text):
        match = _PAIR.match(text, place)
        if match is None:
            raise ValueError(text)
        key, value, _ = match.groups()
        found[_ESCAPED.sub(r"\1", key)] = None if value is None else _ESCAPED.sub(r"\1", value)
        place = match.end()
    return found
