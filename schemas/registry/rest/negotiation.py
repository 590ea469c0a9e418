"""Chooses the content type of an answer by the Accept header of the request.

RFC 9110, section 12.5.1. Confluent's registry offers the same three, in this order.
"""

from typing import Final

CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_JSON: Final = "application/json"
_OFFERED: Final = (CONTENT_TYPE, "application/vnd.schemaregistry+json", _JSON)
SENT: Final = (*_OFFERED, "application/octet-stream")
"""Content types that a request may have."""


def answered_type(accept: str) -> str | None:
    """Return the content type for an Accept header, None when none is acceptable."""
    ranges = [found for part in accept.split(",") if (found := _range(part)) is not None]
    if not ranges:
        return CONTENT_TYPE if not accept.strip() else None
    qualities = {offered: _quality(offered, ranges) for offered in _OFFERED}
    best = max(_OFFERED, key=lambda offered: qualities[offered])
    return best if qualities[best] > 0 else None


def _range(part: str) -> tuple[str, float] | None:
    """Read one media range and its quality; None for an invalid one."""
    name, *parameters = (each.strip().lower() for each in part.split(";"))
    if name.count("/") != 1:
        return None
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip() == "q":
            try:
                quality = float(value)
            except ValueError:
                return None
            return (name, quality) if 0 <= quality <= 1 else None
    return name, 1.0


def _quality(offered: str, ranges: list[tuple[str, float]]) -> float:
    """Return the quality of the most specific range that matches a type."""
    for name in (offered, "application/*", "*/*"):
        found = [quality for each, quality in ranges if each == name]
        if found:
            return max(found)
    return 0.0
