"""What a target has to hold of a column's value, told without the connectors' code.

With the settings `EXACT` numbers and times are texts, as PostgreSQL writes them. With `OWN_TYPES`
they are Connect's own types, which documents and files hold so: decimals of a known scale are
doubles in documents and decimals in files, points in time are milliseconds in documents and
timestamps of milliseconds in files (the fraction of a millisecond is cut off), decimals without a
scale are their unscaled bytes and their scale.
"""

import base64
import datetime
import struct
from decimal import Decimal
from typing import Any

EXACT = {"decimal.handling.mode": "string", "time.precision.mode": "isostring"}
OWN_TYPES = {"decimal.handling.mode": "precise", "time.precision.mode": "connect"}
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MILLISECOND = datetime.timedelta(milliseconds=1)

_AS_WRITTEN = "CASE WHEN {0} IS NOT NULL THEN format('%s', {0}) END"
"""As PostgreSQL writes a value; a cast to text writes other networks."""
_TEXTS = ("NUMERIC", "NUMERIC(12,3)", "UUID", "JSONB", "INET", "INT4RANGE")
ASKED = dict.fromkeys(_TEXTS, _AS_WRITTEN) | {"TIMESTAMPTZ": "{} AT TIME ZONE 'UTC'"}
"""How a query asks for a column's values that Python's own types do not hold as they are."""


def held_value(kind: str, value: Any, *, is_exact: bool, is_document: bool) -> Any:
    """Return what a document or a file holds of a value."""
    match kind:
        case _ if value is None:
            return None
        case "REAL":
            return as_float32(value)
        case "BYTEA":
            return base64.b64encode(value).decode() if is_document else value
        case "TIMESTAMPTZ":
            return f"{value.isoformat('T', 'microseconds')}Z"
        case "DATE" | "TIME" | "TIMESTAMP" if is_exact:
            return f"{_iso_text(value)}Z"
        case "DATE" | "TIME" | "TIMESTAMP":
            return _milliseconds(value) if is_document else _in_file(value)
        case "NUMERIC" if not is_exact:
            return _unscaled(Decimal(value), is_document=is_document)
        case "NUMERIC(12,3)" if not is_exact:
            return float(value) if is_document else Decimal(value)
        case _:
            return value


def read_value(kind: str, value: Any, *, is_exact: bool, is_document: bool) -> Any:
    """Return what a document or a file holds of a value that the JDBC source read.

    Points in time are texts of microseconds or Connect's own type, everything else is the latter.
    """
    match kind:
        case "TIMESTAMP" | "TIMESTAMPTZ" if is_exact and value is not None:
            return value.isoformat("T", "microseconds")
        case "TIMESTAMPTZ":
            kind = "TIMESTAMP"
        case "NUMERIC":
            kind = "NUMERIC(12,3)"
    return held_value(kind, value, is_exact=False, is_document=is_document)


def as_float32(value: float | None) -> Any:
    return None if value is None else struct.unpack("f", struct.pack("f", value))[0]


def _iso_text(value: datetime.date | datetime.time) -> str:
    text = value.isoformat()
    return text.rstrip("0") if "." in text else text


def _milliseconds(value: datetime.date | datetime.time) -> int:
    if isinstance(value, datetime.time):
        value = datetime.datetime.combine(_EPOCH.date(), value)
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime.combine(value, datetime.time())
    return (value.replace(tzinfo=datetime.UTC) - _EPOCH) // _MILLISECOND


def _in_file(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=datetime.UTC, microsecond=value.microsecond // 1000 * 1000)
    return value


def _unscaled(value: Decimal, *, is_document: bool) -> dict[str, Any]:
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    whole = int("".join(map(str, digits))) * (-1 if sign else 1)
    size = (whole + (whole < 0)).bit_length() // 8 + 1
    found = whole.to_bytes(size, "big", signed=True)
    held = base64.b64encode(found).decode() if is_document else found
    return {"scale": -exponent, "value": held}
