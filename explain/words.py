"""How figures stand in a sentence. Names come from users, so what is no printable text is escaped.

A sentence is a template such as `It is {lag:record} behind for {silent:duration}.`. What stands
behind the colon is one of the forms below, or else a noun that is counted.
"""

import string
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

SHOWN_CHARACTERS: Final = 200
SHOWN_NAMES: Final = 8
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS: Final = ((86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute"), (1_000, "second"))
_FEWEST: Final = 2
"""A unit is used from two of it on: 90 minutes, not one hour."""


def name(value: object) -> str:
    """Return a name as it may be printed: escaped, and shortened."""
    text = str(value)
    shown = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
    return shown if len(shown) <= SHOWN_CHARACTERS else f"{shown[:SHOWN_CHARACTERS]}..."


def names(values: Iterable[object]) -> str:
    """Return `a, b and c`, and of many names the first ones."""
    shown = [name(each) for each in values]
    if len(shown) > SHOWN_NAMES:
        shown = [*shown[:SHOWN_NAMES], f"{len(shown) - SHOWN_NAMES} more"]
    return f"{', '.join(shown[:-1])} and {shown[-1]}" if shown[1:] else "".join(shown)


def brokers(ids: Iterable[int]) -> str:
    """Return `broker 1`, or `brokers 1 and 2`."""
    listed = list(ids)
    return f"{'broker' if len(listed) == 1 else 'brokers'} {names(listed)}"


def count(number: int, noun: str) -> str:
    """Return `1 record`, or `2,000 records`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def duration(milliseconds: float) -> str:
    """Return a duration in its largest fitting unit; a short one to a tenth of a second."""
    for size, unit in _UNITS:
        if milliseconds >= _FEWEST * size:
            return count(round(milliseconds / size), unit)
    return f"{milliseconds / 1000:.1f} seconds"


def time(timestamp_ms: int) -> str:
    """Return a time to the second, or the bare number for one beyond the calendar."""
    try:
        moment = _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return f"{timestamp_ms} ms"
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _rate(per_second: float) -> str:
    return f"{per_second:,.1f} records a second"


FORMS: Final[Mapping[str, Callable[[Any], str]]] = {
    "": name,
    "names": names,
    "brokers": brokers,
    "duration": duration,
    "time": time,
    "rate": _rate,
}


class _Sentences(string.Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        form = FORMS.get(format_spec)
        return count(value, format_spec) if form is None else form(value)


def sentence(template: str, figures: Mapping[str, Any]) -> str:
    """Put the figures into a template."""
    return _Sentences().vformat(template, (), figures)
