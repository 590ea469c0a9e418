"""Avro schemas: parsed by the package `avro`, and written as Avro's Java library writes them.

The stored text equals that of Java's `Schema.toString` (Avro specification 1.12, "Schemas"): no
white space, members in a fixed order, primitive types as plain names, and a name without its
namespace if that is the enclosing one. So a schema has the same id whichever client registers it.
"""

import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from avro.compatibility import SchemaIncompatibilityType
from avro.errors import IgnoredLogicalType
from avro.name import Names
from avro.schema import Schema, make_avsc_object

from common.process.json_text import read_json
from schemas.registry.questions import Named
from schemas.registry.records import compact_json
from schemas.registry.refusals import invalid_schema
from schemas.registry.schema_types.avro_rules import Checker
from schemas.registry.schema_types.parsed_schema import ParsedSchema, check_shape, unknown_format

_MEMBERS_LIMIT = 10_000
"""A limit, because the package compares the name of each field with all fields before it."""
_NAMED = ("record", "error", "enum", "fixed")
_MEMBERS = ("doc", "fields", "symbols", "default", "size", "items", "values")
_FIELD_MEMBERS = ("doc", "default")
_NESTED = ("type", "fields", "items", "values")
_DESCRIPTIONS = {
    "fixed_size_mismatch": (
        "The size of FIXED type field at path '{path}' in the %s schema does not match with the "
        "%s schema"
    ),
    "type_mismatch": (
        "The type (path '{path}') of a field in the %s schema does not match with the %s schema"
    ),
    "name_mismatch": "The name of the schema has changed (path '{path}')",
    "missing_enum_symbols": (
        "The %s schema is missing enum symbols '{message}' at path '{path}' in the %s schema"
    ),
    "missing_union_branch": (
        "The %s schema is missing a type inside a union field at path '{path}' in the %s schema"
    ),
    "reader_field_missing_default_value": (
        "The field '{message}' at path '{path}' in the %s schema has no default value and is "
        "missing in the %s schema"
    ),
}


class AvroSchema(ParsedSchema):
    """One schema, with the schemas that it refers to."""

    def __init__(self, text: str, named: Named) -> None:
        self.named = named
        try:
            self._json = read_json(text)
            self._named = [read_json(each) for _, each in named]
            check_shape(self._json, members=_MEMBERS_LIMIT)
            self.parsed = _parse(self._json, self._named)
            self._canonical = compact_json(_Writer().write(self._json, ""))
        # The package raises its own errors, and KeyError, TypeError and others for some inputs.
        except Exception as error:
            raise invalid_schema(f"Invalid schema of type AVRO, details: {error}") from error

    @property
    def canonical(self) -> str:
        return self._canonical

    def normalized(self) -> str:
        return compact_json(_Writer(is_sorted=True).write(self._json, ""))

    def formatted(self, how: str) -> str:
        if how != "resolved":
            raise unknown_format(how, "AVRO")
        definitions = {name: each for schema in self._named for name, each in _defined(schema, "")}
        return compact_json(_Writer(definitions).write(self._json, ""))

    def cannot_read(self, written: ParsedSchema, *, is_lenient: bool = False) -> list[str]:
        assert isinstance(written, AvroSchema), written
        result = Checker().get_compatibility(self.parsed, written.parsed)
        types = list(dict.fromkeys(result.incompatibilities))
        return [_sentence(each, result.messages, result.locations) for each in types]


def _parse(schema: Any, named: Iterable[Any]) -> Schema:
    names = Names()
    with warnings.catch_warnings():
        # An unknown logical type is ignored (Avro specification, "Logical Types").
        warnings.simplefilter("ignore", IgnoredLogicalType)
        for each in named:
            make_avsc_object(_filled(each), names)
        return make_avsc_object(_filled(schema), names)


