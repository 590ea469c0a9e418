"""Java's regular expressions, as `java.util.regex` reads them, with Python's.

The two are nearly one language. Written differently: a group's name, `(?<name>...)` there and
`(?P<name>...)` here, and what stands for a group in a replacement, `$1` and `${name}` there. What
Java has and Python has not, as `\\p{Alpha}`, is refused as an invalid pattern.
"""

import re
from typing import Any

from millrace.connect.errors import ConfigException, DataException

_NAMED = re.compile(r"(?<!\\)((?:\\\\)*)\(\?<(?![=!])")
_IN_REPLACEMENT = re.compile(r"\\(.)|\$(?:(\d)|\{([A-Za-z][A-Za-z0-9]*)\})|([$\\])", re.DOTALL)


def java_pattern(text: str) -> re.Pattern[str]:
    """Compile a pattern; raises re.error when it is none."""
    return re.compile(_NAMED.sub(r"\1(?P<", text))


def replaced_first(match: re.Match[str], replacement: str) -> str:
    """Return what a match is replaced with, as Matcher.replaceFirst does.

    As many digits count as make the number of a group that exists. Raises DataException when the
    replacement names a group that does not exist.
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
    """A regular expression."""

    def __call__(self, name: str, value: Any) -> None:
        try:
            java_pattern(value)
        except (re.error, TypeError, OverflowError) as error:
            raise ConfigException.of_value(name, value, f"Invalid regex: {error}") from None

    def __str__(self) -> str:
        return "valid regex"
