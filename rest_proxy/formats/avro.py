"""Avro: JSON in Avro's own JSON encoding, or with a union's value as it is.

Avro 1.12, "JSON Encoding": a union's value other than null is an object with one member, the name
of its branch: {"string": "a"}. Many callers leave the name out, so a value without its branch's
name is accepted too: it is written by the first branch that it fits. Bytes are texts whose
characters are the bytes; a logical type has the JSON of its underlying type. A field that is left
out has its default. Values that are read have the names of the branches, as in the answers of
Confluent's proxy.
"""

import json
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any, Final

from fastavro import parse_schema, schemaless_writer

from common.registry.avro_reading import avro_reader
from rest_proxy.formats import FormatError
from rest_proxy.formats.avro_values import (
    PRIMITIVES,
    enum_symbol,
    fixed_bytes,
    is_of,
    json_of,
    of_type,
)
from rest_proxy.formats.plain import shown

Schema = Any
_NAMED: Final = ("record", "error", "enum", "fixed")
_FREE_STEPS: Final = 20_000
_STEPS_PER_VALUE: Final = 20
"""A union tries its branches, and a record its defaults: a schema can make both exponential."""


class _TooManyStepsError(Exception):
    """No FormatError: a union would try its next branch."""


class AvroCodec:
    """Owns one schema, parsed once; `references` are the texts of those it names, in order."""

    def __init__(self, text: str, references: Sequence[str] = ()) -> None:
        named: dict[str, Any] = {}
        try:
            for reference in references:
                parse_schema(_stored(json.loads(reference)), named)
            whole = _with_definitions(_stored(json.loads(text)), dict(named), "")
            self._schema = parse_schema(whole)
            self._read = avro_reader(self._schema, return_named_type=True)
        # fastavro raises many kinds of errors for invalid schemas.
        except Exception as error:  # noqa: BLE001
            raise FormatError(f"no Avro schema: {_reason(error)}") from None
        self._steps = self._most_steps = 0
        self._types: dict[str, Any] = {}
        _collect([self._schema], self._types)
        self._nested = {
            "record": self._record,
            "error": self._record,
            "array": self._array,
            "map": self._map,
            "enum": enum_symbol,
            "fixed": fixed_bytes,
        }
        self._nested_json = {
            "record": self._json_of_record,
            "error": self._json_of_record,
            "array": self._json_of_array,
            "map": self._json_of_map,
        }

    @property
    def record_name(self) -> str | None:
        return self._schema.get("name") if isinstance(self._schema, dict) else None

    @property
    def schema(self) -> Any:
        return self._schema

    def encode(self, data: Any) -> bytes:
        out = BytesIO()
        self._steps, self._most_steps = 0, _FREE_STEPS + _STEPS_PER_VALUE * _values_of(data)
        try:
            schemaless_writer(out, self._schema, self._value(self._schema, data, "value"))
        except FormatError:
            raise
        except RecursionError:
            raise FormatError("the value is nested too deeply") from None
        except _TooManyStepsError as error:
            raise FormatError(str(error)) from None
        # As above, on values.
        except Exception as error:  # noqa: BLE001
            raise FormatError(_reason(error)) from None
        return out.getvalue()

    encode_slowly = encode

    def decode(self, body: bytes) -> Any:
        try:
            return self._json(self._schema, self._read(body))
        except FormatError:
            raise
        # As above, on bytes.
        except Exception as error:  # noqa: BLE001
            raise FormatError(f"the bytes are not of their schema: {_reason(error)}") from None

    # --- JSON to values ---

    def _value(self, schema: Schema, data: Any, where: str) -> Any:
        self._steps += 1
        if self._steps > self._most_steps:
            raise _TooManyStepsError("the value takes too many steps: its unions, or its defaults")
        if isinstance(schema, list):
            return self._of_union(schema, data, where)
        kind = self._kind(schema)
        nested = self._nested.get(kind)
        if nested is not None:
            return nested(self._resolved(schema), data, where)
        return PRIMITIVES[kind](data, where)

    def _array(self, schema: Mapping[str, Any], data: Any, where: str) -> list[Any]:
        items = of_type(list, data, "an array", where)
        kind = schema["items"]
        return [self._value(kind, each, f"{where}[{index}]") for index, each in enumerate(items)]

    def _map(self, schema: Mapping[str, Any], data: Any, where: str) -> dict[str, Any]:
        members = of_type(dict, data, "a map", where)
        kind = schema["values"]
        return {name: self._value(kind, each, f"{where}.{name}") for name, each in members.items()}

    def _record(self, schema: Mapping[str, Any], data: Any, where: str) -> dict[str, Any]:
        members = of_type(dict, data, f"a record {schema['name']}", where)
        unknown = members.keys() - {field["name"] for field in schema["fields"]}
        if unknown:
            raise FormatError(f"{where}: {schema['name']} has no field {min(unknown)!r}")
        values = {}
        for field in schema["fields"]:
            name = field["name"]
            place = f"{where}.{name}"
            if name in members:
                values[name] = self._value(field["type"], members[name], place)
            elif "default" in field:
                values[name] = self._default(field, place)
            else:
                raise FormatError(f"{place} is missing and has no default")
        return values

    def _default(self, field: Mapping[str, Any], where: str) -> Any:
        """Return a field's default, which a union's first branch has."""
        kind, default = field["type"], field["default"]
        if isinstance(kind, list):
            for branch in kind:
                try:
                    return self._branch(branch, default, where)
                except FormatError:
                    continue
        return self._value(kind, default, where)

    def _of_union(self, branches: list[Schema], data: Any, where: str) -> Any:
        if data is None:
            if "null" not in [self._kind(branch) for branch in branches]:
                raise FormatError(f"{where} may not be null")
            return None
        tagged = self._tagged(branches, data)
        reasons = []
        if tagged is not None:
            try:
                return self._branch(tagged, next(iter(data.values())), where)
            except FormatError as error:
                reasons.append(str(error))
        for branch in branches:
            try:
                return self._branch(branch, data, where)
            except FormatError as error:
                reasons.append(str(error))
        names = ", ".join(self._name(branch) for branch in branches)
        detail = reasons[0] if tagged is not None else f"{where}: {shown(data)} fits none"
        raise FormatError(f"{detail}; the union is of {names}")

    def _branch(self, branch: Schema, data: Any, where: str) -> Any:
        value = self._value(branch, data, where)
        return value if value is None else (self._name(branch), value)

    def _tagged(self, branches: list[Schema], data: Any) -> Schema | None:
        """Return the branch that data names, None when it names none."""
        if not isinstance(data, dict) or len(data) != 1:
            return None
        tag = next(iter(data))
        for branch in branches:
            name = self._name(branch)
            if tag == name or tag == name.rpartition(".")[2]:
                return branch
        return None

    # --- values to JSON ---

    def _json(self, schema: Schema, value: Any) -> Any:
        if isinstance(schema, list):
            return self._json_of_union(schema, value)
        kind = self._kind(schema)
        nested = self._nested_json.get(kind)
        return json_of(kind, value) if nested is None else nested(self._resolved(schema), value)

    def _json_of_record(self, schema: Mapping[str, Any], value: Any) -> dict[str, Any]:
        return {
            each["name"]: self._json(each["type"], value[each["name"]]) for each in schema["fields"]
        }

    def _json_of_array(self, schema: Mapping[str, Any], value: Any) -> list[Any]:
        return [self._json(schema["items"], each) for each in value]

    def _json_of_map(self, schema: Mapping[str, Any], value: Any) -> dict[str, Any]:
        return {name: self._json(schema["values"], each) for name, each in value.items()}

    def _json_of_union(self, branches: list[Schema], value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, tuple):
            name, inner = value
            branch = next(each for each in branches if self._name(each) == name)
            return {name: self._json(branch, inner)}
        for branch in branches:
            if is_of(self._kind(branch), value):
                return {self._name(branch): self._json(branch, value)}
        raise FormatError(f"a union has no branch for {type(value).__name__}")

    # --- schemas ---

    def _kind(self, schema: Schema) -> str:
        found = self._resolved(schema)
        kind = found if isinstance(found, str) else found["type"]
        return kind if isinstance(kind, str) else self._kind(kind)

    def _resolved(self, schema: Schema) -> Any:
        return self._types.get(schema, schema) if isinstance(schema, str) else schema

    def _name(self, schema: Schema) -> str:
        found = self._resolved(schema)
        if isinstance(found, str):
            return found
        return str(found["name"] if found["type"] in _NAMED else found["type"])


