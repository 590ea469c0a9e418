"""Where a share group begins to read a partition: the values of `share.auto.offset.reset`."""

import re
from enum import Enum

DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS = 86_400_000, 3_600_000, 60_000, 1_000
_DURATION = re.compile(
    r"P(?:(\d{1,12})D)?(?:T(?:(\d{1,12})H)?(?:(\d{1,12})M)?(?:(\d{1,12})(?:\.(\d{1,9}))?S)?)?",
    re.ASCII | re.IGNORECASE,
)
"""An ISO 8601 duration as Java's `Duration` reads it, without signs."""


class Reset(Enum):
    """Where a share group begins to read a partition."""

    EARLIEST = "earliest"
    LATEST = "latest"
    BY_DURATION = "by_duration"


def parse_reset(text: str) -> tuple[Reset, int]:
    """Parse `share.auto.offset.reset`: the reset, and its duration; raise ValueError."""
    name, colon, duration = text.strip().partition(":")
    reset = Reset(name.lower())
    if (reset is Reset.BY_DURATION) != bool(colon):
        raise ValueError(f"{text!r} is no offset reset")
    return reset, duration_of(duration) if colon else 0


def duration_of(text: str) -> int:
    """Return the milliseconds of an ISO 8601 duration like P1DT2H30M; raise ValueError."""
    found = _DURATION.fullmatch(text)
    if found is None or text[-1:].upper() in {"P", "T"}:
        raise ValueError(f"{text!r} is no ISO 8601 duration")
    days, hours, minutes, seconds, fraction = found.groups()
    return (
        int(days or 0) * DAY_MS
        + int(hours or 0) * HOUR_MS
        + int(minutes or 0) * MINUTE_MS
        + int(seconds or 0) * SECOND_MS
        + int((fraction or "").ljust(9, "0")[:3])
    )
