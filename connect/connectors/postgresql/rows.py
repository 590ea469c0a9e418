"""Translate a table's columns to schemas of keys and values, and its rows to structs.

No code here does IO.

The DEFAULT of a column is the default of its schema, as in Debezium: a constant, also of a nullable
column, and for the call of a function the zero of its type; a column of a domain has none. Other
expressions have no default; Debezium has the first text in them. Source: Debezium's documentation
of the PostgreSQL connector, "Default values", and
tests/interop/connect/test_postgresql_beside_debezium.py.
"""

import dataclasses
import decimal
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from connect.connectors.postgresql.masks import Mask, Masks
from connect.connectors.postgresql.names import Adjust, field_adjustment, schema_adjustment
from connect.connectors.postgresql.pgoutput import Column, Unchanged, Value, Values
from connect.connectors.postgresql.selection import Selection
from connect.connectors.postgresql.types import Codec, Constraint, Type, Types
from connect.connectors.postgresql.values import (
    CHARACTERS,
    Modes,
    codec_of,
    placeholder_of,
    scale_of,
)
from millstream.connect import DataException, Schema, Struct

_CONSTANT: Final = re.compile(
    r"\(*(?:(?P<bare>-?[\d.]+(?:e[+-]?\d+)?|true|false)|B?'(?P<text>(?:[^']|'')*)')\)*"
    r"(?:::[\w .\"\[\](),]+)?",
    re.IGNORECASE,
)
_CALL: Final = re.compile(
    r"\(?[\w.]+\(.*\)(?:::[\w .\"\[\](),]+)?|current_(?:timestamp|time|date)|localtime(?:stamp)?",
    re.IGNORECASE,
)
_HAVING: Final = frozenset(
    {
        *("bool", "int2", "int4", "int8", "float4", "float8", "numeric", "bit", "varbit"),
        *("date", "time", "timestamp", "timestamptz", "interval"),
        *("text", "varchar", "bpchar", "json", "jsonb", "xml", "uuid"),
    }
)
"""The types whose defaults Debezium gives, besides enums."""
_ZEROS: Final = {
    **dict.fromkeys(("int2", "int4", "int8", "oid", "float4", "float8", "numeric", "money"), "0"),
    "bool": "f",
    "bytea": "\\x",
    "date": "1970-01-01",
    "time": "00:00:00",
    "timetz": "00:00:00+00",
    "timestamp": "1970-01-01 00:00:00",
    "timestamptz": "1970-01-01 00:00:00+00",
    "interval": "00:00:00",
    "json": "{}",
    "jsonb": "{}",
    "point": "(0,0)",
    "uuid": "00000000-0000-0000-0000-000000000000",
}


def with_default(codec: Codec, kind: Type, expression: str | None) -> Codec:
    """Return the codec with the default of its column, if its expression and its type have one."""
    if not codec.schema.type.is_primitive:
        return codec
    try:
        text = _text_of(kind, expression or "")
        if text is None:
            return codec
        schema = dataclasses.replace(codec.schema, default=codec.parse(text))
    except (ValueError, OverflowError, decimal.DecimalException):
        return codec
    return dataclasses.replace(codec, schema=schema)


def _text_of(kind: Type, expression: str) -> str | None:
    """Return the default as a text of the type; None if there is none."""
    if not (kind.labels or kind.name in _HAVING):
        return None
    match = _CONSTANT.fullmatch(expression)
    if match is not None:
        text = match["bare"] or (match["text"] or "").replace("''", "'")
        has_scale = kind.name == "numeric" and kind.modifier >= 4 and scale_of(kind) > 0
        return f"{decimal.Decimal(text):.{scale_of(kind)}f}" if has_scale else text
    is_call = not kind.labels and _CALL.fullmatch(expression) is not None
    return zero_text(kind) if is_call else None


def zero_text(kind: Type) -> str:
    """Return the text of the value that stands for one that is not known."""
    if kind.element is not None:
        return "{}"
    if kind.name in ("bit", "varbit"):
        return "0" * max(kind.modifier, 0)
    return _ZEROS.get(kind.name, "")


_SHOWN: Final = 80


class Shaping(NamedTuple):
    """The settings that decide the form of rows."""

    modes: Modes
    selection: Selection
    masks: Masks
    schema_names: Adjust = schema_adjustment("none")
    field_names: Adjust = field_adjustment("none")


class Described(NamedTuple):
    """A table, described by the log and the catalog."""

    tables: Sequence[str]
    """`schema.table` of the table itself and of the tables of which it is a partition."""
    topic: str
    columns: Sequence[Column]
    key: Sequence[str]
    constraints: Mapping[str, Constraint]


class _Field(NamedTuple):
    column: Column
    kind: Type
    codec: Codec
    masks: list[Mask]
    is_required: bool
    """Whether the column is NOT NULL, or part of the key."""

    @property
    def length(self) -> int:
        """The length of the column in characters; 0: no limit."""
        return max(0, self.kind.modifier - 4)


