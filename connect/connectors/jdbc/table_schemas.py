"""Map columns to schemas and schemas to columns, and convert the values of both.

A value is read exactly or refused: the reader of a column raises ValueError or DataException for a
value that does not fit its schema.
"""

import datetime
import decimal
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy import types
from sqlalchemy.dialects import postgresql

from connect.connectors.jdbc.debezium import VARIABLE_SCALE, writer_for
from connect.connectors.jdbc.zones import Zone, moment_schema, wall_at
from millstream.connect.data.logical import EXACT, scale_of
from millstream.connect.data.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, Type
from millstream.connect.errors import ConnectException

UNSET_SCALE: Final = 127
"""The scale of a NUMERIC without one; the value is Confluent's."""
_BEST_FIT_DIGITS: Final = (
    (3, Schema.int8),
    (5, Schema.int16),
    (10, Schema.int32),
    (19, Schema.int64),
)
_NO_DOUBLE: Final = 19
"""With this precision or more, best_fit keeps the decimal."""
_SQLITE_DIGITS: Final = 15
_LONGEST_SCALE: Final = 30
"""The largest scale of MySQL."""

Reader = Callable[[Any], Any]


class Reading(NamedTuple):
    """The settings that decide the schema of a column."""

    dialect: str
    zone: Zone
    numeric_mapping: str
    granularity: str

    @classmethod
    def of(cls, dialect: str, zone: Zone, settings: Mapping[str, Any]) -> "Reading":
        mapping: str = settings["numeric.mapping"]
        if mapping == "none" and settings["numeric.precision.mapping"]:
            mapping = "precision_only"
        return cls(dialect, zone, mapping, settings["timestamp.granularity"])


class ReadColumn(NamedTuple):
    """How a column is selected, and how its values become those of the schema."""

    schema: Schema
    asked: "sa.ColumnElement[Any]"
    """The expression in the SELECT."""
    read: Reader
    plain: type | None = None
    """A driver's values of exactly this type need no conversion."""


def column_of(column: "sa.Column[Any]", reading: Reading) -> ReadColumn:
    """Return the reader of a column; a type that Connect lacks is read as a string."""
    kind, optional = column.type, bool(column.nullable)
    while isinstance(kind, postgresql.DOMAIN):
        kind = kind.data_type
    # Read the stored value: SQLAlchemy would round SQLite's decimals and reformat JSON.
    raw = sa.type_coerce(column, types.NullType())
    found = _typed(kind, reading, optional=optional)
    if found is None:
        asked = sa.type_coerce(_as_text(column, reading.dialect), types.NullType())
        return ReadColumn(Schema.string(optional=optional), asked, _text, str)
    schema, read = found
    return ReadColumn(schema, raw, read, _PLAIN.get(read))


def _as_text(column: "sa.Column[Any]", dialect: str) -> "sa.ColumnElement[Any]":
    """Return an expression for a column's value as text, in the database's own format."""
    if dialect == "postgresql":
        # A cast would write an address of one host as a network: 10.0.0.1/32. IS NOT NULL would be
        # false for a composite value with a null in it.
        raw = sa.type_coerce(column, types.NullType())
        return sa.case((raw.is_distinct_from(sa.null()), sa.func.concat(raw)))
    return sa.cast(column, types.Text)


def _typed(
    kind: "types.TypeEngine[Any]", reading: Reading, *, optional: bool
) -> tuple[Schema, Reader] | None:
    if isinstance(kind, types.DateTime):
        return moment_schema(reading.granularity, reading.zone, optional=optional)
    if isinstance(kind, types.Time) and kind.timezone:
        return None
    if isinstance(kind, types.Numeric) and not isinstance(kind, types.Float):
        return _numeric(kind, reading.numeric_mapping, optional=optional)
    # SQLite has one integer type and one floating-point type, of 64 bits each.
    table = (*_SQLITE, *_SCHEMAS) if reading.dialect == "sqlite" else _SCHEMAS
    for of_column, make, reader in table:
        if isinstance(kind, of_column):
            return make(optional=optional), reader
    return None


