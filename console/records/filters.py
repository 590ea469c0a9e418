"""What a search looks for: a text, a regular expression of RE2, or a comparison in JSON. Pure.

There is no language that could do more: what a user writes is never run. RE2 takes a time that
grows with the text alone. A comparison is `PATH OP VALUE`, as `customer.id == "bob"` or
`lines[0].price >= 2.5`; numbers are compared exactly, also those beyond 64 bits.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import re2

from common.process.json_text import NotJsonError, read_json
from console.records.rows import Part, Row

MAX_PATTERN_CHARACTERS: Final = 1_000
MAX_PATTERN_BYTES: Final = 1 << 20
"""Memory of a compiled regular expression."""
KEY, VALUE, HEADERS = "key", "value", "headers"
PLACES: Final = (KEY, VALUE, HEADERS)

_COMPARISON: Final = re.compile(r"\s*(\$?[^=!<>~]+?)\s*(==|!=|>=|<=|>|<|~)\s*(.+?)\s*", re.DOTALL)
_STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[(\d{1,9}|\*)\]")
_OPERATORS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


class FilterError(ValueError):
    """The search cannot be understood; the message says why."""


Matches = Callable[[Part], bool]


@dataclass(frozen=True)
class Filter:
    """A test of rows."""

    matches_part: Matches
    places: tuple[str, ...] = PLACES

    def matches(self, row: Row) -> bool:
        """Tell whether one of the chosen places of a row fits."""
        return any(self.matches_part(part) for part in self._parts(row))

    def _parts(self, row: Row) -> Iterator[Part]:
        if KEY in self.places:
            yield row.key
        if VALUE in self.places:
            yield row.value
        if HEADERS in self.places:
            for name, part in row.headers:
                yield part._replace(text=f"{name}: {part.text}")


def filter_of(kind: str, text: str, places: str = "") -> Filter | None:
    """Return the filter of a search; None for one that looks for nothing. Raise FilterError."""
    chosen = tuple(filter(None, places.split(","))) or PLACES
    if unknown := set(chosen) - set(PLACES):
        raise FilterError(f"records have no {min(unknown)}: {', '.join(PLACES)}")
    if not text:
        return None
    if len(text) > MAX_PATTERN_CHARACTERS:
        raise FilterError(f"a search has at most {MAX_PATTERN_CHARACTERS} characters")
    match kind:
        case "contains" | "":
            wanted = text.casefold()
            return Filter(lambda part: wanted in part.text.casefold(), chosen)
        case "regex":
            pattern = _compiled(text)
            return Filter(lambda part: pattern.search(part.text) is not None, chosen)
        case "path":
            return Filter(_comparison(text), tuple(each for each in chosen if each != HEADERS))
        case _:
            raise FilterError(f"there is no search {kind!r}: contains, regex or path")


def _compiled(text: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_PATTERN_BYTES
    try:
        return re2.compile(text, options)
    except (re2.error, UnicodeError) as error:
        reason = error.args[0] if error.args else error
        shown = reason.decode(errors="replace") if isinstance(reason, bytes) else reason
        raise FilterError(f"no regular expression of RE2: {shown}") from None


def _comparison(text: str) -> Matches:
    found = _COMPARISON.fullmatch(text)
    if found is None:
        raise FilterError('a comparison is PATH OP VALUE, as customer.id == "bob"')
    path, sign, wanted = steps_of(found[1]), found[2], _literal(found[3])
    if sign == "~":
        looked_for = str(wanted).casefold()
        return lambda part: any(
            isinstance(each, str) and looked_for in each.casefold() for each in _at(part, path)
        )
    compare = _OPERATORS[sign]
    return lambda part: any(_holds(compare, each, wanted) for each in _at(part, path))


def steps_of(path: str) -> list[str | int | None]:
    """Return the steps of a path: names, places in lists, None for all of a list. Raise
    FilterError."""
    steps: list[str | int | None] = []
    at = 1 if path.startswith("$") else 0
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            raise FilterError(f"no path: {path!r}")
        name, number = found[1], found[2]
        if name is not None:
            steps.append(None if name == "*" else name)
        else:
            steps.append(None if number == "*" else int(number))
        at = found.end()
    if not steps:
        raise FilterError(f"no path: {path!r}")
    return steps


def _literal(text: str) -> Any:
    """Return what a comparison compares with: JSON, or a text without quotation marks."""
    try:
        return read_json(text, Decimal)
    except (NotJsonError, InvalidOperation):
        return text


def _at(part: Part, path: list[str | int | None]) -> Iterator[Any]:
    if not part.is_json:
        return
    try:
        value = read_json(part.text, Decimal, may_have_halves=True)
    except (NotJsonError, InvalidOperation):
        return
    yield from values_at(value, path)


def values_at(value: Any, path: list[str | int | None]) -> Iterator[Any]:
    """Yield the values at a path; the branch of a union of Avro needs no step of its own."""
    if not path:
        yield value
        return
    step, rest = path[0], path[1:]
    if step is None or isinstance(step, int):
        inner = _members(value, step)
        for each in inner:
            yield from values_at(each, rest)
    elif isinstance(value, dict):
        if step in value:
            yield from values_at(value[step], rest)
        elif len(value) == 1:
            (branch,) = value.values()
            if isinstance(branch, dict):
                yield from values_at(branch, path)


def _members(value: Any, place: int | None) -> list[Any]:
    """Return what a step into a list reaches: one member, or all with None, also of an object."""
    if isinstance(value, dict):
        return list(value.values()) if place is None else []
    if not isinstance(value, list):
        return []
    return value if place is None else value[place : place + 1]


def _holds(compare: Callable[[Any, Any], bool], value: Any, wanted: Any) -> bool:
    if isinstance(value, dict) and len(value) == 1 and not isinstance(wanted, dict):
        # A union of Avro: {"string": "bob"}.
        (value,) = value.values()
    if isinstance(value, bool) != isinstance(wanted, bool):
        return compare is operator.ne
    try:
        return bool(compare(value, wanted))
    except TypeError:
        return False
