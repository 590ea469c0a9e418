"""Translate Connect schemas to Avro schemas and back, as Confluent's AvroData does.

    optional             a union with null                Decimal      bytes, decimal
    int8, int16          int, with connect.type           Date         int, date
    struct without name  ConnectDefault                   Time         int, time-millis
    map, other keys      an array of key and value        Timestamp    long, timestamp-millis
    enum                 string, with its symbols in the parameters
    other unions         a struct with one optional field for each branch

Details that Avro lacks (the name of a type other than a record, a version, parameters,
documentation) are stored in `connect.name` and so on, and are read back. A recursive Avro schema
raises DataException, because Connect has no recursive schemas.
"""

import dataclasses
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from millstream.connect import DataException, Schema, Struct
from millstream.connect.data.logical import from_logical, scale_of
from millstream.connect.data.schema import DATE, DECIMAL, SCALE, TIME, TIMESTAMP, Type
from millstream.connect.errors import SchemaBuilderException

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AvroForms:
    """How much detail the Avro schemas carry, by the settings of Confluent's converter."""

    is_enhanced: bool = False
    """Enums stay enums, and branches have full names (enhanced.avro.schema.support)."""
    has_meta_data: bool = True
    """Schemas carry Connect's own details (connect.meta.data)."""


PLAIN: Final = AvroForms()
NAMESPACE: Final = "io.confluent.connect.avro"
DEFAULT_NAME: Final = "ConnectDefault"
MAP_ENTRY: Final = "MapEntry"
UNION: Final = f"{NAMESPACE}.Union"
ENUM: Final = f"{NAMESPACE}.Enum"
_PRECISION: Final = "connect.decimal.precision"
_DEFAULT_PRECISION: Final = 64
_SIMPLE: Final[dict[Type, Any]] = {
    Type.INT8: {"type": "int", "connect.type": "int8"},
    Type.INT16: {"type": "int", "connect.type": "int16"},
    Type.INT32: "int",
    Type.INT64: "long",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "boolean",
    Type.STRING: "string",
    Type.BYTES: "bytes",
}
_LOGICAL: Final[dict[str, dict[str, Any]]] = {
    DATE: {"type": "int", "logicalType": "date"},
    TIME: {"type": "int", "logicalType": "time-millis"},
    TIMESTAMP: {"type": "long", "logicalType": "timestamp-millis"},
}
_PLAIN: Final = {
    "int": Schema.int32,
    "long": Schema.int64,
    "float": Schema.float32,
    "double": Schema.float64,
    "boolean": Schema.boolean,
    "string": Schema.string,
    "bytes": Schema.bytes,
}
_BY_LOGICAL_TYPE: Final = {
    ("int", "date"): Schema.date,
    ("int", "time-millis"): Schema.time,
    ("long", "timestamp-millis"): Schema.timestamp,
}
_NARROW: Final = {"int8": Schema.int8, "int16": Schema.int16}


# --- to Avro ---


def avro_of(schema: Schema, forms: AvroForms = PLAIN) -> Any:
    """Return the Avro schema of a Connect schema; raise DataException if there is none."""
    return _Writer(forms).optional(schema)