def mark_row_id(connection: sa.Connection, table: sa.Table) -> None:
    """Mark SQLite's `INTEGER PRIMARY KEY` as not nullable: it is the row's id.

    SQLAlchemy's reflection does not show this; any other primary key of SQLite may be null.
    """
    keys = list(table.primary_key.columns)
    if connection.dialect.name != "sqlite" or len(keys) != 1:
        return
    asked = sa.text("SELECT type FROM pragma_table_info(:name) WHERE pk = 1")
    written = connection.scalar(asked, {"name": table.name})
    if str(written).upper() == "INTEGER":
        keys[0].nullable = False


# --- values read from columns ---


def _numeric(kind: "types.Numeric[Any]", mapping: str, *, optional: bool) -> tuple[Schema, Reader]:
    scale, precision = kind.scale, kind.precision
    if mapping != "none" and precision is not None and not scale:
        for digits, make in _BEST_FIT_DIGITS:
            if precision < digits:
                return make(optional=optional), lambda value: _whole(_decimal(value))
    if scale and scale > 0:
        is_short = precision is not None and precision < _NO_DOUBLE
        if mapping == "best_fit_eager_double" or (mapping == "best_fit" and is_short):
            return Schema.float64(optional=optional), _double
    if scale is None:
        scale = UNSET_SCALE if precision is None else 0
    return Schema.decimal(scale, optional=optional), _scaled(scale)


def _decimal(value: Any) -> decimal.Decimal:
    """Return a number as a decimal; a float becomes the shortest decimal that equals it."""
    try:
        found = decimal.Decimal(repr(value) if isinstance(value, float) else value)
    except (decimal.InvalidOperation, TypeError):
        raise ValueError("it is not a number, unlike its column's type") from None
    if not found.is_finite():
        raise ValueError("Connect has no decimal for it: use a query that casts it to text")
    return found


def _scaled(scale: int) -> Reader:
    unit = decimal.Decimal(1).scaleb(-scale, EXACT)

    def read(value: Any) -> decimal.Decimal:
        number = _decimal(value)
        found = number.quantize(unit, context=EXACT)
        if found != number:
            raise ValueError(f"it has more than {scale} digits after the point")
        return found

    return read


def _whole(value: Any) -> int:
    if isinstance(value, str) or value != int(value):
        raise ValueError("it is not an integer, unlike its column's type")
    return int(value)


def _double(value: Any) -> float:
    if isinstance(value, str | bytes):
        raise ValueError("it is not a number, unlike its column's type")
    return float(value)


def _boolean(value: Any) -> bool:
    if value not in (0, 1):
        raise ValueError("it is neither true nor false")
    return bool(value)


def _date(value: Any) -> datetime.date:
    return value if isinstance(value, datetime.date) else datetime.date.fromisoformat(value)


def _time(value: Any) -> datetime.time:
    if isinstance(value, datetime.timedelta):
        # MySQL's driver returns a timedelta.
        return (datetime.datetime.min.replace(tzinfo=datetime.UTC) + value).time()
    return value if isinstance(value, datetime.time) else datetime.time.fromisoformat(value)


def _bytes(value: Any) -> bytes:
    if isinstance(value, str | int | float):
        raise ValueError("it is not bytes, unlike its column's type")
    return bytes(value)


def _text(value: Any) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode()
    return str(value)


_PLAIN: Final[dict[Reader, type]] = {
    _whole: int,
    _double: float,
    _boolean: bool,
    _date: datetime.date,
    _bytes: bytes,
    _text: str,
}
_Schemas = tuple[tuple[type, Callable[..., Schema], Reader], ...]
_SQLITE: Final[_Schemas] = (
    (types.Integer, Schema.int64, _whole),
    (types.Float, Schema.float64, _double),
)
# The first match counts: a SmallInteger is an Integer, too.
_SCHEMAS: Final[_Schemas] = (
    (types.Boolean, Schema.boolean, _boolean),
    (types.SmallInteger, Schema.int16, _whole),
    (types.BigInteger, Schema.int64, _whole),
    (types.Integer, Schema.int32, _whole),
    (types.REAL, Schema.float32, _double),
    (types.Float, Schema.float64, _double),
    (types.Date, Schema.date, _date),
    (types.Time, Schema.time, _time),
    (types.LargeBinary, Schema.bytes, _bytes),
    (types.Enum, Schema.string, _text),
    (types.String, Schema.string, _text),
)