def _filled(schema: Any) -> Any:
    """Add a field without effect to a record that has no fields.

    The specification allows a record without fields, but the package does not.
    """
    if isinstance(schema, list):
        return [_filled(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    filled = {name: _filled(value) if name in _NESTED else value for name, value in schema.items()}
    if schema.get("type") in ("record", "error") and schema.get("fields") == []:
        filled["fields"] = [{"name": "nothing", "type": "null", "default": None}]
    return filled


def _defined(schema: Any, space: str) -> Iterator[tuple[str, Any]]:
    """Yield the full name and definition of every named type in a schema."""
    if isinstance(schema, list):
        for each in schema:
            yield from _defined(each, space)
    if not isinstance(schema, dict):
        return
    if schema["type"] in _NAMED:
        at, simple = _name(schema, space)
        yield _full(at, simple), {**schema, "name": simple, "namespace": at}
        space = at
    for name in _NESTED:
        yield from _defined(schema.get(name), space)


def _name(schema: dict[str, Any], space: str) -> tuple[str, str]:
    at, _, simple = schema["name"].rpartition(".")
    return at or schema.get("namespace", space), simple


def _full(space: str, simple: str) -> str:
    return f"{space}.{simple}" if space and "." not in simple else simple


def _sentence(
    kind: SchemaIncompatibilityType, messages: Iterable[str], locations: Iterable[str]
) -> str:
    """Describe one kind of difference.

    The package has separate lists of kinds, messages and locations, so differences of one kind
    share their messages and locations.
    """
    message, path = _escaped(messages), _escaped(locations)
    description = _DESCRIPTIONS[kind.value].format(path=path, message=message)
    return (
        f"{{errorType:'{kind.name.upper()}', description:'{description}', "
        f"additionalInfo:'{message}'}}"
    )


def _escaped(parts: Iterable[str]) -> str:
    return ", ".join(sorted(parts)).replace("%", "%%")


class _Writer:
    """Writes one schema; a named type is written in full at its first use."""

    def __init__(
        self, definitions: Mapping[str, Any] | None = None, *, is_sorted: bool = False
    ) -> None:
        self._definitions = definitions or {}
        """Types of other schemas that are also written in full."""
        self._is_sorted = is_sorted
        self._written: set[str] = set()

    def write(self, schema: Any, space: str) -> Any:
        if isinstance(schema, str):
            return self._reference(schema, space)
        if isinstance(schema, list):
            return [self.write(branch, space) for branch in schema]
        kind = schema["type"]
        if not isinstance(kind, str):
            return self.write(kind, space)
        if kind in _NAMED:
            return self._named(schema, space)
        written = {"type": kind, **self._members(schema, space)}
        return kind if written == {"type": kind} else written

    def _reference(self, name: str, space: str) -> Any:
        full = _full(space, name)
        if full not in self._written and full in self._definitions:
            return self._named(self._definitions[full], space)
        at, _, simple = name.rpartition(".")
        return simple if at and at == space and full in self._written else name

    def _named(self, schema: dict[str, Any], space: str) -> dict[str, Any]:
        at, simple = _name(schema, space)
        self._written.add(_full(at, simple))
        written: dict[str, Any] = {"type": schema["type"], "name": simple}
        if at != space:
            written["namespace"] = at
        written |= self._members(schema, at)
        if schema.get("aliases"):
            written["aliases"] = schema["aliases"]
        return written

    def _members(self, schema: dict[str, Any], space: str) -> dict[str, Any]:
        written: dict[str, Any] = {}
        for name in _MEMBERS:
            if name not in schema:
                continue
            if name in ("items", "values"):
                written[name] = self.write(schema[name], space)
            elif name == "fields":
                written[name] = [self._field(field, space) for field in schema[name]]
            else:
                written[name] = schema[name]
        written.update(self._others(schema, (*_MEMBERS, "type", "name", "namespace", "aliases")))
        return written

    def _field(self, field: dict[str, Any], space: str) -> dict[str, Any]:
        written = {"name": field["name"], "type": self.write(field["type"], space)}
        written |= {name: field[name] for name in _FIELD_MEMBERS if name in field}
        if field.get("order", "ascending") != "ascending":
            written["order"] = field["order"]
        if field.get("aliases"):
            written["aliases"] = field["aliases"]
        known = (*_FIELD_MEMBERS, "name", "type", "order", "aliases")
        return {**written, **dict(self._others(field, known))}

    def _others(self, schema: dict[str, Any], known: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        """Yield the attributes that Avro does not define."""
        others = [(name, value) for name, value in schema.items() if name not in known]
        yield from sorted(others) if self._is_sorted else others
