"""Which column is which schema, both ways, and how a value goes into a column."""

import datetime
import decimal
import json
import logging
from collections.abc import Callable
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import types

from millrace.connect.data.logical import EXACT, scale_of
from millrace.connect.data.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, Type
from millrace.connect.errors import ConnectException

log = logging.getLogger(__name__)

UNSET_SCALE: Final = 127
"""The scale of a NUMERIC that says none, as Confluent's connector has it."""
_BEST_FIT_DIGITS: Final = (
    (3, Schema.int8),
    (5, Schema.int16),
    (10, Schema.int32),
    (19, Schema.int64),
)

Reader = Callable[[Any], Any]


def column_schema(
    column: "sa.Column[Any]", dialect: str, numeric_mapping: str
) -> tuple[Schema, Reader | None] | None:
    """Return a column's schema and how its values are read; None for a type Connect has not."""
    kind, optional = column.type, bool(column.nullable)
    if dialect == "sqlite" and isinstance(kind, types.Integer | types.Float):
        # SQLite has one type of whole numbers and one of others, of 64 bits each.
        is_whole = isinstance(kind, types.Integer)
        return (Schema.int64 if is_whole else Schema.float64)(optional=optional), None
    if isinstance(kind, types.Numeric) and not isinstance(kind, types.Float):
        return _numeric(kind, numeric_mapping, optional=optional)
    for of_column, make, reader in _SCHEMAS:
        if isinstance(kind, of_column):
            return make(optional=optional), reader
    log.warning("column is left out column=%s type=%r", column, kind)
    return None


def mark_row_id(connection: sa.Connection, table: sa.Table) -> None:
    """Note that SQLite's `INTEGER PRIMARY KEY` is never null: it is the row's id.

    What is read of the table does not say so: any other primary key of SQLite may be null.
    """
    keys = list(table.primary_key.columns)
    if connection.dialect.name != "sqlite" or len(keys) != 1:
        return
    asked = sa.text("SELECT type FROM pragma_table_info(:name) WHERE pk = 1")
    written = connection.scalar(asked, {"name": table.name})
    if str(written).upper() == "INTEGER":
        keys[0].nullable = False


def _numeric(
    kind: "types.Numeric[Any]", mapping: str, *, optional: bool
) -> tuple[Schema, Reader | None]:
    scale, precision = kind.scale, kind.precision
    if mapping != "none" and precision is not None and not scale:
        for digits, make in _BEST_FIT_DIGITS:
            if precision < digits:
                return make(optional=optional), int
    if mapping.startswith("best_fit") and scale:
        return Schema.float64(optional=optional), float
    if scale is None:
        scale = UNSET_SCALE if precision is None else 0
    return Schema.decimal(scale, optional=optional), _scaled(scale)


def _scaled(scale: int) -> Reader:
    unit = decimal.Decimal(1).scaleb(-scale, EXACT)
    return lambda value: decimal.Decimal(value).quantize(unit, context=EXACT)


def _in_utc(value: datetime.datetime) -> datetime.datetime:
    """Return a point in time; one without a zone is UTC (`db.timezone` of Confluent's default)."""
    return (
        value.replace(tzinfo=datetime.UTC)
        if value.tzinfo is None
        else value.astimezone(datetime.UTC)
    )


# The first that fits counts: a SmallInteger is an Integer, too.
_SCHEMAS: Final[tuple[tuple[type, Callable[..., Schema], Reader | None], ...]] = (
    (types.Boolean, Schema.boolean, None),
    (types.SmallInteger, Schema.int16, None),
    (types.BigInteger, Schema.int64, None),
    (types.Integer, Schema.int32, None),
    (types.REAL, Schema.float32, None),
    (types.Float, Schema.float64, float),
    (types.DateTime, Schema.timestamp, _in_utc),
    (types.Date, Schema.date, None),
    (types.Time, Schema.time, lambda value: value.replace(tzinfo=None)),
    (types.LargeBinary, Schema.bytes, bytes),
    (types.JSON, Schema.string, json.dumps),
    (types.String, Schema.string, str),
    (types.Uuid, Schema.string, str),
)

_COLUMNS: dict[Type, Callable[[], "types.TypeEngine[Any]"]] = {
    Type.INT8: types.SmallInteger,
    Type.INT16: types.SmallInteger,
    Type.INT32: types.Integer,
    Type.INT64: types.BigInteger,
    Type.FLOAT32: types.REAL,
    Type.FLOAT64: types.Double,
    Type.BOOLEAN: types.Boolean,
    Type.STRING: types.Text,
    Type.BYTES: types.LargeBinary,
}


def column_type(schema: Schema) -> "types.TypeEngine[Any]":
    """Return the type of a column that is made for a schema; raises ConnectException."""
    match schema.name:
        case _ if schema.name == DECIMAL:
            return types.Numeric(38, scale_of(schema))
        case _ if schema.name == DATE:
            return types.Date()
        case _ if schema.name == TIME:
            return types.Time()
        case _ if schema.name == TIMESTAMP:
            return types.DateTime()
        case _:
            make = _COLUMNS.get(schema.type)
    if make is None:
        raise ConnectException(f"{schema} type doesn't have a mapping to the SQL database type")
    return make()


def column_value(value: Any) -> Any:
    """Return a value as a driver takes it: points in time in UTC, without a zone."""
    match value:
        case datetime.datetime():
            return value.astimezone(datetime.UTC).replace(tzinfo=None)
        case bytearray() | memoryview():
            return bytes(value)
        case _:
            return value
