"""Java's properties files: `key=value` lines, as java.util.Properties reads them.

Blank lines and those that begin with # or ! say nothing. A key ends at =, : or a blank. A value
keeps the blanks at its end. A backslash at the end of a line continues it; before a character it
takes the character as it is, but for \\t, \\n, \\r, \\f and \\u00e9. The file is UTF-8.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path

_BLANK = " \t\f"
_NATURAL_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")
_KEY = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*(?:[=:][ \t\f]*)?", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_NAMED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_properties(text: str) -> dict[str, str]:
    """Return what a properties file says; the last value of a key counts.

    Raise ValueError for an escape that is malformed or makes half a character, which Java keeps.
    """
    properties = {}
    for line in _logical_lines(text):
        found = _KEY.match(line)
        assert found is not None, line
        key = _unescaped(found[1], "a key")
        properties[key] = _unescaped(line[found.end() :], f"the value of {key!r}")
    return properties


def read_properties(file: Path) -> dict[str, str]:
    """Read a properties file. Raise OSError, or ValueError with what is wrong with its text."""
    return parse_properties(properties_text_of(file.read_bytes()))


def properties_text_of(content: bytes) -> str:
    """Return the text of a properties file. Raise ValueError, in words, for other bytes."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"it is no text in UTF-8, see byte {error.start}") from None


def read_layers(
    file: Path | None, variables: Mapping[str, str], overrides: Iterable[str]
) -> dict[str, str]:
    """Return the settings of a file, of variables and of overrides `name=value`; the last one wins.

    Raise ValueError, in words, for what cannot be read.
    """
    settings: dict[str, str] = {}
    if file is not None:
        try:
            settings |= read_properties(file)
        except (OSError, ValueError) as error:
            raise ValueError(f"cannot read {file}: {error}") from error
    settings |= variables
    for override in overrides:
        name, equals, value = override.partition("=")
        if not equals:
            raise ValueError(f"--override takes name=value, not {override!r}")
        settings[name.strip()] = value
    return settings


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return what an error about an unknown name adds: the nearest known one, or nothing."""
    nearest = get_close_matches(name, known, n=1, cutoff=0.6)
    return f"; did you mean {nearest[0]!r}?" if nearest else ""


def _logical_lines(text: str) -> Iterator[str]:
    """Give the lines that say something, continued ones as one."""
    line, end = "", 0
    for found in _NATURAL_LINE.finditer(text):
        part = found[1].lstrip(_BLANK)
        if not line and (not part or part[0] in "#!"):
            continue  # Java skips a comment after a lone backslash, too.
        backslashes = len(part) - len(part.rstrip("\\"))
        line += part
        if not backslashes % 2:
            yield line
            line, end = "", 0
        else:
            line, end = line[:-1], found.end(1)
    # Java gives an empty key for a backslash with at most one character after it.
    if line or (end and text[end:] in {"", "\n", "\r"}):
        yield line


def _unescaped(text: str, place: str) -> str:
    def character(found: re.Match[str]) -> str:
        if found[1] == "u":
            raise ValueError(
                f"{place} has a malformed \\u escape: four digits of base 16 follow it"
            )
        return chr(int(found[1][1:], 16)) if len(found[1]) > 1 else _NAMED.get(found[1], found[1])

    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(character, text)
    try:
        # Java writes what lies beyond the first 65,536 characters as two halves.
        return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise ValueError(
            f"{place} has half a character: \\u escapes of two halves follow each other"
        ) from None
