"""Schemas and structs: what a value has to look like, and a value that looks so.

    ORDER = Schema.struct(
        {"id": Schema.int64(), "note": Schema.string(optional=True)}, name="shop.Order"
    )
    order = Struct(ORDER, {"id": 7})

A `Schema` is immutable; `dataclasses.replace(schema, optional=True)` makes another. Two are equal
when everything about them is, documentation too, as in Kafka Connect.

Invariants: a default is valid for its schema; a struct's field is None or valid for its schema
from the moment it is put.
"""

import dataclasses
import datetime
import decimal
import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypedDict, Unpack

from millstream.connect.errors import DataException, SchemaBuilderException

DECIMAL = "org.apache.kafka.connect.data.Decimal"
DATE = "org.apache.kafka.connect.data.Date"
TIME = "org.apache.kafka.connect.data.Time"
TIMESTAMP = "org.apache.kafka.connect.data.Timestamp"
SCALE = "scale"
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Type(enum.Enum):
    """The types of values; a logical type is one of these with a name."""

    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    BOOLEAN = "boolean"
    STRING = "string"
    BYTES = "bytes"
    ARRAY = "array"
    MAP = "map"
    STRUCT = "struct"

    @property
    def is_primitive(self) -> bool:
        """Whether values of this type hold no other values."""
        return self not in {Type.ARRAY, Type.MAP, Type.STRUCT}

    def __str__(self) -> str:
        return self.name

    # Members are singletons: comparing identities is what enum does, and hashing them is cheaper.
    __hash__ = object.__hash__


