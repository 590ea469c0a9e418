"""Answers questions about schemas: parses, writes, compares. Pure; slow for a large input."""

import logging
from collections import OrderedDict
from typing import Final

from schemas.registry import refusals
from schemas.registry.compatibility import Earlier, incompatibilities
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
from schemas.registry.refusals import RegistryError
from schemas.registry.schema_types.parsed_schema import ParsedSchema
from schemas.registry.schema_types.parsing import parse

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
