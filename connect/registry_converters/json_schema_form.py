"""Translate Connect schemas to JSON Schemas and back, as Confluent's JsonSchemaData does.

Details that JSON Schema lacks are stored in `connect.type`, `connect.index` and so on, and are read
back. A JSON Schema from another program is accepted if each value has a single type: `oneOf` and
`anyOf` only add null, and `$ref` refers to the same document. A property that is not in `required`
is optional.
"""

from collections.abc import Mapping
from typing import Any, Final

from millstream.connect import DataException, Schema
from millstream.connect.data.schema import DATE, DECIMAL, TIME, TIMESTAMP, Type
from millstream.connect.errors import SchemaBuilderException

_KINDS: Final = {
    Type.INT8: "integer",
    Type.INT16: "integer",
    Type.INT32: "integer",
    Type.INT64: "integer",
    Type.FLOAT32: "number",
    Type.FLOAT64: "number",
    Type.BOOLEAN: "boolean",
    Type.STRING: "string",
    Type.BYTES: "string",
}
_TOLD: Final = set(_KINDS) - {Type.BOOLEAN, Type.STRING}
_BY_KIND: Final = {
    "integer": Type.INT64,
    "number": Type.FLOAT64,
    "boolean": Type.BOOLEAN,
    "string": Type.STRING,
}
_LOGICAL: Final = {DECIMAL, DATE, TIME, TIMESTAMP}
_MAX_DEPTH: Final = 100


def json_schema_of(schema: Schema, *, is_decimal_numeric: bool) -> dict[str, Any]:
    """Return the JSON Schema of a Connect schema; raise DataException if there is none."""
    told = _bare(schema, is_decimal_numeric=is_decimal_numeric)
    if schema.name is not None:
        told["title"] = schema.name
    if schema.version is not None:
        told["connect.version"] = schema.version
    if schema.parameters:
        told["connect.parameters"] = dict(schema.parameters)
    if schema.doc is not None:
        told["description"] = schema.doc
    return {"oneOf": [{"type": "null"}, told]} if schema.optional else told


def _bare(schema: Schema, *, is_decimal_numeric: bool) -> dict[str, Any]:
    def inner(of: Schema | None) -> dict[str, Any]:
        if of is None:
            raise DataException("An array or a map has no schema for its entries")
        return json_schema_of(of, is_decimal_numeric=is_decimal_numeric)

    match schema.type:
        case Type.STRUCT:
            properties = {
                field.name: _placed(inner(field.schema), field.index) for field in schema.fields
            }
            return {"type": "object", "properties": properties}
        case Type.ARRAY:
            return {"type": "array", "items": inner(schema.value_schema)}
        case Type.MAP:
            if schema.key_schema is None or schema.key_schema.type is not Type.STRING:
                raise DataException("In JSON Schema the keys of a map must be strings")
            values = inner(schema.value_schema)
            return {"type": "object", "connect.type": "map", "additionalProperties": values}
        case kind:
            is_number = schema.name == DECIMAL and is_decimal_numeric
            told = {"type": "number" if is_number else _KINDS[kind]}
            return {**told, "connect.type": kind.value} if kind in _TOLD else told


def _placed(told: dict[str, Any], index: int) -> dict[str, Any]:
    return {**told, "connect.index": index}


def connect_of_json(document: Any) -> Schema:
    """Return the Connect schema of a JSON Schema; raise DataException."""
    try:
        return _Reader(document).read(document, 0)
    except (KeyError, TypeError, ValueError, SchemaBuilderException) as error:
        raise DataException(f"The JSON Schema cannot be understood: {error!r}") from None


class _Reader:
    def __init__(self, document: Any) -> None:
        self._document = document

    def read(self, told: Any, depth: int, *, is_optional: bool = False) -> Schema:
        if depth > _MAX_DEPTH:
            raise DataException("The JSON Schema is nested too deeply, or refers to itself")
        told, has_null = self._one(told)
        is_optional = is_optional or has_null
        traits: dict[str, Any] = {
            "optional": is_optional,
            "name": told.get("title"),
            "version": told.get("connect.version"),
            "parameters": told.get("connect.parameters", {}),
            "doc": told.get("description"),
        }
        kind = told.get("type")
        if kind == "array":
            return Schema.array(self.read(told["items"], depth + 1), **traits)
        if kind != "object":
            return _plain(told, traits)
        values = told.get("additionalProperties")
        if told.get("connect.type") == "map" or (values and "properties" not in told):
            return Schema.map(Schema.string(), self.read(values, depth + 1), **traits)
        return Schema.struct(self._fields(told, depth), **traits)

    def _one(self, told: Any) -> tuple[Mapping[str, Any], bool]:
        """Return the single schema besides null, and whether null is allowed."""
        if not isinstance(told, dict):
            raise DataException(f"The JSON Schema has no type: {told!r:.80}")
        if "$ref" in told:
            return self._one(self._referred(told["$ref"]))
        if isinstance(told.get("type"), list):
            kinds = [kind for kind in told["type"] if kind != "null"]
            if len(kinds) != 1:
                raise DataException(f"The JSON Schema has several types: {kinds}")
            return {**told, "type": kinds[0]}, len(kinds) < len(told["type"])
        branches = told.get("oneOf") or told.get("anyOf")
        if branches is None:
            return told, False
        others = [branch for branch in branches if branch != {"type": "null"}]
        if len(others) != 1:
            raise DataException("The JSON Schema has several types: oneOf may only add null")
        found, has_null = self._one(others[0])
        return found, has_null or len(others) < len(branches)

    def _referred(self, reference: str) -> Any:
        found = self._document
        if not reference.startswith("#/"):
            raise DataException(f"References to other documents are not supported: {reference}")
        for step in reference[2:].split("/"):
            found = found[step.replace("~1", "/").replace("~0", "~")]
        if isinstance(found, dict) and "$ref" in found:
            raise DataException(f"References to references are not supported: {reference}")
        return found

    def _fields(self, told: Mapping[str, Any], depth: int) -> dict[str, Schema]:
        properties: Mapping[str, Any] = told.get("properties", {})
        required = told.get("required", ())

        def place(name: str) -> tuple[int, str]:
            return int(properties[name].get("connect.index", len(properties))), name

        return {
            name: self.read(
                properties[name],
                depth + 1,
                is_optional="connect.index" not in properties[name] and name not in required,
            )
            for name in sorted(properties, key=place)
        }


def _plain(told: Mapping[str, Any], traits: dict[str, Any]) -> Schema:
    if told.get("connect.type") in {kind.value for kind in _KINDS}:
        return Schema(Type(told["connect.type"]), **traits)
    if traits["name"] in _LOGICAL:
        traits["name"] = None
    return Schema(_BY_KIND[told["type"]], **traits)