class _Writer:
    """Defines each named type once, at its first use; later uses refer to its name."""

    def __init__(self, forms: AvroForms) -> None:
        self._forms = forms
        self._named: dict[str, Schema] = {}
        self._unnamed = 0

    def optional(self, schema: Schema) -> Any:
        bare = self.bare(schema)
        if not schema.optional or schema.name == UNION:
            return bare
        # In Avro a default must match the first branch.
        return ["null", bare] if schema.default is None else [bare, "null"]

    def bare(self, schema: Schema) -> Any:
        if schema.name == UNION:
            branches = [self.bare(field.schema) for field in schema.fields]
            return ["null", *branches] if schema.optional else branches
        if schema.type is Type.STRUCT:
            return self._record(schema)
        return self._annotated(schema, self._of_type(schema))

    def _annotated(self, schema: Schema, avro: Any, *, is_named: bool = False) -> Any:
        return _annotated(schema, avro, is_named=is_named) if self._forms.has_meta_data else avro

    def _of_type(self, schema: Schema) -> Any:
        if schema.name == DECIMAL:
            return _decimal_of(schema)
        if schema.name in _LOGICAL:
            return dict(_LOGICAL[schema.name])
        if self._forms.is_enhanced and ENUM in schema.parameters:
            return self._enum(schema)
        if schema.type is Type.ARRAY:
            return {"type": "array", "items": self.optional(_inner(schema.value_schema))}
        if schema.type is Type.MAP:
            return self._map(schema)
        return self._simple(schema.type)

    def _simple(self, kind: Type) -> Any:
        found = _SIMPLE[kind]
        is_narrow = isinstance(found, dict)
        if is_narrow and not self._forms.has_meta_data:
            return found["type"]
        return dict(found) if is_narrow else found

    def _enum(self, schema: Schema) -> Any:
        name = schema.parameters[ENUM]
        if self._is_known(name, schema):
            return name
        symbols = [value for key, value in schema.parameters.items() if key.startswith(f"{ENUM}.")]
        return {"type": "enum", "name": name, "symbols": symbols}

    def _map(self, schema: Schema) -> Any:
        key, value = _inner(schema.key_schema), _inner(schema.value_schema)
        if key.type is Type.STRING and not key.optional and key.name is None:
            return {"type": "map", "values": self.optional(value)}
        entry = Schema.struct({"key": key, "value": value}, name=self._entry_name())
        return {"type": "array", "items": self._record(entry)}

    def _entry_name(self) -> str:
        name = f"{NAMESPACE}.{MAP_ENTRY}"
        while name in self._named:
            self._unnamed += 1
            name = f"{NAMESPACE}.{MAP_ENTRY}{self._unnamed + 1}"
        return name

    def _is_known(self, name: str, schema: Schema) -> bool:
        same = dataclasses.replace(schema, optional=False, default=None, doc=None)
        known = self._named.setdefault(name, same)
        if known is same:
            return False
        if known != same:
            raise DataException(f"Two schemas are called {name}")
        return True

    def _record(self, schema: Schema) -> Any:
        name = schema.name
        if name is None:
            self._unnamed += 1
            name = f"{NAMESPACE}.{DEFAULT_NAME}{self._unnamed if self._unnamed > 1 else ''}"
        if self._is_known(name, schema):
            return name
        told: dict[str, Any] = {"type": "record", "name": name}
        told["fields"] = [self._field(field.name, field.schema) for field in schema.fields]
        return self._annotated(schema, told, is_named=True)

    def _field(self, name: str, schema: Schema) -> dict[str, Any]:
        told: dict[str, Any] = {"name": name, "type": self.optional(schema)}
        if schema.doc is not None:
            told["doc"] = schema.doc
        if schema.default is not None:
            told["default"] = _default_json(schema, schema.default)
        elif schema.optional:
            told["default"] = None
        return told


def _decimal_of(schema: Schema) -> dict[str, Any]:
    precision = int(schema.parameters.get(_PRECISION, _DEFAULT_PRECISION))
    scale = scale_of(schema)
    if not 0 <= scale <= precision:
        raise DataException(f"Avro does not allow decimals of scale {scale}")
    told = {"type": "bytes", "logicalType": "decimal"}
    return {**told, "precision": precision, "scale": scale}


def _inner(schema: Schema | None) -> Schema:
    if schema is None:
        raise DataException("An array or a map has no schema for its entries, which Avro needs")
    return schema


def _annotated(schema: Schema, avro: Any, *, is_named: bool = False) -> Any:
    """Add the details that only Connect has."""
    told: dict[str, Any] = {}
    if schema.name is not None:
        told["connect.name"] = schema.name
    if schema.version is not None:
        told["connect.version"] = schema.version
    if schema.parameters:
        told["connect.parameters"] = dict(schema.parameters)
    if schema.doc is not None:
        told["connect.doc"] = schema.doc
    if schema.default is not None:
        told["connect.default"] = _default_json(schema, schema.default)
    if not told or (isinstance(avro, str) and "." in avro):
        return avro
    if is_named and schema.doc is not None:
        told["doc"] = schema.doc
    return {**({"type": avro} if isinstance(avro, str) else avro), **told}