def _values_of(data: Any) -> int:
    """Return how many values there are in JSON."""
    count, waiting = 0, [data]
    while waiting:
        found = waiting.pop()
        count += 1
        if isinstance(found, dict):
            waiting += found.values()
        elif isinstance(found, list):
            waiting += found
    return count


def _stored(schema: Schema) -> Schema:
    """Return a schema without its logical types: JSON has their underlying types."""
    match schema:
        case list():
            return [_stored(each) for each in schema]
        case dict():
            return {
                key: each if key == "default" else _stored(each)
                for key, each in schema.items()
                if key != "logicalType"
            }
        case _:
            return schema


def _with_definitions(schema: Schema, missing: dict[str, Any], namespace: str) -> Schema:
    """Return a schema in which each type of `missing` is defined where it is named first."""
    match schema:
        case str():
            full = schema if "." in schema or not namespace else f"{namespace}.{schema}"
            definition = missing.pop(full, None) or missing.pop(schema, None)
            return schema if definition is None else _with_definitions(definition, missing, "")
        case list():
            return [_with_definitions(each, missing, namespace) for each in schema]
        case dict():
            own = str(schema.get("name", "")).rpartition(".")[0] or schema.get("namespace")
            inner = namespace if own is None else str(own)
            found = {key: each for key, each in schema.items() if not key.startswith("__")}
            for key in ("items", "values"):
                if key in found:
                    found[key] = _with_definitions(found[key], missing, inner)
            if isinstance(found.get("type"), dict | list):
                found["type"] = _with_definitions(found["type"], missing, inner)
            if isinstance(found.get("fields"), list):
                found["fields"] = [
                    {**each, "type": _with_definitions(each["type"], missing, inner)}
                    for each in found["fields"]
                ]
            return found
        case _:
            return schema


def _collect(schemas: Sequence[Schema], types: dict[str, Any]) -> None:
    """Find every named type in schemas that are parsed: there, names are full."""
    for schema in schemas:
        if isinstance(schema, list):
            _collect(schema, types)
        elif isinstance(schema, dict):
            if schema.get("type") in _NAMED:
                types[schema["name"]] = schema
            inner = [schema.get("items"), schema.get("values"), schema.get("type")]
            _collect([*inner, *(field["type"] for field in schema.get("fields", ()))], types)


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:300]
