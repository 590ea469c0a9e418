"""Read and write the schema in JsonConverter's envelope: {"type":"struct","fields":[...],...}."""

from collections.abc import Callable, Iterator
from typing import Any

from connect.converters.json_text import quoted
from millstream.connect.data.schema import Schema, Type
from millstream.connect.errors import DataException

NAMES = {
    Type.BOOLEAN: "boolean",
    Type.INT8: "int8",
    Type.INT16: "int16",
    Type.INT32: "int32",
    Type.INT64: "int64",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BYTES: "bytes",
    Type.STRING: "string",
    Type.ARRAY: "array",
    Type.MAP: "map",
    Type.STRUCT: "struct",
}
TYPES = {name: kind for kind, name in NAMES.items()}
INT32_END = 1 << 31

DefaultText = Callable[[Schema, Any], str]
DefaultValue = Callable[[Schema, Any], Any]


def schema_text(schema: Schema | None, default_text: DefaultText, field: str | None = None) -> str:
    """Return a schema as JSON text; `default_text` writes the value of a default."""
    if schema is None:
        return "null"
    pairs = list(_pairs(schema, default_text))
    if field is not None:
        pairs.append(("field", quoted(field)))
    members = ",".join(f'"{name}":{text}' for name, text in pairs)
    return f"{{{members}}}"


def _pairs(schema: Schema, default_text: DefaultText) -> Iterator[tuple[str, str]]:
    yield "type", quoted(NAMES[schema.type])
    if schema.type is Type.ARRAY:
        yield "items", schema_text(schema.value_schema, default_text)
    elif schema.type is Type.MAP:
        yield "keys", schema_text(schema.key_schema, default_text)
        yield "values", schema_text(schema.value_schema, default_text)
    elif schema.type is Type.STRUCT:
        fields = (schema_text(one.schema, default_text, one.name) for one in schema.fields)
        yield "fields", f"[{','.join(fields)}]"
    yield "optional", "true" if schema.optional else "false"
    if schema.name is not None:
        yield "name", quoted(schema.name)
    if schema.version is not None:
        yield "version", str(schema.version)
    if schema.doc is not None:
        yield "doc", quoted(schema.doc)
    if schema.parameters:
        pairs = (f"{quoted(name)}:{quoted(value)}" for name, value in schema.parameters.items())
        yield "parameters", f"{{{','.join(pairs)}}}"
    if schema.default is not None:
        yield "default", default_text(schema, schema.default)


def schema_from(form: Any, default_value: DefaultValue) -> Schema | None:
    """Return the schema that parsed JSON describes; `default_value` reads a default's value."""
    if form is None:
        return None
    if not isinstance(form, dict) or not isinstance(form.get("type"), str):
        raise DataException("Schema must contain 'type' field")
    kind = TYPES.get(form["type"])
    if kind is None:
        raise DataException(f"Unknown schema type: {form['type']}")
    traits = {**_inner(kind, form, default_value), **_traits(form)}
    schema = Schema(kind, **traits)
    if "default" not in form:
        return schema
    return Schema(kind, default=default_value(schema, form["default"]), **traits)


def _inner(kind: Type, form: dict[str, Any], default_value: DefaultValue) -> dict[str, Any]:
    if kind is Type.ARRAY:
        if form.get("items") is None:
            raise DataException("Array schema did not specify the element type")
        return {"value_schema": schema_from(form["items"], default_value)}
    if kind is Type.MAP:
        if form.get("keys") is None:
            raise DataException("Map schema did not specify the key type")
        if form.get("values") is None:
            raise DataException("Map schema did not specify the value type")
        return {
            "key_schema": schema_from(form["keys"], default_value),
            "value_schema": schema_from(form["values"], default_value),
        }
    if kind is Type.STRUCT:
        if not isinstance(form.get("fields"), list):
            raise DataException('Struct schema\'s "fields" argument is not an array.')
        pairs = (_field(one, default_value) for one in form["fields"])
        return {"fields": Schema.struct(pairs).fields}
    return {}


def _field(form: Any, default_value: DefaultValue) -> tuple[str, Schema]:
    name = form.get("field") if isinstance(form, dict) else None
    schema = schema_from(form, default_value)
    if not isinstance(name, str) or schema is None:
        raise DataException("Struct schema's field name not specified properly")
    return name, schema


def _traits(form: dict[str, Any]) -> dict[str, Any]:
    name, version, doc = form.get("name"), form.get("version"), form.get("doc")
    parameters = form.get("parameters")
    parameters = parameters if isinstance(parameters, dict) else {}
    if not all(isinstance(value, str) for value in parameters.values()):
        raise DataException("Schema parameters must have string values.")
    if type(version) is int and not -INT32_END <= version < INT32_END:
        raise DataException(f"A schema's version must fit into 32 bits, but is {version}")
    return {
        "optional": form.get("optional") is True,
        "name": name if isinstance(name, str) else None,
        "version": version if type(version) is int else None,
        "doc": doc if isinstance(doc, str) else None,
        "parameters": parameters,
    }
