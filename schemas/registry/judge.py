"""Answers questions about schemas: parses, writes, compares. Pure; slow for a large input.

A new schema is checked against the earlier ones at seven levels, with Confluent's messages.
BACKWARD: the new schema reads data of the old one. FORWARD: the old schema reads data of the new
one. FULL: both. These compare with the newest earlier version only; the _TRANSITIVE levels compare
with all versions, newest first, and stop at the first that is not compatible. NONE has no checks.
"""

import logging
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, NamedTuple

from schemas.registry import refusals
from schemas.registry.questions import (
    Answer,
    Compare,
    Find,
    Parse,
    Parsed,
    Question,
    Refused,
    Write,
    size_of,
)
from schemas.registry.records import LENIENT, STRICT
from schemas.registry.refusals import RegistryError
from schemas.registry.schema_types.parsed_schema import ParsedSchema
from schemas.registry.schema_types.parsing import parse

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


_REMEMBERED_CHARACTERS: Final = 1 << 20

log = logging.getLogger(__name__)


class Judge:
    """Answers questions; keeps the schemas parsed last, up to a number of characters of text."""

    def __init__(self, remembered_characters: int = _REMEMBERED_CHARACTERS) -> None:
        self._limit = remembered_characters
        self._size = 0
        self._known: OrderedDict[Parse, ParsedSchema] = OrderedDict()

    def answer(self, question: Question) -> Answer:
        """Return the answer, which may be a refusal."""
        try:
            return self._answer(question)
        except RegistryError as error:
            return Refused(error.error_code, str(error))
        except RecursionError:
            return refused_as("it is nested too deeply")
        except MemoryError:
            self._known.clear()
            self._size = 0
            return refused_as("it takes too much memory")
        # The packages raise many kinds of errors; all of them are errors of the schema.
        except Exception as error:
            log.exception("registry could not judge a schema kind=%s", type(question).__name__)
            return refused_as(f"{type(error).__name__}: {error}")

    def _answer(self, question: Question) -> Answer:
        match question:
            case Parse():
                schema = self._parsed(question)
                return Parsed(schema.canonical, schema.normalized())
            case Write():
                return self._parsed(question.schema).formatted(question.how)
            case Compare():
                return self._compare(question)
            case Find():
                return self._find(question)

    def _find(self, question: Find) -> list[int]:
        canonical = self._parsed(question.schema).canonical
        for version, each in question.versions:
            try:
                if self._parsed(each).canonical == canonical:
                    return [version]
            except RegistryError:
                continue  # It was stored by another registry; a valid schema is not the same.
        return []

    def _compare(self, question: Compare) -> list[str]:
        schema = self._parsed(question.schema)
        earlier = [self._earlier(version, each) for version, each in question.earlier]
        kind = question.schema.schema_type
        return incompatibilities(question.level, kind, schema, earlier, question.policy)

    def _earlier(self, version: int, question: Parse) -> Earlier:
        try:
            return Earlier(version, question.schema_type, self._parsed(question))
        except RegistryError as error:
            # Another registry, or an older release with fewer checks, stored this schema.
            reason = f"Cannot compare with version {version}, which is not valid here: {error}"
            raise refusals.invalid_schema(reason) from error

    def _parsed(self, question: Parse) -> ParsedSchema:
        known = self._known.get(question)
        if known is not None:
            self._known.move_to_end(question)
            return known
        schema = parse(question.schema_type, question.text, question.named)
        self._known[question] = schema
        self._size += size_of(question)
        while self._size > self._limit:
            forgotten, _ = self._known.popitem(last=False)
            self._size -= size_of(forgotten)
        return schema


def refused_as(reason: str) -> Refused:
    """Return the answer for a schema that cannot be checked."""
    error = refusals.invalid_schema(f"Invalid schema, details: {reason}")
    return Refused(error.error_code, str(error))
