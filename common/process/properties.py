"""Java's properties files: `key=value` lines, as java.util.Properties reads them.

Blank lines and those that begin with # or ! say nothing; a key ends at =, : or a blank; a backslash
at the end of a line continues it, and before a character takes it as it is: \\t, \\n, \\u00e9.
"""

import re
from collections.abc import Iterator

_BLANK = " \t\f"
_KEY = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*(?:[=:][ \t\f]*)?", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.)|\Z)", re.DOTALL)
_NAMED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_properties(text: str) -> dict[str, str]:
    """Return what a properties file says; the last value of a key counts."""
    properties = {}
    for line in _logical_lines(text):
        found = _KEY.match(line)
        assert found is not None, line
        properties[_unescaped(found[1])] = _unescaped(line[found.end() :])
    return properties


def _logical_lines(text: str) -> Iterator[str]:
    """Give the lines that say something, continued ones as one."""
    parts: list[str] = []
    for line in re.split(r"\r\n|\r|\n", text):
        part = line.lstrip(_BLANK)
        if not parts and (not part or part[0] in "#!"):
            continue
        backslashes = len(part) - len(part.rstrip("\\"))
        if backslashes % 2:
            parts.append(part[:-1])
            continue
        yield "".join([*parts, part])
        parts = []
    if parts:
        yield "".join(parts)


def _unescaped(text: str) -> str:
    def character(found: re.Match[str]) -> str:
        if found[1] is not None:
            return chr(int(found[1], 16))
        return _NAMED.get(found[2], found[2]) if found[2] is not None else ""

    plain = _ESCAPE.sub(character, text) if "\\" in text else text
    # Java writes what lies beyond the first 65,536 characters as two halves.
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