class Traits(TypedDict, total=False):
    """What a schema of any type can have."""

    optional: bool
    default: Any
    name: str | None
    version: int | None
    doc: str | None
    parameters: Mapping[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct."""

    name: str
    index: int
    schema: "Schema"


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """The type of a value, whether it may be missing, and what it means."""

    type: Type
    optional: bool = False
    default: Any = None
    name: str | None = None
    version: int | None = None
    doc: str | None = None
    parameters: Mapping[str, str] = dataclasses.field(default_factory=dict)
    fields: tuple[Field, ...] = ()
    key_schema: "Schema | None" = None  # of a map
    value_schema: "Schema | None" = None  # of a map or an array; None when nothing is known
    _by_name: dict[str, Field] = dataclasses.field(init=False, repr=False, default_factory=dict)
    _hash: int | None = dataclasses.field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        if self.type is Type.STRUCT:
            self._by_name.update((one.name, one) for one in self.fields)
        if self.default is not None:
            try:
                self.validate(self.default)
            except DataException as error:
                raise SchemaBuilderException("Invalid default value") from error

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Schema):
            return NotImplemented
        return (
            self.type is other.type
            and self.optional == other.optional
            and self.name == other.name
            and self.version == other.version
            and self.fields == other.fields
            and self.default == other.default
            and self.key_schema == other.key_schema
            and self.value_schema == other.value_schema
            and self.doc == other.doc
            and self.parameters == other.parameters
        )

    def __hash__(self) -> int:
        if self._hash is None:
            of = (self.type, self.optional, self.name, self.version, self.fields)
            object.__setattr__(self, "_hash", hash((*of, self.key_schema, self.value_schema)))
        assert self._hash is not None
        return self._hash

    def __str__(self) -> str:
        return f"Schema{{{self.type if self.name is None else f'{self.name}:{self.type}'}}}"

    def field(self, name: str) -> Field | None:
        """Return the field of a struct by its name, None when there is none."""
        if self.type is not Type.STRUCT:
            raise DataException("Cannot look up fields on non-struct type")
        return self._by_name.get(name)

    def validate(self, value: object, location: str = "value") -> None:
        """Raise DataException when a value is not one of this schema; `location` is told in it."""
        if value is None:
            if not self.optional:
                raise DataException(
                    f"Invalid value: null used for required {location}, schema type: {self.type}"
                )
            return
        is_valid = _IS_LOGICAL.get(self.name) if self.name is not None else None
        if not (is_valid or _IS_OF_TYPE[self.type])(value):
            named = "" if self.name is None else f' "{self.name}"'
            raise DataException(
                f"Invalid Python object for schema{named} with type {self.type}: "
                f"{_description(value)} for {location}"
            )
        if self.type is Type.STRUCT:
            _validate_struct(self, value)
        elif self.type is Type.ARRAY:
            _validate_array(self, value, location)
        elif self.type is Type.MAP:
            _validate_map(self, value, location)

    @classmethod
    def int8(cls, **traits: Unpack[Traits]) -> "Schema":
        """Make a schema of whole numbers of 8 bits."""
        return cls(Type.INT8, **traits)

    @classmethod
    def int16(cls, **traits: Unpack[Traits]) -> "Schema":
        """Make a schema of whole numbers of 16 bits."""
        return cls(Type.INT16, **traits)

    @classmethod
    def int32(cls, **traits: Unpack[Traits]) -> "Schema":
        """Make a schema of whole numbers of 32 bits."""
        return cls(Type.INT32, **traits)

    @classmethod
    def int64(cls, **traits: Unpack[Traits]) -> "Schema":
        """Make a schema of whole numbers of 64 bits."""
        return cls(Type.INT64, **traits)

    @classmethod
    def float32(cls, **traits: Unpack[Traits]) -> "Schema":
        """Make a schema of floating-point numbers that are kept in 32 bits."""
        return cls(Type.FLOAT32, **traits)

    @classmethod
    def float64(cls, **traits: Unpack[Traits]) -> "Schema":
        """Make a schema of floating-point numbers."""
        return cls(Type.FLOAT64, **traits)

    @classmethod
    def boolean(cls, **traits: Unpack[Traits]) -> "Schema":
        """Make a schema of true and false."""
        return cls(Type.BOOLEAN, **traits)

    @classmethod
    def string(cls, **traits: Unpack[Traits]) -> "Schema":
        """Make a schema of texts."""
        return cls(Type.STRING, **traits)

    @classmethod
    def bytes(cls, **traits: Unpack[Traits]) -> "Schema":
        """Make a schema of byte strings."""
        return cls(Type.BYTES, **traits)

    @classmethod
    def array(cls, value_schema: "Schema", **traits: Unpack[Traits]) -> "Schema":
        """Make a schema of lists, all of whose entries have one schema."""
        return cls(Type.ARRAY, value_schema=value_schema, **traits)

    @classmethod
    def map(
        cls, key_schema: "Schema", value_schema: "Schema", **traits: Unpack[Traits]
    ) -> "Schema":
        """Make a schema of dicts."""
        return cls(Type.MAP, key_schema=key_schema, value_schema=value_schema, **traits)

    @classmethod
    def struct(
        cls,
        fields: "Mapping[str, Schema] | Iterable[tuple[str, Schema]]",
        **traits: Unpack[Traits],
    ) -> "Schema":
        """Make a schema of structs with these fields, in this order."""
        pairs = fields.items() if isinstance(fields, Mapping) else fields
        return cls(Type.STRUCT, fields=_fields(pairs), **traits)

    @classmethod
    def decimal(cls, scale: int, **traits: Unpack[Traits]) -> "Schema":
        """Make a schema of exact decimal numbers with so many digits after the point."""
        traits["parameters"] = {SCALE: str(scale), **traits.get("parameters", {})}
        return cls(Type.BYTES, **_logical(DECIMAL, traits))

    @classmethod
    def date(cls, **traits: Unpack[Traits]) -> "Schema":
        """Make a schema of calendar days."""
        return cls(Type.INT32, **_logical(DATE, traits))

    @classmethod
    def time(cls, **traits: Unpack[Traits]) -> "Schema":
        """Make a schema of times of a day, to the millisecond."""
        return cls(Type.INT32, **_logical(TIME, traits))

    @classmethod
    def timestamp(cls, **traits: Unpack[Traits]) -> "Schema":
        """Make a schema of points in time, to the millisecond."""
        return cls(Type.INT64, **_logical(TIMESTAMP, traits))


class SchemaAndValue(NamedTuple):
    """A value with its schema; no schema is a value of which nothing is promised."""

    schema: Schema | None
    value: Any


NULL = SchemaAndValue(None, None)


class Struct:
    """A value of a struct's schema.

    `struct["name"]` gives the field's default when nothing was put, as Kafka Connect's `get` does.
    """

    __slots__ = ("_values", "schema")

    def __init__(self, schema: Schema, values: Mapping[str, object] = _NOTHING) -> None:
        if schema.type is not Type.STRUCT:
            raise DataException(f"Not a struct schema: {schema}")
        self.schema = schema
        self._values: list[Any] = [None] * len(schema.fields)
        for name, value in values.items():
            self[name] = value

    def __getitem__(self, name: str) -> Any:
        field = self._field(name)
        value = self._values[field.index]
        return field.schema.default if value is None else value

    def __setitem__(self, name: str, value: object) -> None:
        field = self._field(name)
        field.schema.validate(value, f'field: "{name}"')
        self._values[field.index] = value

    def put(self, name: str, value: object) -> "Struct":
        """Set a field and give this struct, so that calls can follow one another."""
        self[name] = value
        return self

    def without_default(self, name: str) -> Any:
        """Return what was put into a field, None when nothing was."""
        return self._values[self._field(name).index]

    @classmethod
    def of_valid(cls, schema: Schema, values: list[Any]) -> "Struct":
        """Make a struct of values, in the fields' order, that are known to be valid."""
        made = cls(schema)
        made._values = values
        return made

    def put_values(self) -> Sequence[Any]:
        """Return what was put into each field, in order: None where nothing was."""
        return self._values

    def items(self) -> Iterator[tuple[Field, Any]]:
        """Give each field with its value, or its default."""
        for one, value in zip(self.schema.fields, self._values, strict=True):
            yield one, one.schema.default if value is None else value

    def validate(self) -> None:
        """Raise DataException when a required field without a default was not put."""
        for field, value in zip(self.schema.fields, self._values, strict=True):
            schema = field.schema
            if value is not None or (not schema.optional and schema.default is None):
                schema.validate(value, f'field: "{field.name}"')

    def _field(self, name: str) -> Field:
        found = self.schema.field(name)
        if found is None:
            raise DataException(f"{name} is not a valid field name")
        return found

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Struct):
            return NotImplemented
        return self.schema == other.schema and self._values == other._values

    def __hash__(self) -> int:
        # Values may change and may be lists: what stays the same is the schema.
        return hash(self.schema)

    def __repr__(self) -> str:
        pairs = zip(self.schema.fields, self._values, strict=True)
        put = (f"{one.name}={value}" for one, value in pairs if value is not None)
        return f"Struct{{{','.join(put)}}}"


