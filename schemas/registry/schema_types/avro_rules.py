"""Avro: decide whether a reader's schema can read a writer's, as package `avro` does, but faster.

The package is slow in three ways. It builds a dictionary of a record's fields for each field that
it looks up. Its hash of a pair of schemas makes most pairs collide. It compares the fields of two
records in a union before it compares their names. This module returns the same results, messages
and locations as the package.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from avro.compatibility import (
    CompatibleResult,
    ReaderWriterCompatibilityChecker,
    SchemaCompatibilityResult,
    SchemaCompatibilityType,
    SchemaIncompatibilityType,
    incompatible,
    schema_name_equals,
)
from avro.schema import Schema

_NAMED = ("record", "error", "enum", "fixed")
_Place = list[str]


class Checker(ReaderWriterCompatibilityChecker):
    """Compares one reader's schema with one writer's."""

    def __init__(self) -> None:
        self._results: dict[tuple[int, int], SchemaCompatibilityResult] = {}
        self._fields: dict[int, dict[str, Any]] = {}
        """The fields of each record by name; the key is the `id` of the record's schema."""

    def get_compatibility(
        self, reader: Any, writer: Any, reference_token: str = "/", location: _Place | None = None
    ) -> SchemaCompatibilityResult:
        pair = (id(reader), id(writer))
        known = self._results.get(pair)
        if known is None:
            self._results[pair] = CompatibleResult  # Assumed while a recursive pair is compared.
            at = [*(location or ()), reference_token]
            known = self._results[pair] = self.calculate_compatibility(reader, writer, at)
        return known

    def calculate_compatibility(
        self, reader: Any, writer: Any, location: _Place
    ) -> SchemaCompatibilityResult:
        if writer.type == "union":
            results = self._branches(reader, writer, location)
            return _merged(results)
        if reader.type != "union":
            return super().calculate_compatibility(reader, writer, location)
        if any(self._can_read(branch, writer) for branch in _candidates(reader, writer)):
            return CompatibleResult
        message = f"reader union lacking writer type {writer.type}"
        return incompatible(SchemaIncompatibilityType.missing_union_branch, message, location)

    def _branches(
        self, reader: Any, writer: Any, location: _Place
    ) -> Iterator[SchemaCompatibilityResult]:
        for number, branch in enumerate(writer.schemas):
            result = self.get_compatibility(reader, branch)
            if reader.type != "union":
                yield result
            elif result.compatibility is SchemaCompatibilityType.incompatible:
                message = f"reader union lacking writer type: {branch.type.upper()}"
                at = [*location, str(number)]
                yield incompatible(SchemaIncompatibilityType.missing_union_branch, message, at)

    def _can_read(self, reader: Schema, writer: Schema) -> bool:
        result = self.get_compatibility(reader, writer)
        return bool(result.compatibility is SchemaCompatibilityType.compatible)

    def check_reader_writer_record_fields(
        self, reader: Any, writer: Any, location: _Place
    ) -> SchemaCompatibilityResult:
        written = self._fields.setdefault(id(writer), dict(writer.fields_dict))
        return _merged(
            self._field(field, _written(field, written), writer, [*location, "fields", str(number)])
            for number, field in enumerate(reader.fields)
        )

    def _field(
        self, field: Any, written: Any, writer: Any, location: _Place
    ) -> SchemaCompatibilityResult:
        if written is not None:
            return self.get_compatibility(field.type, written.type, "type", location)
        if field.has_default:
            return CompatibleResult
        if field.type.type == "enum" and field.type.props.get("default"):
            return self.get_compatibility(field.type, writer, "type", location)
        kind = SchemaIncompatibilityType.reader_field_missing_default_value
        return incompatible(kind, field.name, location)


def _written(field: Any, written: dict[str, Any]) -> Any:
    """Return the writer's field for a reader's field, found by its name or one of its aliases."""
    aliases = field.props.get("aliases")
    names = (field.name, *(aliases if isinstance(aliases, Iterable) else ()))
    return next((written[name] for name in names if name in written), None)


def _candidates(reader: Any, writer: Any) -> Iterator[Any]:
    """Yield the branches that may read a schema; of named types only those with its name."""
    for branch in reader.schemas:
        is_other = branch.type == writer.type and writer.type in _NAMED
        if not is_other or schema_name_equals(branch, writer):
            yield branch


def _merged(results: Iterable[SchemaCompatibilityResult]) -> SchemaCompatibilityResult:
    kinds: list[SchemaIncompatibilityType] = []
    messages: set[str] = set()
    locations: set[str] = set()
    for result in results:
        if result.compatibility is not SchemaCompatibilityType.compatible:
            kinds += result.incompatibilities
            messages |= result.messages
            locations |= result.locations
    if not kinds:
        return CompatibleResult
    return SchemaCompatibilityResult(
        compatibility=SchemaCompatibilityType.incompatible,
        incompatibilities=kinds,
        messages=messages,
        locations=locations,
    )