def _default_json(schema: Schema, value: Any) -> Any:
    """Return a default as Avro's JSON, in which each byte is one character."""
    stored = from_logical(schema, value)
    match stored:
        case bytes() | bytearray() | memoryview():
            return bytes(stored).decode("latin-1")
        case Struct():
            return {
                field.name: None if one is None else _default_json(field.schema, one)
                for field, one in stored.items()
            }
        case list() | tuple():
            inner = _inner(schema.value_schema)
            return [None if one is None else _default_json(inner, one) for one in stored]
        case dict():
            inner = _inner(schema.value_schema)
            return {
                str(key): None if one is None else _default_json(inner, one)
                for key, one in stored.items()
            }
        case _:
            return stored


# --- from Avro ---


def connect_of(avro: Any, forms: AvroForms = PLAIN) -> Schema:
    """Return the Connect schema of an Avro schema; raise DataException."""
    try:
        return _Reader(forms).read(avro, "")
    except (KeyError, TypeError, SchemaBuilderException, RecursionError) as error:
        raise DataException(f"The Avro schema cannot be understood: {error!r}") from None


class _Reader:
    def __init__(self, forms: AvroForms) -> None:
        self._forms = forms
        self._named: dict[str, Schema | None] = {}

    def read(self, avro: Any, namespace: str) -> Schema:
        match avro:
            case list():
                return self._union(avro, namespace)
            case str() if avro in _PLAIN:
                return _PLAIN[avro]()
            case str():
                return self._known(avro, namespace)
            case {"type": list() | dict() as inner}:
                return self.read(inner, namespace)
            case dict():
                return self._annotated(avro, namespace)
            case _:
                raise DataException(f"This is not an Avro schema: {avro!r}")

    def _known(self, name: str, namespace: str) -> Schema:
        for full in (name, f"{namespace}.{name}"):
            if full in self._named:
                found = self._named[full]
                if found is None:
                    raise DataException(f"The Avro schema {full} is recursive: Connect allows none")
                return found
        raise DataException(f"The Avro schema refers to the unknown type {name}")

    def _union(self, branches: list[Any], namespace: str) -> Schema:
        others = [branch for branch in branches if branch != "null"]
        optional = len(others) < len(branches)
        if len(others) == 1:
            return dataclasses.replace(self.read(others[0], namespace), optional=optional)
        fields = {}
        for branch in others:
            schema = self.read(branch, namespace)
            fields[branch_name(branch, namespace, self._forms)] = dataclasses.replace(
                schema, optional=True
            )
        return Schema.struct(fields, name=UNION, optional=optional)

    def _annotated(self, avro: Mapping[str, Any], namespace: str) -> Schema:
        kind = avro["type"]
        if kind == "record":
            return self._record(avro, namespace)
        if kind == "enum":
            full = full_name(avro, namespace)
            symbols = {f"{ENUM}.{symbol}": symbol for symbol in avro["symbols"]}
            schema = Schema.string(parameters={ENUM: full, **symbols})
            self._named[full] = schema
            return schema
        if kind == "fixed":
            schema = _decimal(avro) or Schema.bytes()
            self._named[full_name(avro, namespace)] = schema
            return schema
        schema = self._of_kind(avro, namespace)
        if not self._forms.has_meta_data:
            return dataclasses.replace(
                schema, name=avro.get("connect.name", schema.name), default=None
            )
        parameters = {**schema.parameters, **avro.get("connect.parameters", {})}
        return dataclasses.replace(
            schema,
            name=avro.get("connect.name", schema.name),
            version=avro.get("connect.version", schema.version),
            doc=avro.get("connect.doc", schema.doc),
            parameters=parameters,
            default=None,
        )

    def _of_kind(self, avro: Mapping[str, Any], namespace: str) -> Schema:
        kind = avro["type"]
        if kind == "array":
            return self._array(avro["items"], namespace)
        if kind == "map":
            return Schema.map(Schema.string(), self.read(avro["values"], namespace))
        if kind not in _PLAIN:
            return self._known(kind, namespace)
        narrow = _NARROW.get(avro.get("connect.type", ""))
        if narrow is not None:
            return narrow()
        logical = _BY_LOGICAL_TYPE.get((kind, avro.get("logicalType", "")))
        if logical is not None:
            return logical()
        return (_decimal(avro) if kind == "bytes" else None) or _PLAIN[kind]()

    def _array(self, items: Any, namespace: str) -> Schema:
        schema = self.read(items, namespace)
        if is_map_entry(items):
            key, value = (field.schema for field in schema.fields)
            return Schema.map(key, value)
        return Schema.array(schema)

    def _record(self, avro: Mapping[str, Any], namespace: str) -> Schema:
        full = full_name(avro, namespace)
        inner = full.rpartition(".")[0]
        self._named[full] = None
        fields = {field["name"]: self._field(field, inner) for field in avro["fields"]}
        # A name that this converter generated carries no information.
        is_ours = full.startswith(f"{NAMESPACE}.{DEFAULT_NAME}")
        told = avro if self._forms.has_meta_data else {}
        schema = Schema.struct(
            fields,
            name=avro.get("connect.name", None if is_ours else full),
            version=avro.get("connect.version"),
            doc=told.get("connect.doc", told.get("doc")),
            parameters=told.get("connect.parameters", {}),
        )
        self._named[full] = schema
        return schema

    def _field(self, field: Mapping[str, Any], namespace: str) -> Schema:
        schema = self.read(field["type"], namespace)
        default = field.get("default")
        if default is not None and schema.name != UNION:
            schema = _with_default(schema, default, field["name"])
        doc = field.get("doc") if self._forms.has_meta_data else None
        return schema if doc is None else dataclasses.replace(schema, doc=doc)


