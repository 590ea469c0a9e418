"""Which column is which schema, both ways, and how a value goes out of a column and into one.

Values come out exactly, or are refused: the reader of a column raises ValueError or DataException
for a value that its schema does not hold.
"""

import datetime
import decimal
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy import types

from connect.connectors.jdbc.moments import moment_schema
from connect.connectors.jdbc.zones import Zone, wall_at
from millrace.connect.data.logical import EXACT, scale_of
from millrace.connect.data.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, Type
from millrace.connect.errors import ConnectException

UNSET_SCALE: Final = 127
"""The scale of a NUMERIC that says none, as Confluent's connector has it."""
_BEST_FIT_DIGITS: Final = (
    (3, Schema.int8),
    (5, Schema.int16),
    (10, Schema.int32),
    (19, Schema.int64),
)
_NO_DOUBLE: Final = 19
"""From so many digits on best_fit keeps the decimal."""
_SQLITE_DIGITS: Final = 15

Reader = Callable[[Any], Any]


class Reading(NamedTuple):
    """The settings that decide what a column becomes."""

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
    schema: Schema
    asked: "sa.ColumnElement[Any]"
    """What is selected."""
    read: Reader
    plain: type | None = None
    """A driver's values of this very type are Connect's as they are."""


def column_of(column: "sa.Column[Any]", reading: Reading) -> ReadColumn:
    """Return how a column is read; what is no type of Connect's is a text."""
    kind, optional = column.type, bool(column.nullable)
    # As it is in the database: SQLAlchemy would round decimals of SQLite, and write JSON anew.
    raw = sa.type_coerce(column, types.NullType())
    found = _typed(kind, reading, optional=optional)
    if found is None:
        asked = sa.type_coerce(_as_text(column, reading.dialect), types.NullType())
        return ReadColumn(Schema.string(optional=optional), asked, _text, str)
    schema, read = found
    return ReadColumn(schema, raw, read, _PLAIN.get(read))


def _as_text(column: "sa.Column[Any]", dialect: str) -> "sa.ColumnElement[Any]":
    """Return a column's text, as its database writes it."""
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
    # SQLite has one type of whole numbers and one of others, of 64 bits each.
    table = (*_SQLITE, *_SCHEMAS) if reading.dialect == "sqlite" else _SCHEMAS
    for of_column, make, reader in table:
        if isinstance(kind, of_column):
            return make(optional=optional), reader
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


# --- values out of columns ---


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
    """Return a number as a decimal; a float as the shortest one that is it."""
    found = decimal.Decimal(repr(value) if isinstance(value, float) else value)
    if not found.is_finite():
        raise ValueError("no decimal of Connect is that: read it by a query that casts it to text")
    return found


def _scaled(scale: int) -> Reader:
    unit = decimal.Decimal(1).scaleb(-scale, EXACT)

    def read(value: Any) -> decimal.Decimal:
        number = _decimal(value)
        found = number.quantize(unit, context=EXACT)
        if found != number:
            raise ValueError(f"it has more than {scale} digits after its point")
        return found

    return read


def _whole(value: Any) -> int:
    if isinstance(value, str) or value != int(value):
        raise ValueError("it is no whole number, as its column's type says")
    return int(value)


def _double(value: Any) -> float:
    if isinstance(value, str | bytes):
        raise ValueError("it is no number, as its column's type says")
    return float(value)


def _boolean(value: Any) -> bool:
    if value not in (0, 1):
        raise ValueError("it is neither true nor false")
    return bool(value)


def _date(value: Any) -> datetime.date:
    return value if isinstance(value, datetime.date) else datetime.date.fromisoformat(value)


def _time(value: Any) -> datetime.time:
    if isinstance(value, datetime.timedelta):
        # As MySQL's driver has it.
        return (datetime.datetime.min.replace(tzinfo=datetime.UTC) + value).time()
    return value if isinstance(value, datetime.time) else datetime.time.fromisoformat(value)


def _bytes(value: Any) -> bytes:
    if isinstance(value, str | int | float):
        raise ValueError("it is no bytes, as its column's type says")
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
# The first that fits counts: a SmallInteger is an Integer, too.
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

# --- values into columns ---

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
    """Return the type of a column that is made for a schema; raises ConnectException."""
    match schema.name:
        case _ if schema.name == DECIMAL:
            return _decimal_type(scale_of(schema), dialect)
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


def _decimal_type(scale: int, dialect: str) -> "types.TypeEngine[Any]":
    if dialect in ("postgresql", "sqlite"):
        # Of any number of digits, as the original has it.
        return types.Numeric()
    return types.Numeric(65 if dialect in ("mysql", "mariadb") else 38, min(max(scale, 0), 30))


Writer = Callable[[Any, Zone], Any]
"""How a value is told to the driver; the zone is that of dates and times without one."""


def column_value(value: Any, zone: Zone = datetime.UTC) -> Any:
    """Return a value as a driver takes it: moments as a clock of the zone shows them."""
    match value:
        case datetime.datetime():
            return wall_at(value, zone)
        case decimal.Decimal() if value.as_tuple().exponent == -UNSET_SCALE:
            # Of a NUMERIC without a scale: its zeros are the schema's, and not the column's.
            return value.normalize(EXACT)
        case bytearray() | memoryview():
            return bytes(value)
        case _:
            return value


def writer_of(kind: "types.TypeEngine[Any]", dialect: str) -> Writer:
    """Return how values are told to a column that is there."""
    if isinstance(kind, types.DateTime) and kind.timezone:
        # The moment itself: the session is in UTC.
        return lambda value, _: value
    return _for_sqlite if dialect == "sqlite" else column_value


def _for_sqlite(value: Any, zone: Zone) -> Any:
    """Return a value in a form of SQLite's. Raises ConnectException for what it would round."""
    match value:
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
            f"SQLite's numbers have {_SQLITE_DIGITS} digits, and {value} more: cast it to a text "
            "by a transformation (Cast), into a column of type TEXT"
        )
    return number
