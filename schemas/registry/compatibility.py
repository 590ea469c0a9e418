"""Checks a new schema against the earlier ones: seven levels, Confluent's messages.

BACKWARD: the new schema reads data of the old one. FORWARD: the old schema reads data of the new
one. FULL: both. These compare with the newest earlier version only; the _TRANSITIVE levels compare
with all versions, newest first, and stop at the first that is not compatible. NONE has no checks.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from schemas.registry.records import LENIENT, STRICT
from schemas.registry.schema_types.parsed_schema import ParsedSchema

_SHOWN_CHARACTERS: Final = 10 * 1024
_OTHER_TYPE: Final = "Incompatible because of different schema type"


class Earlier(NamedTuple):
    """One earlier version of the subject."""

    version: int
    schema_type: str
    schema: ParsedSchema


def incompatibilities(
    level: str,
    schema_type: str,
    schema: ParsedSchema,
    earlier: Sequence[Earlier],
    policy: str = STRICT,
) -> list[str]:
    """Return the reasons against the schema, empty for none; `earlier` is oldest first."""
    if level == "NONE":
        return []
    looked_at = earlier if level.endswith("_TRANSITIVE") else earlier[-1:]
    for each in reversed(looked_at):
        if each.schema_type != schema_type:
            messages = [_OTHER_TYPE]
        else:
            messages = _compare(level, policy, schema, each)
        if messages:
            return [*messages, f"{{validateFields: 'false', compatibility: '{level}'}}"]
    return []


def _compare(level: str, policy: str, schema: ParsedSchema, old: Earlier) -> list[str]:
    if (old.schema.canonical, old.schema.named) == (schema.canonical, schema.named):
        return []
    messages: list[str] = []
    is_lenient = policy == LENIENT
    if level.startswith(("FORWARD", "FULL")):
        found = old.schema.cannot_read(schema, is_lenient=is_lenient)
        messages += [each % ("old", "new") for each in _pairs(found)]
    if level.startswith(("BACKWARD", "FULL")):
        found = schema.cannot_read(old.schema, is_lenient=is_lenient)
        messages += [each % ("new", "old") for each in _pairs(found)]
    return [*messages, *_old_one(old)] if messages else []


def _pairs(sentences: list[str]) -> list[str]:
    """Give every sentence two places for names; unused places print no text."""
    return [
        each if each.replace("%%", "").count("%s") == 2 else f"{each}%.0s%.0s" for each in sentences
    ]


def _old_one(old: Earlier) -> list[str]:
    text = old.schema.canonical
    shown = (
        f"{{oldSchema: '{text}'}}"
        if len(text) <= _SHOWN_CHARACTERS
        else f"{{oldSchema: <truncated> '{text[:_SHOWN_CHARACTERS]}...'}}"
    )
    return [f"{{oldSchemaVersion: {old.version}}}", shown]
