"""The types of settings, and how a text becomes a value of one: Kafka's ConfigDef.parseType."""

import enum
import importlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from millstream.connect.data.java_text import java_double
from millstream.connect.errors import ConfigException

_WHOLE = re.compile(r"[+-]?\d+")
_FRACTION = re.compile(
    r"[+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?)", re.ASCII
)
_COMMA = re.compile(r"\s*,\s*", re.ASCII)
# What Java's String.trim takes off: everything up to the space.
BLANKS = "".join(map(chr, range(0x21)))
MAX_DIGITS = 400  # longer than any number these types hold; Python's int() has a limit of its own


class Type(enum.Enum):
    """The types of settings."""

    BOOLEAN = enum.auto()
    STRING = enum.auto()
    INT = enum.auto()
    SHORT = enum.auto()
    LONG = enum.auto()
    DOUBLE = enum.auto()
    LIST = enum.auto()
    CLASS = enum.auto()
    PASSWORD = enum.auto()


class Importance(enum.Enum):
    """How likely it is that a user has to think about a setting."""

    HIGH = 0
    MEDIUM = 1
    LOW = 2


class Width(enum.Enum):
    """How wide a field for a setting is in a form."""

    NONE = 0
    SHORT = 1
    MEDIUM = 2
    LONG = 3


@dataclass(frozen=True, slots=True, repr=False)
class Password:
    """A secret: it has to be asked for, and is never written by accident."""

    value: str

    def __str__(self) -> str:
        return "[hidden]"

    __repr__ = __str__


FindClass = Callable[[str], type]


def imported_class(name: str) -> type:
    """Import a class by `module.Class` or `module:Class`; raises LookupError when there is none."""
    module, _, attribute = name.replace(":", ".").rpartition(".")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise LookupError(name) from error
    if not isinstance(found, type):
        raise LookupError(name)
    return found


def class_name(of: type) -> str:
    """Return the name of a class in configurations: Kafka's when it stands for one of Kafka's."""
    # Not inherited: a class derived from one of ours is not the one of Kafka's.
    kafka_class = of.__dict__.get("kafka_class")
    return kafka_class if kafka_class is not None else f"{of.__module__}.{of.__qualname__}"


def parse_type(name: str, value: object, kind: Type, find_class: FindClass = imported_class) -> Any:
    """Return the value of a setting; raises ConfigException when it is not one of its type."""
    if value is None:
        return None
    trimmed = value.strip(BLANKS) if isinstance(value, str) else value
    try:
        return _PARSERS[kind](trimmed, find_class)
    except _NotOfTypeError as error:
        raise ConfigException.of_value(name, value, str(error)) from None
    except ValueError:
        raise ConfigException.of_value(name, value, f"Not a number of type {kind.name}") from None
    except LookupError:
        raise ConfigException.of_value(name, value, f"Class {value} could not be found.") from None


def convert_to_string(value: Any, kind: Type | None) -> str | None:
    """Write a parsed value as a setting's text; a password stays hidden."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case float():
            return java_double(value)
        case type():
            return class_name(value)
        case list() | tuple() if kind is Type.LIST:
            return ",".join(map(str, value))
        case _:
            return str(value)


class _NotOfTypeError(Exception):
    """The value's own type is wrong."""


def _boolean(value: object, _: FindClass) -> bool:
    text = value.lower() if isinstance(value, str) else value
    if text in ("true", True):
        return True
    if text in ("false", False):
        return False
    raise _NotOfTypeError("Expected value to be either true or false")


def _string(value: object, _: FindClass) -> str:
    if isinstance(value, str):
        return value
    raise _NotOfTypeError(f"Expected value to be a string, but it was a {_kind(value)}")


def _password(value: object, find_class: FindClass) -> Password:
    return value if isinstance(value, Password) else Password(_string(value, find_class))


def _whole(bits: int, called: str) -> Callable[[object, FindClass], int]:
    end = 1 << (bits - 1)

    def parse(value: object, _: FindClass) -> int:
        if isinstance(value, str):
            if len(value) > MAX_DIGITS or not _WHOLE.fullmatch(value):
                raise ValueError(value)
            value = int(value)
        elif not isinstance(value, int) or isinstance(value, bool):
            raise _NotOfTypeError(f"Expected value to be a {called}, but it was a {_kind(value)}")
        if not -end <= value < end:
            raise ValueError(value)
        return value

    return parse


def _double(value: object, _: FindClass) -> float:
    if isinstance(value, str):
        if not _FRACTION.fullmatch(value):
            raise ValueError(value)
        return float(value.rstrip("fFdD") if value[-1:] in "fFdD" else value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise _NotOfTypeError(f"Expected value to be a double, but it was a {_kind(value)}")


def _list(value: object, _: FindClass) -> list[Any]:
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, str):
        return _COMMA.split(value) if value else []
    raise _NotOfTypeError("Expected a comma separated list.")


def _class(value: object, find_class: FindClass) -> type:
    if isinstance(value, type):
        return value
    if isinstance(value, str):
        return find_class(value)
    raise _NotOfTypeError("Expected a Class instance or class name.")


def _kind(value: object) -> str:
    return type(value).__name__


_PARSERS: dict[Type, Callable[[object, FindClass], object]] = {
    Type.BOOLEAN: _boolean,
    Type.STRING: _string,
    Type.PASSWORD: _password,
    Type.INT: _whole(32, "32-bit integer"),
    Type.SHORT: _whole(16, "16-bit integer (short)"),
    Type.LONG: _whole(64, "64-bit integer (long)"),
    Type.DOUBLE: _double,
    Type.LIST: _list,
    Type.CLASS: _class,
}
