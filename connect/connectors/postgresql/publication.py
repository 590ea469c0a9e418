"""The publication: the tables whose changes the server sends.

The connector creates it and checks it by `publication.autocreate.mode`, as Debezium does:

- `all_tables`: creates a publication of all tables if there is none; does not change one.
- `filtered`: creates a publication of the captured tables, and adds missing tables to one. Debezium
  also removes all other tables. Here they stay, because they may belong to another connector.
- `disabled`: the publication must exist.
- `no_tables`: creates a publication without tables if there is none; its owner adds tables.

At every start, and while the log is empty, the connector reports captured tables that are not in
the publication: a change that is not published is lost for ever.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

import psycopg
from psycopg import sql

from connect.connectors.postgresql.catalog import TableInfo
from millstream.connect import ConnectException

log = logging.getLogger(__name__)

_LOOK: Final = """
SELECT puballtables, pubinsert, pubupdate, pubdelete, pubtruncate, pubviaroot
FROM pg_publication WHERE pubname = %s
"""
_HAS: Final = "SELECT schemaname, tablename FROM pg_publication_tables WHERE pubname = %s"
# Servers before version 15 have neither of these columns.
_FILTERED: Final = """
SELECT r.prrelid FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid
WHERE p.pubname = %s AND
  (to_jsonb(r)->>'prqual' IS NOT NULL OR to_jsonb(r)->>'prattrs' IS NOT NULL)
"""
_OPERATIONS: Final = (("insert", "c"), ("update", "u"), ("delete", "d"), ("truncate", "t"))


class Publication:
    """Owns the publication of one configuration."""

    def __init__(self, parsed: Mapping[str, Any]) -> None:
        self._name: str = parsed["publication.name"]
        self._mode: str = parsed["publication.autocreate.mode"]
        self._is_via_root: bool = parsed["publish.via.partition.root"]
        self._skipped = parsed["skipped.operations"]

    def is_via_root(self, connection: psycopg.Connection[Any]) -> bool:
        """Return whether changes of partitions have the name of their root table.

        An existing publication decides this itself; for a new one the setting counts.
        """
        row = connection.execute(_LOOK, (self._name,)).fetchone()
        if row is None or (self._is_via_root and not row[5] and self._is_ours):
            return self._is_via_root
        return bool(row[5])

    @property
    def _is_ours(self) -> bool:
        """Whether the mode allows the connector to create and change the publication."""
        return self._mode in ("all_tables", "filtered")

    def prepare(self, connection: psycopg.Connection[Any], tables: Sequence[TableInfo]) -> bool:
        """Create the publication or correct it. Return whether it existed before.

        Raise ConnectException if it lacks what the configuration needs and must not be changed.
        """
        row = connection.execute(_LOOK, (self._name,)).fetchone()
        if row is None:
            self._make(connection, tables)
            return False
        self._check(connection, row)
        lacking = self.lacking(connection, tables)
        if lacking and self._mode == "filtered":
            self.add(connection, lacking)
        elif lacking and self._mode != "no_tables":
            raise ConnectException(
                f"The publication {self._name} lacks {_names(lacking)}, whose changes "
                f"would be lost: ALTER PUBLICATION {self._name} ADD TABLE ..., or set "
                "publication.autocreate.mode to filtered, or give the connector a "
                "publication.name of its own"
            )
        return True

    def _make(self, connection: psycopg.Connection[Any], tables: Sequence[TableInfo]) -> None:
        name = sql.Identifier(self._name)
        root = sql.SQL(" WITH (publish_via_partition_root = true)" if self._is_via_root else "")
        what: sql.SQL | sql.Composed
        match self._mode:
            case "disabled":
                raise ConnectException(
                    f"There is no publication {self._name}, and publication.autocreate.mode is "
                    "disabled: make it and restart the connector"
                )
            case "all_tables":
                what = sql.SQL(" FOR ALL TABLES")
            case "filtered":
                if not tables:
                    raise ConnectException(
                        "No table of the database matches the lists of schemas and tables, "
                        "so a publication of them cannot be created"
                    )
                what = sql.SQL(" FOR TABLE {}").format(sql.SQL(", ").join(_only(tables)))
            case _:
                what = sql.SQL("")
        try:
            connection.execute(sql.SQL("CREATE PUBLICATION {}{}{}").format(name, what, root))
        except psycopg.errors.InsufficientPrivilege as error:
            raise ConnectException(
                f"The publication {self._name} cannot be made, which takes a superuser for "
                "all_tables and an owner of the tables for filtered: set "
                "publication.autocreate.mode to filtered, or make it and set disabled. "
                f"PostgreSQL says: {error}"
            ) from None
        log.info("publication was created name=%s mode=%s", self._name, self._mode)

    def _check(self, connection: psycopg.Connection[Any], row: tuple[Any, ...]) -> None:
        is_all, *published, is_via_root = row
        if is_all and self._mode == "filtered":
            raise ConnectException(
                f"The publication {self._name} is one of all tables, and cannot be filtered: set "
                "publication.autocreate.mode to all_tables, or give another publication.name"
            )
        silent = [
            word
            for (word, letter), is_told in zip(_OPERATIONS, published, strict=True)
            if not is_told and letter not in self._skipped
        ]
        if silent:
            raise ConnectException(
                f"The publication {self._name} does not publish each {' and '.join(silent)}, which "
                f"would be lost: ALTER PUBLICATION {self._name} SET (publish = ...), or name the "
                "operations in skipped.operations"
            )
        if self._is_via_root and not is_via_root:
            if not self._is_ours:
                raise ConnectException(
                    f"publish.via.partition.root is true, but the publication {self._name} has "
                    f"partitions' own names: ALTER PUBLICATION {self._name} SET "
                    "(publish_via_partition_root = true)"
                )
            name = sql.Identifier(self._name)
            set_root = sql.SQL("ALTER PUBLICATION {} SET (publish_via_partition_root = true)")
            connection.execute(set_root.format(name))
            log.warning("publication was changed to publish_via_partition_root name=%s", self._name)

    def lacking(
        self, connection: psycopg.Connection[Any], tables: Sequence[TableInfo]
    ) -> list[TableInfo]:
        """Return the tables that the publication lacks."""
        found = connection.execute(_HAS, (self._name,)).fetchall()
        told = {f"{schema}.{table}" for schema, table in found}
        return [table for table in tables if table.full_name not in told]

    def filtered(
        self, connection: psycopg.Connection[Any], tables: Sequence[TableInfo]
    ) -> list[TableInfo]:
        """Return the tables of which the publication leaves out rows or columns."""
        found = {number for (number,) in connection.execute(_FILTERED, (self._name,)).fetchall()}
        return [table for table in tables if table.relation_id in found]

    @property
    def mends(self) -> bool:
        """Whether the connector adds missing tables."""
        return self._mode == "filtered"

    def add(self, connection: psycopg.Connection[Any], tables: Sequence[TableInfo]) -> None:
        added = sql.SQL("ALTER PUBLICATION {} ADD TABLE {}").format(
            sql.Identifier(self._name), sql.SQL(", ").join(_only(tables))
        )
        connection.execute(added)
        log.warning("publication has new tables name=%s tables=%s", self._name, _names(tables))


def _only(tables: Sequence[TableInfo]) -> list[sql.Composed]:
    """Return an SQL list of tables without the tables that inherit from them."""
    return [
        sql.SQL("{}" if table.is_partitioned else "ONLY {}").format(
            sql.Identifier(table.schema, table.name)
        )
        for table in tables
    ]


def _names(tables: Sequence[TableInfo]) -> str:
    return ", ".join(table.full_name for table in tables)
