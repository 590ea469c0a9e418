"""How the values of one type are read: their schema, and what their texts become. Pure."""

import decimal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from millrace.connect import Schema


@dataclass(frozen=True, slots=True)
class Codec:
    """`parse` raises ValueError, with a sentence, for what the schema cannot hold."""

    schema: Schema
    parse: Callable[[str], Any]
    scale: int = 0
    """Of a decimal."""
    element: "Codec | None" = None
    """Of an array."""
    placeholder: Any = None
    """What stands for a large value an update left alone, when the schema does not tell."""


def narrowed(value: decimal.Decimal) -> decimal.Decimal:
    """Return a decimal that is a number; raises ValueError."""
    if not value.is_finite():
        raise ValueError("is no number")
    return value
