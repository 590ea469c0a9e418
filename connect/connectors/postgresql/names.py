"""Derive the names of topics, schemas and fields from names of tables and columns. Does no IO.

A topic's name has ASCII letters, digits, `.`, `_` and `-`, and at most 249 characters. As in
Debezium, any other character becomes `_`.
"""

import re
from collections.abc import Callable
from typing import Final

_NO_TOPIC: Final = re.compile(r"[^A-Za-z0-9._-]")
_NO_AVRO_NAME: Final = re.compile(r"[^A-Za-z0-9_.]")
_NO_AVRO_FIELD: Final = re.compile(r"[^A-Za-z0-9_]")
TOPIC_LENGTH: Final = 249

Adjust = Callable[[str], str]


def topic_name(*parts: str, delimiter: str) -> str:
    name = _NO_TOPIC.sub("_", delimiter.join(parts))[:TOPIC_LENGTH]
    return "_" * len(name) if name in (".", "..") else name


def schema_adjustment(mode: str) -> Adjust:
    """Return the function that adjusts names of schemas, by `schema.name.adjustment.mode`."""
    return _adjustment(mode, _NO_AVRO_NAME)


def field_adjustment(mode: str) -> Adjust:
    """Return the function that adjusts names of fields, by `field.name.adjustment.mode`."""
    return _adjustment(mode, _NO_AVRO_FIELD)


def _adjustment(mode: str, wrong: re.Pattern[str]) -> Adjust:
    if mode == "none":
        return lambda name: name
    is_unicode = mode == "avro_unicode"

    def adjust(name: str) -> str:
        if is_unicode:
            name = wrong.sub(_escaped, name.replace("_", "_u005f"))
        else:
            name = wrong.sub("_", name)
        return f"_{name}" if name[:1].isdigit() else name

    return adjust


def _escaped(match: re.Match[str]) -> str:
    units = match.group().encode("utf-16-be")
    return "".join(f"_u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
