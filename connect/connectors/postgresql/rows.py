"""Translate a table's columns to schemas of keys and values, and its rows to structs.

No code here does IO."""

import decimal
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from connect.connectors.postgresql.masks import Mask, Masks
from connect.connectors.postgresql.names import Adjust, field_adjustment, schema_adjustment
from connect.connectors.postgresql.pgoutput import Column, Unchanged, Value, Values
from connect.connectors.postgresql.selection import Selection
from connect.connectors.postgresql.types import Codec, Type, Types
from connect.connectors.postgresql.values import CHARACTERS, Modes, codec_of, placeholder_of
from millstream.connect import DataException, Schema, Struct

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
    is_key_in_identity: bool = True


class _Field(NamedTuple):
    column: Column
    kind: Type
    codec: Codec
    masks: list[Mask]

    @property
    def length(self) -> int:
        """The length of the column in characters; 0: no limit."""
        return max(0, self.kind.modifier - 4)


class RowReader:
    """Reads the rows of one table.

    A column of the key may be excluded from the values. Columns of the primary key are required.
    All others are optional, since the log may have only the replica identity of a row; so are key
    columns in values if they are not in the identity.
    """

    def __init__(self, described: Described, types: Types, shaping: Shaping) -> None:
        tables, topic, columns, key, is_key_in_identity = described
        self._table = tables[0]
        self._modes = shaping.modes
        chosen = shaping.selection.key_columns(tables, [column.name for column in columns])
        required = frozenset(key)
        key = chosen or key
        in_values = required if is_key_in_identity else frozenset[str]()
        self._fields = [_field(tables, column, types, shaping, in_values) for column in columns]
        shown = [
            place
            for place, column in enumerate(columns)
            if shaping.selection.has_column(tables, column.name)
        ]
        self._shown = shown
        places = {column.name: place for place, column in enumerate(columns)}
        self._key = [places[one] for one in key]
        prefix = shaping.schema_names(topic)
        self.schema = Schema.struct(
            self._schemas(shown, shaping.field_names), name=f"{prefix}.Value", optional=True
        )
        self.key_schema: Schema | None = None
        if self._key:
            self.key_schema = Schema.struct(
                self._schemas(self._key, shaping.field_names, required), name=f"{prefix}.Key"
            )

    def _schemas(
        self, places: Sequence[int], adjust: Adjust, required: frozenset[str] = frozenset()
    ) -> dict[str, Schema]:
        found: dict[str, Schema] = {}
        for place in places:
            column, kind, codec, _ = self._fields[place]
            name = adjust(column.name)
            if name in found:
                raise DataException(f"Table {self._table}: two columns become the field {name}")
            found[name] = (
                codec_of(kind, self._modes, optional=False).schema
                if column.name in required
                else codec.schema
            )
        return found

    def read(self, values: Values, before: Values | None = None) -> list[Any]:
        """Return a row's values; a value that the log lacks comes from `before` or a placeholder.

        Raise DataException that names table, column, value and remedy.
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
            made.append(self._read_one(field, value))
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
                made = placeholder_of(field.codec, self._modes, is_uuid=is_uuid)
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
    tables: Sequence[str], column: Column, types: Types, shaping: Shaping, required: frozenset[str]
) -> _Field:
    kind = types.of(column.type_id, column.modifier)
    codec = codec_of(kind, shaping.modes, optional=column.name not in required)
    names = [f"{table}.{column.name}" for table in tables]
    masks = shaping.masks.of(*names) if kind.name in CHARACTERS else []
    return _Field(column, kind, codec, masks)
