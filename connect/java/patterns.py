"""Java's regular expressions (`java.util.regex`), each match of which ends.

The languages are nearly the same. A named group is `(?<name>...)` in Java and `(?P<name>...)` in
Python. In a replacement, Java refers to a group with `$1` or `${name}`. Syntax that only Java has
is refused as an invalid pattern.
"""

import re
from typing import Any

from common.process.patterns import Pattern
from millstream.connect.errors import ConfigException, DataException

_NAMED = re.compile(r"(?<!\\)((?:\\\\)*)\(\?<(?![=!])")
_IN_REPLACEMENT = re.compile(r"\\(.)|\$(?:(\d)|\{([A-Za-z][A-Za-z0-9]*)\})|([$\\])", re.DOTALL)


def java_pattern(text: str) -> Pattern:
    """Return a compiled pattern; raise re.error if it is invalid.

    Its matches raise DataException when they take too long.
    """
    return Pattern(_NAMED.sub(r"\1(?P<", text), DataException)


def replaced_first(match: re.Match[str], replacement: str) -> str:
    """Return the text that replaces a match, as Java's Matcher.replaceFirst does.

    A group number after `$` takes as many digits as still name an existing group. Raise
    DataException if the replacement names a group that does not exist.
    """
    made: list[str] = []
    place = 0
    while place < len(replacement):
        found = _IN_REPLACEMENT.search(replacement, place)
        if found is None:
            break
        made.append(replacement[place : found.start()])
        escaped, digit, name, bad = found.groups()
        place = found.end()
        if bad is not None:
            raise DataException(f"Illegal group reference in the replacement: {replacement}")
        if escaped is not None:
            made.append(escaped)
        elif name is not None:
            made.append(_group(match, name, f"No group with name {{{name}}}"))
        else:
            number = int(digit)
            while place < len(replacement) and replacement[place] in "0123456789":
                longer = number * 10 + int(replacement[place])
                if longer > match.re.groups:
                    break
                number, place = longer, place + 1
            made.append(_group(match, number, f"No group {number}"))
    made.append(replacement[place:])
    return "".join(made)


def _group(match: re.Match[str], group: int | str, message: str) -> str:
    try:
        return match.group(group) or ""
    except IndexError:
        raise DataException(message) from None


class RegexValidator:
    """Accepts a valid regular expression."""

    def __call__(self, name: str, value: Any) -> None:
        try:
            java_pattern(value)
        except (re.error, TypeError, OverflowError) as error:
            raise ConfigException.of_value(name, value, f"Invalid regex: {error}") from None

    def __str__(self) -> str:
        return "valid regex"