# --- values written to columns ---

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


def column_type(schema: Schema, dialect: str = "") -> "types.TypeEngine[Any]":
    """Return the type of a new column for a schema; raise ConnectException."""
    match schema.name:
        case _ if schema.name == DECIMAL:
            return _decimal_type(scale_of(schema), dialect)
        case _ if schema.name == DATE:
            return types.Date()
        case _ if schema.name == TIME:
            return types.Time()
        case _ if schema.name == TIMESTAMP:
            return types.DateTime()
        case _ if schema.name == VARIABLE_SCALE:
            return _decimal_type(_LONGEST_SCALE, dialect)
        case _ if schema.type is Type.ARRAY and dialect == "postgresql" and schema.value_schema:
            return postgresql.ARRAY(column_type(schema.value_schema, dialect))
        case _:
            make = _COLUMNS.get(schema.type)
    if make is None:
        raise ConnectException(f"{schema} type doesn't have a mapping to the SQL database type")
    return make()


def _decimal_type(scale: int, dialect: str) -> "types.TypeEngine[Any]":
    if dialect in ("postgresql", "sqlite"):
        # A decimal without a precision, as in Confluent's connector.
        return types.Numeric()
    return types.Numeric(
        65 if dialect in ("mysql", "mariadb") else 38, min(max(scale, 0), _LONGEST_SCALE)
    )


Writer = Callable[[Any, Zone], Any]
"""Converts a value for the driver; the zone is that of dates and times without one."""


def column_value(value: Any, zone: Zone = datetime.UTC) -> Any:
    """Return a value for the driver; a point in time becomes a local time in the zone."""
    match value:
        case datetime.datetime():
            return wall_at(value, zone)
        case decimal.Decimal() if value.as_tuple().exponent == -UNSET_SCALE:
            # For a NUMERIC without a scale: the trailing zeros come from the schema's scale.
            return value.normalize(EXACT)
        case bytearray() | memoryview():
            return bytes(value)
        case _:
            return value


def writer_of(kind: "types.TypeEngine[Any]", dialect: str, schema: Schema) -> Writer:
    """Return the function that converts a schema's values for an existing column."""
    write = writer_for(schema, kind, dialect)
    if write is not None:
        finish = _for_sqlite if dialect == "sqlite" else column_value
        return lambda value, zone: None if value is None else finish(write(value), zone)
    if isinstance(kind, types.DateTime) and kind.timezone:
        # The point in time needs no zone: the session is in UTC.
        return lambda value, _: value
    return _for_sqlite if dialect == "sqlite" else column_value


def _for_sqlite(value: Any, zone: Zone) -> Any:
    """Return a value in SQLite's format. Raise ConnectException if SQLite would change it."""
    match value:
        case float() if value != value:
            raise ConnectException(
                "SQLite would store NaN as null: convert it to a string with the transformation "
                "Cast, for a column of type TEXT"
            )
        case decimal.Decimal():
            return _sqlite_number(value)
        case datetime.datetime():
            return wall_at(value, zone).isoformat(" ", "microseconds")
        case datetime.time():
            return value.isoformat("microseconds")
        case datetime.date():
            return value.isoformat()
        case _:
            return column_value(value)


def _sqlite_number(value: decimal.Decimal) -> int | float:
    if value == value.to_integral_value(context=EXACT) and -(1 << 63) <= value < 1 << 63:
        return int(value)
    number = float(value)
    if decimal.Decimal(repr(number)) != value:
        raise ConnectException(
            f"SQLite's numbers have {_SQLITE_DIGITS} digits, and {value} has more: convert it to "
            "a string with the transformation Cast, for a column of type TEXT"
        )
    return number
