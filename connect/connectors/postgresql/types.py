"""PostgreSQL's types: resolve domains and arrays to the underlying types. Does no IO.

A codec is how values of one type become Connect's.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from millstream.connect import Schema

QUERY: Final = """
SELECT t.oid, t.typname, t.typtype::text, t.typcategory::text, t.typelem, t.typbasetype,
  t.typtypmod, t.typdelim::text,
  (SELECT array_agg(e.enumlabel::text ORDER BY e.enumsortorder) FROM pg_enum e
   WHERE e.enumtypid = t.oid)
FROM pg_type t WHERE t.typtype IN ('b', 'd', 'e', 'r', 'm') OR t.typcategory = 'A'
"""
_VECTORS: Final = (22, 30)
"""int2vector and oidvector are in the category of arrays but have another text format."""


class Type(NamedTuple):
    """A resolved type: its name and modifier, and the element type of an array."""

    name: str
    modifier: int = -1
    labels: tuple[str, ...] = ()
    """The labels of an enum."""
    element: "Type | None" = None
    delimiter: str = ","


TEXT: Final = Type("text")


class Constraint(NamedTuple):
    """What a table's definition says of the values of a column."""

    is_required: bool = False
    """Whether the column is NOT NULL."""
    default: str | None = None
    """The expression of its DEFAULT; None for a column of a domain, as in Debezium."""


class _Row(NamedTuple):
    name: str
    kind: str
    category: str
    element: int
    base: int
    modifier: int
    delimiter: str
    labels: list[str] | None


class Types:
    """The rows of pg_type, by type id; it resolves domains and arrays."""

    def __init__(self, rows: Iterable[tuple[Any, ...]]) -> None:
        self._rows: Mapping[int, _Row] = {row[0]: _Row(*row[1:]) for row in rows}

    def __contains__(self, type_id: int) -> bool:
        return type_id in self._rows

    def of(self, type_id: int, modifier: int) -> Type:
        """Return the resolved type of a column; an unknown type is text."""
        row = self._rows.get(type_id)
        while row is not None and row.kind == "d":
            # The modifier of a domain counts, because a column of a domain has none.
            type_id, modifier = row.base, row.modifier
            row = self._rows.get(type_id)
        if row is None:
            return TEXT
        if row.category == "A" and row.element and type_id not in _VECTORS:
            element = self.of(row.element, modifier)
            return Type(row.name, modifier, (), element, self._delimiter(row.element))
        return Type(row.name, modifier, tuple(row.labels or ()))

    def _delimiter(self, type_id: int) -> str:
        row = self._rows.get(type_id)
        return "," if row is None else row.delimiter


@dataclass(frozen=True, slots=True)
class Codec:
    """A codec for values of one type: its schema, and the parser of its texts.

    `parse` raises ValueError, with a sentence, for a value that does not fit the schema.
    """

    schema: Schema
    parse: Callable[[str], Any]
    scale: int = 0
    """The scale of a decimal."""
    element: "Codec | None" = None
    """The codec of an array's elements."""
    placeholder: Any = None
    """The placeholder for a large value that an update did not change, if not by the schema."""
