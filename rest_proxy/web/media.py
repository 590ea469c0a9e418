"""Media types: the embedded format of a body, and the format that a caller accepts. Pure.

Confluent's version 2 has `application/vnd.kafka.FORMAT.v2+json` for records, and
`application/vnd.kafka.v2+json` for everything else.
"""

import re
from typing import Final

from rest_proxy.formats import Format
from rest_proxy.refusals import RestError, wrong_media_type

V2: Final = "application/vnd.kafka.v2+json"
JSON: Final = "application/json"
FORMATS: Final = tuple(each for each in Format if each is not Format.STRING)
"""The media types of version 2."""
_RECORDS: Final = re.compile(r"application/vnd\.kafka\.([a-z]+)\.v2\+json")
_ANY: Final = ("*/*", "application/*")


def media_type(kind: Format) -> str:
    return f"application/vnd.kafka.{kind}.v2+json"


def records_format(content_type: str) -> Format:
    """Return the format of records that are sent; raises RestError, 415."""
    found = _format(content_type)
    if found is None:
        raise wrong_media_type(content_type, ", ".join(map(media_type, FORMATS)))
    return found


def check_v2_body(content_type: str) -> None:
    """Raise RestError, 415, for a body that is not JSON of version 2."""
    if content_type not in (V2, JSON) and _format(content_type) is None:
        raise wrong_media_type(content_type, f"{V2} or {JSON}")


def check_v3_body(content_type: str) -> None:
    """Raise RestError, 415, for a body that is not JSON."""
    if content_type != JSON:
        raise wrong_media_type(content_type, JSON)


def named_formats(content_type: str, accept: str | None) -> dict[str, str]:
    """Return the formats that a caller names: of records sent (POST), of records read (GET)."""
    read = next((each for each in map(_format, _accepted(accept)) if each is not None), None)
    found = {"POST": _format(content_type), "GET": read}
    return {method: str(each) for method, each in found.items() if each is not None}


def answered_type(accept: str | None, *offered: str) -> str:
    """Return the first offer that a caller accepts; raises RestError, 406."""
    for wanted in _accepted(accept):
        if wanted in _ANY:
            return offered[0]
        if wanted in offered:
            return wanted
    raise RestError(406, f"Accept {accept}: what there is, is {' or '.join(offered)}")


def wanted_format(accept: str | None) -> Format | None:
    """Return the format that a read's caller accepts, None for any; raises RestError, 406."""
    wanted = _accepted(accept)
    for each in wanted:
        found = _format(each)
        if found is not None:
            return found
        if each in (*_ANY, V2, JSON):
            return None
    raise RestError(406, f"Accept {accept}: use {', '.join(map(media_type, FORMATS))}")


def _accepted(accept: str | None) -> list[str]:
    """Return the media types of an Accept header, best first."""
    ranked = []
    for part in (accept or "*/*").split(","):
        name, _, rest = part.partition(";")
        quality = re.search(r"q=([0-9.]+)", rest)
        try:
            ranked.append((-float(quality[1]) if quality else -1.0, name.strip().lower()))
        except ValueError:
            ranked.append((0.0, name.strip().lower()))
    return [name for rank, name in sorted(ranked, key=lambda each: each[0]) if rank < 0]


def _format(name: str) -> Format | None:
    found = _RECORDS.fullmatch(name)
    return next((each for each in FORMATS if found is not None and each == found[1]), None)
