"""JSON Schema: package `jsonschema` checks a schema against its draft; `json_rules` compares."""

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from jsonschema.exceptions import SchemaError, UndefinedTypeCheck, ValidationError, best_match
from jsonschema.validators import Draft7Validator, extend, validator_for

from common.process.json_text import read_json
from common.registry.json_schema import json_key
from schemas.registry.questions import Named
from schemas.registry.records import compact_json
from schemas.registry.refusals import invalid_schema
from schemas.registry.schema_types.json_loader import load
from schemas.registry.schema_types.json_rules import differences
from schemas.registry.schema_types.parsed_schema import ParsedSchema, check_shape, unknown_format

_UNREADABLE = (ValueError, TypeError, ArithmeticError, RecursionError, UndefinedTypeCheck)
"""The errors, besides SchemaError, that the packages raise for an invalid schema."""


class JsonSchema(ParsedSchema):
    """One schema; its draft is the one it names, or else draft 7."""

    def __init__(self, text: str, named: Named) -> None:
        self.named = named
        try:
            self._json = read_json(text)
            if not isinstance(self._json, dict | bool):
                raise ValueError("not an object")
            _check(self._json)
            check_shape(self._json)
            self.root = load(self._json, {name: read_json(each) for name, each in named})
            self._canonical = compact_json(self._json)
        except SchemaError as error:
            reason = error.message
            raise invalid_schema(f"Invalid schema of type JSON, details: {reason}") from error
        # UndefinedTypeCheck, OverflowError and others come from values outside of all drafts.
        except (
            ValueError,
            TypeError,
            ArithmeticError,
            RecursionError,
            UndefinedTypeCheck,
        ) as error:
            raise invalid_schema(f"Invalid schema of type JSON, details: {error}") from error

    @property
    def canonical(self) -> str:
        return self._canonical

    def normalized(self) -> str:
        return json.dumps(self._json, separators=(",", ":"), ensure_ascii=False, sort_keys=True)

    def formatted(self, how: str) -> str:
        raise unknown_format(how, "JSON")

    def cannot_read(self, written: ParsedSchema, *, is_lenient: bool = False) -> list[str]:
        assert isinstance(written, JsonSchema), written
        try:
            found = differences(written.root, self.root, is_lenient=is_lenient)
        except (ValueError, ArithmeticError) as error:
            raise invalid_schema(f"Invalid schema of type JSON, details: {error}") from error
        return [each.message for each in found if not each.is_compatible(is_lenient=is_lenient)]


def _check(schema: Any) -> None:
    """Check a schema against its draft. Raise SchemaError, or ValueError for an unknown draft."""
    if isinstance(schema, dict) and not isinstance(schema.get("$schema", ""), str):
        raise ValueError("$schema is not a string")
    kind = _quick(validator_for(schema, default=Draft7Validator))
    validator = kind(kind.META_SCHEMA, format_checker=kind.FORMAT_CHECKER)
    error = best_match(validator.iter_errors(schema))
    if error is not None:
        raise SchemaError.create_from(error)


@lru_cache(maxsize=16)
def _quick(kind: Any) -> Any:
    return extend(kind, {"uniqueItems": _unique_items})


def _unique_items(_: Any, is_unique: bool, items: Any, __: Any) -> Iterator[ValidationError]:
    """Find duplicates by keys; the package compares each pair of items if they cannot be sorted."""
    if (
        is_unique
        and isinstance(items, list)
        and len({json_key(each) for each in items}) < len(items)
    ):
        yield ValidationError(f"{compact_json(items)[:200]} has non-unique elements")