class RowReader:
    """Reads the rows of one table.

    A column of the key may be excluded from the values. As in Debezium, columns that are NOT NULL
    are required. If the log has only the replica identity of a row, its other required columns have
    their default or a zero. Converters write the default in place of a null, so a nullable column
    has its default only until its first null.
    """

    def __init__(self, described: Described, types: Types, shaping: Shaping) -> None:
        tables, topic, columns, key, constraints = described
        self._table = tables[0]
        self._shaping = shaping
        self._prefix = shaping.schema_names(topic)
        chosen = shaping.selection.key_columns(tables, [column.name for column in columns])
        self._fields = [
            _field(
                tables,
                column,
                types.of(column.type_id, column.modifier),
                shaping,
                constraints.get(column.name, Constraint()),
                is_key=column.name in key,
            )
            for column in columns
        ]
        self._shown = [
            place
            for place, column in enumerate(columns)
            if shaping.selection.has_column(tables, column.name)
        ]
        places = {column.name: place for place, column in enumerate(columns)}
        self._key = [places[one] for one in chosen or key]
        self._describe()

    def _describe(self) -> None:
        """Make the schemas of values and keys."""
        fields = self._schemas(self._shown)
        self.schema = Schema.struct(fields, name=f"{self._prefix}.Value", optional=True)
        self.key_schema: Schema | None = None
        if self._key:
            self.key_schema = Schema.struct(self._schemas(self._key), name=f"{self._prefix}.Key")

    def _schemas(self, places: Sequence[int]) -> dict[str, Schema]:
        found: dict[str, Schema] = {}
        for place in places:
            field = self._fields[place]
            name = self._shaping.field_names(field.column.name)
            if name in found:
                raise DataException(f"Table {self._table}: two columns become the field {name}")
            found[name] = field.codec.schema
        return found

    def read(
        self, values: Values, before: Values | None = None, *, is_identity: bool = False
    ) -> list[Any]:
        """Return a row's values; a value that the log lacks comes from `before` or a placeholder.

        `is_identity` says that the row has only its replica identity. Otherwise a row may be older
        than a constraint of its table: a null in a column that is required, or that has a default,
        makes the column optional in `schema`, without a default. Raise DataException that names
        table, column, value and remedy.
        """
        if len(values) != len(self._fields):
            raise DataException(
                f"Table {self._table}: {len(values)} values for {len(self._fields)} columns"
            )
        made: list[Any] = []
        for place, value in enumerate(values):
            field = self._fields[place]
            if isinstance(value, Unchanged):
                known = None if before is None else before[place]
                value = value if known is None else known
            if value is None and field.is_required and is_identity:
                made.append(_lacking(field))
                continue
            read = self._read_one(field, value)
            if (not is_identity and _lacks(field, value)) or _lacks_item(field, read):
                self._fields[place] = _loosened(field, self._shaping.modes)
                self._describe()
            made.append(read)
        return made

    def row(self, values: Sequence[Any]) -> Struct:
        return Struct.of_valid(self.schema, [values[place] for place in self._shown])

    def key(self, values: Sequence[Any]) -> Struct | None:
        """Return the key of a row; None if the table has no key."""
        if self.key_schema is None:
            return None
        return Struct.of_valid(self.key_schema, [values[place] for place in self._key])

    def has_key(self, is_known: Callable[[Column], bool]) -> bool:
        """Return whether `is_known` holds for every column of the key."""
        return all(is_known(self._fields[place].column) for place in self._key)

    def _read_one(self, field: _Field, value: Value) -> Any:
        try:
            if value is None:
                made = None
            elif isinstance(value, Unchanged):
                is_uuid = field.kind.name == "uuid"
                made = placeholder_of(field.codec, self._shaping.modes, is_uuid=is_uuid)
            else:
                made = field.codec.parse(value)
        except (ValueError, OverflowError, decimal.DecimalException) as error:
            shown = value if value is None or isinstance(value, str) else "(unchanged)"
            raise DataException(
                f"Table {self._table}, column {field.column.name}, value {str(shown)[:_SHOWN]!r}: "
                f"{error}"
            ) from None
        for mask in field.masks:
            made = mask(made, field.length)
        return made


def _field(
    tables: Sequence[str],
    column: Column,
    kind: Type,
    shaping: Shaping,
    constraint: Constraint,
    *,
    is_key: bool,
) -> _Field:
    is_required = is_key or constraint.is_required
    codec = codec_of(kind, shaping.modes, optional=not is_required)
    codec = with_default(codec, kind, constraint.default)
    names = [f"{table}.{column.name}" for table in tables]
    masks = shaping.masks.of(*names) if kind.name in CHARACTERS else []
    return _Field(column, kind, codec, masks, is_required)


def _lacking(field: _Field) -> Any:
    """Return what stands for a required value that is not in the replica identity."""
    default = field.codec.schema.default
    return field.codec.parse(zero_text(field.kind)) if default is None else default


def _lacks(field: _Field, value: Value) -> bool:
    """Return whether the value is a null that the schema refuses, or that a converter replaces."""
    return value is None and (field.is_required or field.codec.schema.default is not None)


def _lacks_item(field: _Field, value: Any) -> bool:
    items = field.codec.schema.value_schema
    return isinstance(value, list) and items is not None and not items.optional and None in value


def _loosened(field: _Field, modes: Modes) -> _Field:
    """Return the field with a codec for which every value and item is optional."""
    codec = codec_of(field.kind, modes, optional=True, has_optional_items=True)
    return field._replace(codec=codec, is_required=False)
