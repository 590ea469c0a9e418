"""A codec for values of one type: its schema, and the parser of its texts. Does no IO."""

import decimal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from millstream.connect import Schema


@dataclass(frozen=True, slots=True)
class Codec:
    """`parse` raises ValueError, with a sentence, for a value that does not fit the schema."""

    schema: Schema
    parse: Callable[[str], Any]
    scale: int = 0
    """The scale of a decimal."""
    element: "Codec | None" = None
    """The codec of an array's elements."""
    placeholder: Any = None
    """The placeholder for a large value that an update did not change, if not by the schema."""


def narrowed(value: decimal.Decimal) -> decimal.Decimal:
    """Return a finite decimal; raise ValueError."""
    if not value.is_finite():
        raise ValueError("is no number")
    return value
