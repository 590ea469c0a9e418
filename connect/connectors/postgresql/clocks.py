"""Dates and times by `time.precision.mode`: integers, strings or Connect's types. Does no IO.

Integers are exact. Connect's types (mode `connect`) have milliseconds and the years 1 to 9999, as
in Debezium: the rest of a fraction is cut off, and a year outside is refused.
"""

import datetime
from collections.abc import Callable
from typing import Any, Final

from connect.connectors import temporal
from connect.connectors.postgresql.types import Codec, Type
from millstream.connect import DataException, Schema
from millstream.connect.data.logical import date_from, time_from, timestamp_from

_INFINITE_US: Final = {
    # The values of infinity in PostgreSQL's Java driver and in Debezium's documentation.
    "infinity": 9_223_372_036_825_200_000,
    "-infinity": -9_223_372_036_832_400_000,
}
_INFINITE_NS: Final = {"infinity": (1 << 63) - 1, "-infinity": -(1 << 63)}
_EXACT: Final = "set time.precision.mode to isostring, which holds it"
_ADAPTIVE: Final = ("adaptive", "adaptive_time_microseconds")


def clock_codec(kind: Type, mode: str, *, optional: bool) -> Codec:
    """Return the codec of date, time, timetz, timestamp or timestamptz."""
    return _MAKERS[kind.name](kind, mode, optional)


def _number(name: str, parse: Callable[[str], int], *, optional: bool, bits: int = 64) -> Codec:
    make = Schema.int32 if bits == 32 else Schema.int64
    end = 1 << (bits - 1)

    def read(text: str) -> int:
        found = parse(text)
        if not -end <= found < end:
            raise ValueError(f"does not fit into {bits} bits: {_EXACT}")
        return found

    return Codec(make(optional=optional, name=f"io.debezium.time.{name}", version=1), read)


def _text(name: str, parse: Callable[[str], str], *, optional: bool) -> Codec:
    schema = Schema.string(optional=optional, name=f"io.debezium.time.{name}", version=1)

    def read(text: str) -> str:
        return text if text in temporal.INFINITIES else parse(text)

    return Codec(schema, read)


def _own(schema: Schema, parse: Callable[[str], Any]) -> Codec:
    """Return the codec for Connect's own types."""

    def read(text: str) -> Any:
        try:
            return parse(text)
        except (DataException, ValueError):
            raise ValueError(
                "does not fit into Connect's types: set time.precision.mode to adaptive or "
                "isostring"
            ) from None

    return Codec(schema, read)


def _finite_days(text: str) -> int:
    if text in temporal.INFINITIES:
        raise ValueError(f"is not a day: {_EXACT}")
    return temporal.days_in(text)


def _date(kind: Type, mode: str, optional: bool) -> Codec:
    del kind
    match mode:
        case "connect":
            return _own(Schema.date(optional=optional), lambda text: date_from(_finite_days(text)))
        case "isostring":
            return _text(
                "IsoDate",
                lambda text: f"{temporal.iso_date(temporal.days_in(text))}Z",
                optional=optional,
            )
        case _:
            return _number("Date", _finite_days, optional=optional, bits=32)


def _time(kind: Type, mode: str, optional: bool) -> Codec:
    match mode:
        case "connect":

            def read(text: str) -> datetime.time:
                return time_from(temporal.time_us(text) // 1000)

            return _own(Schema.time(optional=optional), read)
        case "isostring":
            return _text(
                "IsoTime",
                lambda text: f"{temporal.iso_time(temporal.time_us(text))}Z",
                optional=optional,
            )
        case "nanoseconds":
            return _number(
                "NanoTime", lambda text: temporal.time_us(text) * 1000, optional=optional
            )
        case "adaptive" if 0 <= kind.modifier <= 3:
            return _number(
                "Time", lambda text: temporal.time_us(text) // 1000, optional=optional, bits=32
            )
        case _:
            return _number("MicroTime", temporal.time_us, optional=optional)


def _moment(kind: Type, mode: str, optional: bool) -> Codec:
    match mode:
        case "connect":
            return _own(
                Schema.timestamp(optional=optional),
                lambda text: timestamp_from(temporal.moment_us(text) // 1000),
            )
        case "isostring":
            return _text("IsoTimestamp", _iso_moment, optional=optional)
        case "nanoseconds":
            return _number("NanoTimestamp", _nanoseconds, optional=optional)
        case _ if mode in _ADAPTIVE and 0 <= kind.modifier <= 3:
            return _number("Timestamp", lambda text: _microseconds(text) // 1000, optional=optional)
        case _:
            return _number("MicroTimestamp", _microseconds, optional=optional)


def _iso_moment(text: str) -> str:
    return temporal.iso_moment(temporal.moment_us(text))


def _microseconds(text: str) -> int:
    found = _INFINITE_US.get(text)
    return temporal.moment_us(text) if found is None else found


def _nanoseconds(text: str) -> int:
    found = _INFINITE_NS.get(text)
    return temporal.moment_us(text) * 1000 if found is None else found


def _zoned_moment(kind: Type, mode: str, optional: bool) -> Codec:
    del mode
    digits = kind.modifier if kind.modifier >= 0 else 6

    def padded(text: str) -> str:
        found = temporal.moment_us(text)
        seconds = temporal.iso_moment(found - found % 1_000_000)
        fraction = f"{found % 1_000_000:06d}"[:digits]
        return f"{seconds[:-1]}.{fraction}Z" if fraction else seconds

    return _text("ZonedTimestamp", padded, optional=optional)


def _zoned_time(kind: Type, mode: str, optional: bool) -> Codec:
    del kind, mode
    return _text(
        "ZonedTime",
        lambda text: f"{temporal.iso_time(temporal.time_us(text))}Z",
        optional=optional,
    )


_MAKERS: Final[dict[str, Callable[[Type, str, bool], Codec]]] = {
    "date": _date,
    "time": _time,
    "timetz": _zoned_time,
    "timestamp": _moment,
    "timestamptz": _zoned_moment,
}
