"""The captured tables of one connection, each with the object that makes its records.

`Capture` owns a copy of the catalog. It reads the catalog again if the log describes a table that
the copy lacks.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import psycopg
from psycopg import sql

from connect.connectors.postgresql.catalog import (
    Catalog,
    TableInfo,
    columns_of,
    constraints_of,
    key_of,
)
from connect.connectors.postgresql.envelope import Style, Table
from connect.connectors.postgresql.masks import Masks
from connect.connectors.postgresql.names import (
    field_adjustment,
    schema_adjustment,
    topic_name,
)
from connect.connectors.postgresql.pgoutput import Relation
from connect.connectors.postgresql.rows import Described, RowReader, Shaping
from connect.connectors.postgresql.selection import Selection, identities_in
from connect.connectors.postgresql.values import Modes
from millstream.connect import ConnectException

log = logging.getLogger(__name__)


class Capture:
    """The capture of one configuration on one connection."""

    def __init__(
        self,
        parsed: Mapping[str, Any],
        settings: Mapping[str, str],
        connection: psycopg.Connection[Any],
    ) -> None:
        self._parsed = parsed
        self._connection = connection
        self.selection = Selection(parsed)
        self._shaping = Shaping(
            Modes.of(parsed),
            self.selection,
            Masks(settings),
            schema_adjustment(parsed["schema.name.adjustment.mode"]),
            field_adjustment(parsed["field.name.adjustment.mode"]),
        )
        self._style = Style(
            parsed["topic.prefix"],
            parsed["database.dbname"],
            parsed["tombstones.on.delete"],
            frozenset(parsed["skipped.operations"]),
            parsed["skip.messages.without.change"],
        )
        self.catalog = Catalog(connection)

    def look_again(self) -> None:
        self.catalog = Catalog(self._connection)

    def tables(self, *, is_via_root: bool) -> list[TableInfo]:
        """Return the captured tables. Raise ConnectException if two of them have the same topic."""
        found = self.catalog.captured(self.selection, is_via_root=is_via_root)
        topics: dict[str, str] = {}
        for table in found:
            topic = self._topic(table.schema, table.name)
            if topic in topics:
                raise ConnectException(
                    f"Tables {topics[topic]} and {table.full_name} would share the topic {topic}, "
                    "where each would overwrite the other's keys: exclude one by "
                    "table.exclude.list, and use another connector for it"
                )
            topics[topic] = table.full_name
        self._guard(len(found))
        return found

    def unlogged(self) -> list[str]:
        """Return the selected tables that are unlogged, so their changes cannot be followed."""
        return [
            table.full_name
            for table in self.catalog.tables.values()
            if table.is_unlogged and self.selection.has_table(table.schema, *table.chain)
        ]

    def _guard(self, count: int) -> None:
        limit = self._parsed["guardrail.collections.max"]
        if not limit or count <= limit:
            return
        said = f"{count} tables are captured, more than guardrail.collections.max={limit}"
        if self._parsed["guardrail.collections.limit.action"] == "fail":
            raise ConnectException(said)
        log.warning("%s", said)

    def _topic(self, schema: str, table: str) -> str:
        delimiter = self._parsed["topic.delimiter"]
        return topic_name(self._parsed["topic.prefix"], schema, table, delimiter=delimiter)

    def of_snapshot(self, table: TableInfo) -> Table:
        columns = columns_of(self._connection, table.relation_id)
        told = Relation(table.relation_id, table.schema, table.name, columns, table.identity)
        return self._made(told, table)

    def of_log(self, relation: Relation) -> Table | None:
        """Return the table that the log describes; None if it is not captured.

        Raise ConnectException if its key cannot be found.
        """
        table = self._known(relation)
        names = table.chain if table is not None else (f"{relation.schema}.{relation.table}",)
        if not self.selection.has_table(relation.schema, *names):
            return None
        return self._made(relation, table)

    def _known(self, relation: Relation) -> TableInfo | None:
        """Return the catalog's entry of a table, with its name in the log."""
        is_typed = all(column.type_id in self.catalog.types for column in relation.columns)
        table = self.catalog.tables.get(relation.relation_id)
        is_named = table is not None and (table.schema, table.name) == (
            relation.schema,
            relation.table,
        )
        if not is_named or not is_typed:
            self.look_again()
            table = self.catalog.tables.get(relation.relation_id)
        if table is None:
            return None
        # The table may have been renamed since.
        chain = (f"{relation.schema}.{relation.table}", *table.chain[1:])
        return replace(table, schema=relation.schema, name=relation.table, chain=chain)

    def _made(self, relation: Relation, table: TableInfo | None) -> Table:
        key, is_generated = key_of(self._connection, relation.relation_id)
        flagged = tuple(column.name for column in relation.columns if column.is_key)
        if relation.identity == "d" and flagged and not is_generated and set(key) != set(flagged):
            # The primary key has changed since: the log has the one at that moment.
            key = flagged
        name = f"{relation.schema}.{relation.table}"
        names = (name,) if table is None else table.chain
        columns = [column.name for column in relation.columns]
        if not self.selection.key_columns(names, columns):
            self._require_known_key(relation, table, key)
        topic = self._topic(relation.schema, relation.table)
        constraints = constraints_of(self._connection, relation.relation_id)
        described = Described(
            names, topic, relation.columns, [one for one in key if one in columns], constraints
        )
        reader = RowReader(described, self.catalog.types, self._shaping)
        return Table(self._style, relation, topic, reader)

    def _require_known_key(
        self, relation: Relation, table: TableInfo | None, key: Sequence[str]
    ) -> None:
        """Raise ConnectException if the key of the rows is not known, or only a part of it."""
        name = f"{relation.schema}.{relation.table}"
        if table is None and relation.identity != "d":
            why = (
                f"Table {name} was dropped, and the log does not contain its key because its "
                "replica identity is not the default one"
            )
        elif lacking := set(key) - {column.name for column in relation.columns}:
            why = (
                f"Table {name} lacks {', '.join(sorted(lacking))} of its key in the log: the "
                "column is generated, or was renamed or added since"
            )
        else:
            return
        raise ConnectException(
            f"{why}: name the key in message.key.columns, or exclude the table by "
            "table.exclude.list"
        )

    def set_identities(self, tables: Sequence[TableInfo]) -> None:
        """Set the replica identities that `replica.identity.autoset.values` names."""
        changed = False
        for patterns, kind, index in identities_in(
            self._parsed["replica.identity.autoset.values"] or ""
        ):
            for table in tables:
                if patterns.match(table.full_name):
                    changed |= self._set_identity(table, kind, index)
        if changed:
            self.look_again()

    def _set_identity(self, table: TableInfo, kind: str, index: str | None) -> bool:
        word = kind.split()[0].upper()
        if index is None and table.identity == word[0].lower():
            return False
        what = (
            sql.SQL(word)
            if index is None
            else sql.SQL("USING INDEX {}").format(sql.Identifier(index))
        )
        self._connection.execute(
            sql.SQL("ALTER TABLE {} REPLICA IDENTITY {}").format(
                sql.Identifier(table.schema, table.name), what
            )
        )
        log.warning("replica identity was set table=%s identity=%s", table.full_name, kind)
        return True
