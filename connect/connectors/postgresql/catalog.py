"""The server's catalog of tables: their keys, columns, partitions and types.

The log describes a table without its primary key, and the snapshot has no description at all. Both
use the catalog, so that they agree.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import psycopg

from connect.connectors.postgresql.pgoutput import Column
from connect.connectors.postgresql.selection import Selection
from connect.connectors.postgresql.types import QUERY, Constraint, Types

_TABLES: Final = """
SELECT c.oid, n.nspname, c.relname, c.relkind = 'p', c.relreplident::text, c.relpersistence = 'u',
  CASE WHEN c.relispartition THEN i.inhparent END
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_inherits i ON i.inhrelid = c.oid AND c.relispartition
WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't' AND c.oid >= 16384
  AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') ORDER BY 2, 3
"""
_COLUMNS: Final = """
SELECT a.attname, false, a.atttypid, a.atttypmod FROM pg_attribute a
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
ORDER BY a.attnum
"""
# The primary key, or else the first unique index without nullable columns, as in Debezium.
_KEY: Final = """
SELECT array_agg(a.attname::text ORDER BY k.place), bool_or(a.attgenerated <> '') FROM (
  SELECT indrelid, indkey, indnkeyatts FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
  WHERE indrelid = %s AND indisvalid AND (indisprimary OR (
    indisunique AND indpred IS NULL AND indexprs IS NULL AND NOT EXISTS (
      SELECT FROM unnest(indkey::int2[]) WITH ORDINALITY AS n(number, place)
      JOIN pg_attribute b ON b.attrelid = indrelid AND b.attnum = n.number
      WHERE n.place <= indnkeyatts AND NOT b.attnotnull)))
  ORDER BY indisprimary DESC, c.relname LIMIT 1) AS x
CROSS JOIN LATERAL unnest(x.indkey::int2[]) WITH ORDINALITY AS k(number, place)
JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = k.number
WHERE k.place <= x.indnkeyatts
"""
_CONSTRAINTS: Final = """
SELECT a.attname::text, a.attnotnull OR (t.typtype = 'd' AND t.typnotnull),
  CASE WHEN t.typtype <> 'd' THEN pg_get_expr(d.adbin, d.adrelid) END
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
"""


@dataclass(frozen=True, slots=True)
class TableInfo:
    """A table. Its `chain` is the table itself and the tables of which it is a partition."""

    relation_id: int
    schema: str
    name: str
    is_partitioned: bool
    identity: str
    is_unlogged: bool
    chain: tuple[str, ...]
    """`schema.table` of the table itself and of its parents, the root last."""

    @property
    def full_name(self) -> str:
        return self.chain[0]

    @property
    def is_partition(self) -> bool:
        return len(self.chain) > 1


class Catalog:
    """Owns a copy of the server's catalog, read at one moment."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.types = Types(connection.execute(QUERY).fetchall())
        rows = connection.execute(_TABLES).fetchall()
        parents = {row[0]: (f"{row[1]}.{row[2]}", row[6]) for row in rows}
        self.tables: dict[int, TableInfo] = {}
        for at, schema, name, is_partitioned, identity, is_unlogged, _ in rows:
            chain = tuple(_chain(at, parents))
            self.tables[at] = TableInfo(
                at, schema, name, is_partitioned, identity, is_unlogged, chain
            )

    def captured(self, selection: Selection, *, is_via_root: bool) -> list[TableInfo]:
        """Return the selected tables whose changes have their own names."""
        return [
            table
            for table in self.tables.values()
            if (not table.is_partition if is_via_root else not table.is_partitioned)
            and not table.is_unlogged
            and selection.has_table(table.schema, *table.chain)
        ]

    def published_as(self, tables: Sequence[TableInfo], selection: Selection) -> list[TableInfo]:
        """Return the tables to publish; a partition is replaced by its root if that is selected.

        So partitions that are created later are published, too.
        """
        by_name = {table.full_name: table for table in self.tables.values()}
        found: dict[str, TableInfo] = {}
        for table in tables:
            root = by_name[table.chain[-1]]
            chosen = root if selection.has_table(root.schema, root.full_name) else table
            found[chosen.full_name] = chosen
        return list(found.values())


def _chain(relation_id: int, parents: dict[int, tuple[str, int | None]]) -> Iterable[str]:
    at: int | None = relation_id
    while at is not None and at in parents:
        name, at = parents[at]
        yield name


def columns_of(connection: psycopg.Connection[Any], relation_id: int) -> tuple[Column, ...]:
    found = connection.execute(_COLUMNS, (relation_id,)).fetchall()
    return tuple(Column(*row) for row in found)


class Key(NamedTuple):
    """The columns of a table's key, in the key's order; empty if the table has no key."""

    columns: tuple[str, ...]
    is_generated: bool
    """True if a column of the key is generated, so that the log may lack it."""


def key_of(connection: psycopg.Connection[Any], relation_id: int) -> Key:
    found, is_generated = connection.execute(_KEY, (relation_id,)).fetchone() or (None, None)
    return Key(tuple(found or ()), bool(is_generated))


def constraints_of(connection: psycopg.Connection[Any], relation_id: int) -> dict[str, Constraint]:
    """Return the constraints of a table's columns at present; empty if the table is gone."""
    rows = connection.execute(_CONSTRAINTS, (relation_id,)).fetchall()
    return {name: Constraint(bool(is_required), default) for name, is_required, default in rows}
