"""Values of PostgreSQL, which come as texts, as values of Connect. Pure.

A type that is not known here stays the text it is. The server is asked for ISO dates, bytes in hex
and times in UTC.
"""

import datetime
import decimal
from collections.abc import Callable, Sequence
from typing import Any, Final

from connect.connectors.postgresql.pgoutput import Column, Unchanged, Values
from millrace.connect import DataException, Schema, Struct
from millrace.connect.data.logical import EXACT
from millrace.connect.data.schema import Type

UNAVAILABLE: Final = "__debezium_unavailable_value"
_NUMERIC: Final = 1700
Parser = Callable[[str], Any]


def _timestamp(text: str) -> datetime.datetime:
    moment = datetime.datetime.fromisoformat(text)
    return moment.replace(tzinfo=datetime.UTC) if moment.tzinfo is None else moment


_TYPES: Final[dict[int, tuple[Callable[..., Schema], Parser]]] = {
    16: (Schema.boolean, lambda text: text in ("t", "true")),
    17: (Schema.bytes, lambda text: bytes.fromhex(text.removeprefix("\\x"))),
    20: (Schema.int64, int),
    21: (Schema.int16, int),
    23: (Schema.int32, int),
    700: (Schema.float32, float),
    701: (Schema.float64, float),
    1082: (Schema.date, datetime.date.fromisoformat),
    1083: (Schema.time, datetime.time.fromisoformat),
    1114: (Schema.timestamp, _timestamp),
    1184: (Schema.timestamp, _timestamp),
}


class RowReader:
    """A table's columns as a schema, and its rows as structs of it."""

    def __init__(self, name: str, columns: Sequence[Column]) -> None:
        found = [_typed(column) for column in columns]
        self._columns = columns
        self._parsers = [parser for _, parser in found]
        self.schema = Schema.struct(
            {column.name: schema for column, (schema, _) in zip(columns, found, strict=True)},
            name=f"{name}.Value",
            optional=True,
        )
        keys = {
            column.name: schema
            for column, (schema, _) in zip(columns, found, strict=True)
            if column.is_key
        }
        self.key_schema = Schema.struct(keys, name=f"{name}.Key") if keys else None

    def row(self, values: Values, before: Struct | None = None) -> Struct:
        """Return a row; a value that did not change is that of `before`, when that is known."""
        if len(values) != len(self._columns):
            raise DataException(f"{len(values)} values for {len(self._columns)} columns")
        made: list[Any] = []
        for place, (value, parser) in enumerate(zip(values, self._parsers, strict=True)):
            if value is None:
                made.append(None)
            elif isinstance(value, Unchanged):
                made.append(self._unchanged(place, before))
            else:
                made.append(self._parsed(place, value, parser))
        return Struct.of_valid(self.schema, made)

    def key(self, row: Struct) -> Struct | None:
        """Return the key of a row; None when the table has none."""
        if self.key_schema is None:
            return None
        values = [row.without_default(field.name) for field in self.key_schema.fields]
        return Struct.of_valid(self.key_schema, values)

    def _parsed(self, place: int, value: str, parser: Parser) -> Any:
        try:
            return parser(value)
        except (ValueError, decimal.DecimalException):
            # As infinity, or a year before Christ: what Connect's types cannot hold.
            column = self._columns[place]
            if column.is_key:
                raise DataException(f"Column {column.name} has a key Connect cannot hold") from None
            return None

    def _unchanged(self, place: int, before: Struct | None) -> Any:
        if before is not None:
            return before.put_values()[place]
        is_text = self.schema.fields[place].schema.type is Type.STRING
        return UNAVAILABLE if is_text else None


def _typed(column: Column) -> tuple[Schema, Parser]:
    optional = not column.is_key
    if column.type_id == _NUMERIC and column.modifier >= 4:
        scale = (column.modifier - 4) & 0x7FF
        # From PostgreSQL 15 on it may be negative: eleven bits, two's complement.
        scale -= 0x800 if scale & 0x400 else 0
        unit = decimal.Decimal(1).scaleb(-scale, EXACT)

        def exact(text: str) -> decimal.Decimal:
            return decimal.Decimal(text).quantize(unit, context=EXACT)

        return Schema.decimal(scale, optional=optional), exact
    make, parser = _TYPES.get(column.type_id, (Schema.string, str))
    return make(optional=optional), parser