def _with_default(schema: Schema, default: Any, name: str) -> Schema:
    """Return a field's schema with its default; drop an invalid default, as Confluent's does."""
    try:
        return dataclasses.replace(schema, default=default_of(schema, default))
    except (DataException, SchemaBuilderException, ValueError, TypeError, AttributeError) as error:
        log.warning("ignored an invalid default of an Avro field field=%s error=%s", name, error)
        return schema


def _decimal(avro: Mapping[str, Any]) -> Schema | None:
    if avro.get("logicalType") != "decimal":
        return None
    parameters = {SCALE: str(avro.get("scale", 0))}
    if avro["precision"] != _DEFAULT_PRECISION:
        parameters[_PRECISION] = str(avro["precision"])
    return Schema.decimal(avro.get("scale", 0), parameters=parameters)


def default_of(schema: Schema, value: Any) -> Any:
    """Return the default that Avro's JSON describes; raise DataException."""
    from millstream.connect.data.logical import to_logical

    if value is None:
        return None
    if schema.type is Type.BYTES:
        value = value.encode("latin-1")
    elif schema.type in (Type.FLOAT32, Type.FLOAT64):
        value = float(value)
    elif schema.type is Type.STRUCT:
        # A field that the JSON does not name has its own default.
        found = Struct(
            schema, {name: default_of(_of_field(schema, name), one) for name, one in value.items()}
        )
        found.validate()
        return found
    elif schema.type is Type.ARRAY:
        return [default_of(_inner(schema.value_schema), one) for one in value]
    elif schema.type is Type.MAP and isinstance(value, dict):
        return {key: default_of(_inner(schema.value_schema), one) for key, one in value.items()}
    return to_logical(schema, value)


def _of_field(schema: Schema, name: str) -> Schema:
    field = schema.field(name)
    if field is None:
        raise DataException(f"The default names the field {name}, which the record lacks")
    return field.schema


def full_name(avro: Mapping[str, Any], namespace: str) -> str:
    """Return the full name of a record, an enum or a fixed."""
    name: str = avro["name"]
    if "." in name:
        return name
    namespace = avro.get("namespace", namespace)
    return f"{namespace}.{name}" if namespace else name


def branch_name(branch: Any, namespace: str = "", forms: AvroForms = PLAIN) -> str:
    """Return the name of the struct's field for a branch of a union."""
    if isinstance(branch, dict):
        if forms.is_enhanced and "name" in branch:
            return full_name(branch, namespace)
        branch = branch.get("name", branch["type"])
    elif forms.is_enhanced and branch not in _PLAIN:
        return str(branch) if "." in branch or not namespace else f"{namespace}.{branch}"
    return str(branch).rpartition(".")[2]


def is_map_entry(items: Any) -> bool:
    """Return whether an array of such records is a map with keys other than strings."""
    return (
        isinstance(items, dict)
        and items.get("type") == "record"
        and str(items["name"]).rpartition(".")[2].startswith(MAP_ENTRY)
        and [field["name"] for field in items["fields"]] == ["key", "value"]
    )
