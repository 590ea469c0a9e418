"""A value that a schema allows, with all its fields, for somebody to fill in. Pure.

Defaults and examples of the schema are taken where there are some. A type within itself ends with
null, an empty list or nothing, and a skeleton has a limited number of values. A condition that
cannot be met without thought, such as a pattern, is left to the check when the record is written.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

MAX_VALUES: Final = 1_000
_MAX_DEPTH: Final = 30
_AVRO_PLAIN: Final[Mapping[str, Any]] = {
    "null": None, "boolean": False, "int": 0, "long": 0, "float": 0.0, "double": 0.0,
    "bytes": "", "string": "",
}  # fmt: skip
_JSON_PLAIN: Final[Mapping[str, Any]] = {
    "null": None, "boolean": False, "integer": 0, "number": 0, "string": "",
}  # fmt: skip
_JSON_FORMATS: Final[Mapping[str, str]] = {
    "date": "2000-01-01", "date-time": "2000-01-01T00:00:00Z", "time": "00:00:00Z",
    "email": "name@example.com", "uri": "https://example.com/",
    "uuid": "00000000-0000-0000-0000-000000000000",
}  # fmt: skip


class _Limits:
    """Counts the values of a skeleton, and knows the types that it is within."""

    def __init__(self) -> None:
        self._left = MAX_VALUES
        self._within: list[Any] = []

    def nested(self, name: Any, make: Callable[[], Any], otherwise: Any) -> Any:
        """Make a value of a type, but not within itself, and not beyond the limits."""
        self._left -= 1
        if self._left < 0 or name in self._within or len(self._within) >= _MAX_DEPTH:
            return otherwise
        self._within.append(name)
        try:
            return make()
        finally:
            self._within.pop()


def skeleton(kind: str, schema: Any) -> Any:
    """Return a value of a schema, in the form in which its codec has it (`Codec.schema`)."""
    match kind:
        case "avro":
            return _avro(schema, {}, _Limits())
        case "jsonschema":
            return _json(schema, schema, _Limits())
        case _:
            limits = _Limits()
            return limits.nested(schema.full_name, partial(_protobuf, schema, limits), None)


def _avro(schema: Any, named: dict[str, Any], limits: _Limits) -> Any:
    if isinstance(schema, list):
        # As in a default, the first branch counts: a null where null is allowed first.
        return _avro(schema[0], named, limits) if schema else None
    if isinstance(schema, str):
        if schema in _AVRO_PLAIN:
            return _AVRO_PLAIN[schema]
        return _avro(named[schema], named, limits) if schema in named else None
    if isinstance(schema.get("name"), str):
        named[schema["name"]] = schema
    return _avro_of_type(schema, named, limits)


def _avro_of_type(schema: Mapping[str, Any], named: dict[str, Any], limits: _Limits) -> Any:
    match schema["type"]:
        case "record" | "error":
            return limits.nested(
                schema["name"],
                lambda: {each["name"]: _avro_field(each, named, limits)
                         for each in schema["fields"]},
                None,
            )  # fmt: skip
        case "array":
            item = limits.nested("array", lambda: _avro(schema["items"], named, limits), None)
            return [] if item is None else [item]
        case "map":
            return {}
        case "enum":
            return schema["symbols"][0]
        case "fixed":
            return "\0" * schema["size"]
        case plain:
            return _avro(plain, named, limits)


def _avro_field(field: Mapping[str, Any], named: dict[str, Any], limits: _Limits) -> Any:
    # The type is looked at in any case: later fields may use its name.
    found = _avro(field["type"], named, limits)
    return field.get("default", found)


def _json(schema: Any, root: Any, limits: _Limits) -> Any:
    if not isinstance(schema, dict):
        return None
    for name in ("const", "default"):
        if name in schema:
            return schema[name]
    for name in ("examples", "enum"):
        if isinstance(schema.get(name), list) and schema[name]:
            return schema[name][0]
    if isinstance(schema.get("$ref"), str):
        target = _pointed(schema["$ref"], root)
        return limits.nested(schema["$ref"], lambda: _json(target, root, limits), None)
    for name in ("oneOf", "anyOf"):
        if isinstance(schema.get(name), list) and schema[name] and "properties" not in schema:
            return limits.nested(name, partial(_json, schema[name][0], root, limits), None)
    return _json_of_type(schema, root, limits)


def _json_of_type(schema: Mapping[str, Any], root: Any, limits: _Limits) -> Any:
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind is None and ("properties" in schema or "allOf" in schema):
        kind = "object"
    match kind:
        case "object":
            return _json_object(schema, root, limits)
        case "array":
            least = schema.get("minItems")
            count = min(least, 10) if isinstance(least, int) and least > 0 else 1
            item = limits.nested(id(schema), lambda: _json(schema.get("items"), root, limits), None)
            return [] if item is None else [item] * count
        case "string":
            least = schema.get("minLength")
            shown = _JSON_FORMATS.get(str(schema.get("format")), "")
            return shown or "x" * (min(least, 100) if isinstance(least, int) else 0)
        case "integer" | "number":
            least = schema.get("minimum", schema.get("exclusiveMinimum", 0))
            is_number = isinstance(least, int | float) and not isinstance(least, bool)
            above = 1 if "exclusiveMinimum" in schema and "minimum" not in schema else 0
            return max(0, least + above) if is_number else 0
        case _:
            return _JSON_PLAIN.get(str(kind))


def _json_object(schema: Mapping[str, Any], root: Any, limits: _Limits) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in schema.get("allOf") or ():
        value = limits.nested(id(part), partial(_json, part, root, limits), None)
        found |= value if isinstance(value, dict) else {}
    for name, part in (schema.get("properties") or {}).items():
        found[name] = limits.nested((id(schema), name), partial(_json, part, root, limits), None)
    return found


def _pointed(reference: str, root: Any) -> Any:
    """Return what a pointer within the schema names; None for another document."""
    at = root
    if not reference.startswith("#"):
        return None
    for step in filter(None, reference[1:].split("/")):
        if not isinstance(at, dict):
            return None
        at = at.get(step.replace("~1", "/").replace("~0", "~"))
    return at


def _protobuf(message: Any, limits: _Limits) -> Any:
    """Return the JSON of a message, from its descriptor; of a oneof the first field."""
    if message.full_name == "google.protobuf.Timestamp":
        return "2000-01-01T00:00:00Z"
    if message.full_name == "google.protobuf.Duration":
        return "0s"
    if message.full_name.startswith("google.protobuf."):
        return None
    found = {}
    for field in message.fields:
        oneof = field.containing_oneof
        if oneof is None or oneof.fields[0].name == field.name:
            found[field.name] = _protobuf_field(field, limits)
    return {name: value for name, value in found.items() if value is not None}


def _protobuf_field(field: Any, limits: _Limits) -> Any:
    nested = field.message_type
    if nested is not None and nested.GetOptions().map_entry:
        return {}
    if nested is not None:
        value = limits.nested(nested.full_name, lambda: _protobuf(nested, limits), None)
    elif field.enum_type is not None:
        value = field.enum_type.values[0].name
    elif field.cpp_type == field.CPPTYPE_STRING:
        value = ""
    elif field.cpp_type == field.CPPTYPE_BOOL:
        value = False
    elif field.cpp_type in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        value = 0.0
    else:
        value = 0
    # Recent libraries have `is_repeated`, older ones only the label.
    is_repeated = field.is_repeated if hasattr(field, "is_repeated") else field.label == 3
    if is_repeated:
        return [] if value is None else [value]
    return value
