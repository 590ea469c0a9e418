"""Avro's types without nested types, from JSON and to JSON. Pure."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from rest_proxy.formats import FormatError
from rest_proxy.formats.plain import shown

_INT: Final = (-(1 << 31), (1 << 31) - 1)
_LONG: Final = (-(1 << 63), (1 << 63) - 1)
_NOT_FINITE: Final = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}


def of_type(kind: type, data: Any, what: str, where: str) -> Any:
    if not isinstance(data, kind):
        raise FormatError(f"{where} has to be {what}, not {shown(data)}")
    return data


def _bytes(data: Any, where: str) -> bytes:
    try:
        return bytes(of_type(str, data, "a text that stands for bytes", where).encode("latin-1"))
    except UnicodeEncodeError:
        raise FormatError(f"{where}: {shown(data)} has characters that are no bytes") from None


def _whole(bounds: tuple[int, int], name: str) -> Callable[[Any, str], int]:
    def read(data: Any, where: str) -> int:
        if isinstance(data, bool) or not isinstance(data, int):
            raise FormatError(f"{where} has to be {name}, not {shown(data)}")
        if not bounds[0] <= data <= bounds[1]:
            raise FormatError(f"{where}: {shown(data)} is beyond {name}")
        return data

    return read


def _floating(data: Any, where: str) -> float:
    if isinstance(data, str) and data in _NOT_FINITE:
        return float(_NOT_FINITE[data])
    if isinstance(data, bool) or not isinstance(data, int | float):
        raise FormatError(f"{where} has to be a number, not {shown(data)}")
    try:
        return float(data)
    except OverflowError:
        raise FormatError(f"{where}: {shown(data)} is too large") from None


def _text(data: Any, where: str) -> str:
    text = of_type(str, data, "a text", where)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise FormatError(f"{where} has half of a surrogate pair") from None
    return str(text)


def _null(data: Any, where: str) -> None:
    if data is not None:
        raise FormatError(f"{where} has to be null, not {shown(data)}")


PRIMITIVES: Final[dict[str, Callable[[Any, str], Any]]] = {
    "null": _null,
    "boolean": lambda data, where: of_type(bool, data, "true or false", where),
    "int": _whole(_INT, "an int"),
    "long": _whole(_LONG, "a long"),
    "float": _floating,
    "double": _floating,
    "string": _text,
    "bytes": _bytes,
}


_TYPES: Final[dict[str, type]] = {
    "boolean": bool,
    "int": int,
    "long": int,
    "float": float,
    "double": float,
    "string": str,
    "bytes": bytes,
    "array": list,
    "map": dict,
}


def is_of(kind: str, value: Any) -> bool:
    """Return whether a value that was read can be of a type; named types are told apart."""
    if kind == "int" and type(value) is int:
        return _INT[0] <= value <= _INT[1]
    return type(value) is _TYPES.get(kind)


def enum_symbol(schema: Mapping[str, Any], data: Any, where: str) -> str:
    """Return a symbol; raises FormatError."""
    if data not in schema["symbols"]:
        raise FormatError(f"{where}: {shown(data)} is no symbol of the enum")
    return str(data)


def fixed_bytes(schema: Mapping[str, Any], data: Any, where: str) -> bytes:
    """Return bytes of the schema's size; raises FormatError."""
    found = _bytes(data, where)
    if len(found) != schema["size"]:
        raise FormatError(f"{where}: {len(found)} bytes, the schema has {schema['size']}")
    return found


def json_of(kind: str, value: Any) -> Any:
    """Return the JSON of a value that was read; numbers that JSON lacks are texts."""
    if kind in ("bytes", "fixed"):
        return value.decode("latin-1")
    if isinstance(value, float):
        for name, text in _NOT_FINITE.items():
            if str(value) == text:
                return name
    return value
