"""Lines as records: the parser of `console-producer` for standard input.

A line is `headers<headers.delimiter>key<key.separator>value`, with the first two only if
`parse.headers` and `parse.key` are true; headers are `name<headers.key.separator>value`, separated
by `headers.separator`, a regular expression. A field that equals `null.marker` is null.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from broker.cli.arguments import ToolFailed

Header = tuple[str, str | bytes | None]
SEPARATORS = {
    "headers.delimiter": "\t",
    "headers.separator": ",",
    "headers.key.separator": ":",
}


@dataclass(frozen=True, slots=True)
class LineRecord:
    """The record of one line."""

    key: bytes | None
    value: bytes | None
    headers: list[Header]


class LineReader:
    """Parses lines by the properties of Kafka's `LineMessageReader`."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._parses_key = is_true(properties, "parse.key")
        self._parses_headers = is_true(properties, "parse.headers")
        self._ignores_error = is_true(properties, "ignore.error")
        self._key_separator = properties.get("key.separator", "\t")
        separators = {name: properties.get(name, usual) for name, usual in SEPARATORS.items()}
        self._headers_delimiter = separators["headers.delimiter"]
        self._header_separator = separators["headers.key.separator"]
        self._null_marker = properties.get("null.marker")
        _check_differ(separators, self._key_separator, self._null_marker)
        try:
            self._headers_pattern = re.compile(separators["headers.separator"])
        except re.error as error:
            raise ToolFailed(f"headers.separator is an invalid regex: {error}") from None

    def record(self, line: str, number: int) -> LineRecord:
        """Return the record of a line; `number` is for the text of an error."""
        rest, headers = line, None
        if self._parses_headers:
            headers, rest = self._split(rest, self._headers_delimiter, "headers delimiter", number)
        key = None
        if self._parses_key:
            key, rest = self._split(rest, self._key_separator, "key separator", number)
        has_headers = headers is not None and headers != self._null_marker
        return LineRecord(
            self._bytes(key),
            self._bytes(rest),
            self._headers(headers, number) if has_headers and headers is not None else [],
        )

    def _split(self, text: str, mark: str, name: str, number: int) -> tuple[str | None, str]:
        before, found, behind = _partition(text, mark)
        if found:
            return before, behind
        if self._ignores_error:
            return None, text
        raise ToolFailed(f"No {name} found on line number {number}: '{text}'")

    def _headers(self, text: str, number: int) -> list[Header]:
        pairs = self._headers_pattern.split(text)
        while len(pairs) > 1 and not pairs[-1]:
            pairs.pop()  # As Java's split: without empty parts at the end.
        return [self._header(pair, number) for pair in pairs]

    def _header(self, pair: str, number: int) -> Header:
        name, found, value = _partition(pair, self._header_separator)
        if not found and not self._ignores_error:
            raise ToolFailed(
                f"No header key separator found in pair '{pair}' on line number {number}"
            )
        if name == self._null_marker:
            raise ToolFailed(
                f"Header keys should not be equal to the null marker '{name}' as they can't be null"
            )
        return name, self._bytes(value if found else None)

    def _bytes(self, text: str | None) -> bytes | None:
        """Return the original bytes of the input, also if they are no UTF-8."""
        if text is None or text == self._null_marker:
            return None
        return text.encode(errors="surrogateescape")


def _partition(text: str, mark: str) -> tuple[str, bool, str]:
    """Partition a text; an empty mark is found at its beginning, as by Java's indexOf."""
    if not mark:
        return "", True, text
    before, found, behind = text.partition(mark)
    return before, bool(found), behind


def is_true(properties: Mapping[str, str], name: str) -> bool:
    """Return True if a property is `true`, in upper or lower case."""
    return properties.get(name, "").strip().lower() == "true"


def _check_differ(separators: Mapping[str, str], key_separator: str, marker: str | None) -> None:
    for first, second in combinations(separators, 2):
        if separators[first] == separators[second]:
            raise ToolFailed(f"{first} and {second} may not be equal")
    for name, separator in {"key.separator": key_separator, **separators}.items():
        if separator == marker:
            raise ToolFailed(f"null.marker and {name} may not be equal")