def _fields(pairs: Iterable[tuple[str, Schema]]) -> tuple[Field, ...]:
    fields: dict[str, Field] = {}
    for name, schema in pairs:
        if not name:
            raise SchemaBuilderException("fieldName cannot be null.")
        if name in fields:
            raise SchemaBuilderException(
                f"Cannot create field because of field name duplication {name}"
            )
        fields[name] = Field(name, len(fields), schema)
    return tuple(fields.values())


def _logical(name: str, traits: Traits) -> Traits:
    return {"name": name, "version": 1, **traits}


def _within(bits: int) -> Callable[[object], bool]:
    end = 1 << (bits - 1)

    def is_valid(value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and -end <= value < end

    return is_valid


def _one_of(*classes: type) -> Callable[[object], bool]:
    return lambda value: isinstance(value, classes)


_IS_OF_TYPE: dict[Type, Callable[[object], bool]] = {
    Type.INT8: _within(8),
    Type.INT16: _within(16),
    Type.INT32: _within(32),
    Type.INT64: _within(64),
    Type.FLOAT32: _one_of(float),
    Type.FLOAT64: _one_of(float),
    Type.BOOLEAN: _one_of(bool),
    Type.STRING: _one_of(str),
    Type.BYTES: _one_of(bytes, bytearray, memoryview),
    Type.ARRAY: _one_of(list, tuple),
    Type.MAP: _one_of(dict),
    Type.STRUCT: _one_of(Struct),
}
_IS_LOGICAL: dict[str, Callable[[object], bool]] = {
    DECIMAL: lambda value: isinstance(value, decimal.Decimal) and value.is_finite(),
    DATE: lambda value: (
        isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)
    ),
    TIME: lambda value: isinstance(value, datetime.time) and value.tzinfo is None,
    TIMESTAMP: lambda value: isinstance(value, datetime.datetime) and value.tzinfo is not None,
}


def _description(value: object) -> str:
    kind = type(value).__name__
    match value:
        case bool():
            return kind
        case int():
            return f"{kind} of {value.bit_length()} bits"
        case datetime.datetime() if value.tzinfo is None:
            return f"{kind} without a time zone"
        case datetime.time() if value.tzinfo is not None:
            return f"{kind} with a time zone"
        case _:
            return kind


def _validate_struct(schema: Schema, value: Any) -> None:
    # A default is of the schema as it was before it had the default.
    is_of_it = value.schema == schema or (
        schema.default is not None and value.schema == dataclasses.replace(schema, default=None)
    )
    if not is_of_it:
        raise DataException("Struct schemas do not match.")
    value.validate()


def _validate_array(schema: Schema, value: Any, location: str) -> None:
    entry = f"element of array {location}"
    if schema.value_schema is None:
        raise DataException(f"No schema defined for {entry}")
    for one in value:
        schema.value_schema.validate(one, entry)


def _validate_map(schema: Schema, value: Any, location: str) -> None:
    of_key, of_value = f"key of map {location}", f"value of map {location}"
    if schema.key_schema is None:
        raise DataException(f"No schema defined for {of_key}")
    if schema.value_schema is None:
        raise DataException(f"No schema defined for {of_value}")
    for key, one in value.items():
        schema.key_schema.validate(key, of_key)
        schema.value_schema.validate(one, of_value)
