"""Select the captured schemas, tables and columns by Debezium's lists of patterns. Does no IO.

Expressions (`name_patterns.py`) match without regard to case: `schema`, `schema.table` or
`schema.table.column`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from connect.connectors.name_patterns import Patterns
from millstream.connect import ConfigException

_IDENTITY: Final = re.compile(r"([^:]+):\s*(DEFAULT|FULL|NOTHING|INDEX\s+(\S.*))", re.IGNORECASE)
_KEY_COLUMNS: Final = re.compile(r"\s*([^:]+):([^:,]+(?:,[^:,]+)*)\s*")


@dataclass(frozen=True, slots=True)
class _Choice:
    """An include list or an exclude list; without both, every name is selected."""

    included: Patterns | None
    excluded: Patterns | None

    def includes(self, *names: str) -> bool:
        """Return whether one of an object's names is included and none is excluded."""
        if self.included is not None and not any(map(self.included.match, names)):
            return False
        return self.excluded is None or not any(map(self.excluded.match, names))


def _choice(settings: Mapping[str, Any], kind: str) -> _Choice:
    return _Choice(
        Patterns.of(settings[f"{kind}.include.list"]),
        Patterns.of(settings[f"{kind}.exclude.list"]),
    )


class Selection:
    """The lists of one configuration."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """Raise ConfigException for invalid lists."""
        self._schemas, self._tables, self._columns = (
            _choice(settings, kind) for kind in ("schema", "table", "column")
        )
        self._in_snapshot = Patterns.of(settings["snapshot.include.collection.list"])
        self._keys = _key_patterns(settings["message.key.columns"] or "")

    def has_table(self, schema: str, *names: str) -> bool:
        """Return whether a table is captured.

        `names` are its own name and those of the tables of which it is a partition, each as
        `schema.table`.
        """
        return self._schemas.includes(schema) and self._tables.includes(*names)

    def is_in_snapshot(self, *names: str) -> bool:
        return self._in_snapshot is None or any(map(self._in_snapshot.match, names))

    def has_column(self, tables: Sequence[str], column: str) -> bool:
        """Return whether a column of a table with these names is captured."""
        return self._columns.includes(*(f"{table}.{column}" for table in tables))

    def key_columns(self, tables: Sequence[str], columns: Sequence[str]) -> list[str]:
        """Return a table's key columns by message.key.columns; empty if it does not name the
        table."""
        found = [
            column
            for pattern in self._keys
            for column in columns
            if pattern.match(*(f"{table}.{column}" for table in tables))
        ]
        return list(dict.fromkeys(found))


def _key_patterns(text: str) -> list[Patterns]:
    """Return an expression for each column in `table:column,column;table:column`."""
    found: list[Patterns] = []
    for entry in filter(str.strip, text.split(";")):
        match = _KEY_COLUMNS.fullmatch(entry)
        if match is None:
            raise ConfigException.of_value(
                "message.key.columns", text, "Entries are table:column,column, separated by ;"
            )
        table, columns = match.groups()
        found += [Patterns([f"{table.strip()}.{one.strip()}"]) for one in columns.split(",")]
    return found


def identities_in(text: str) -> list[tuple[Patterns, str, str | None]]:
    """Return the tables, identity and index of each entry of replica.identity.autoset.values.

    Raise ConfigException for an invalid entry.
    """
    found: list[tuple[Patterns, str, str | None]] = []
    for entry in filter(str.strip, text.split(",")):
        match = _IDENTITY.fullmatch(entry.strip())
        if match is None:
            raise ConfigException.of_value(
                "replica.identity.autoset.values",
                entry,
                "Entries are table:DEFAULT, table:FULL, table:NOTHING or table:INDEX name",
            )
        found.append((Patterns([match[1].strip()]), match[2], match[3]))
    return found


def mistakes_in(settings: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Yield each setting with an invalid list, or with both lists at once, and the reason."""
    for kind in ("schema", "table", "column"):
        if settings[f"{kind}.include.list"] and settings[f"{kind}.exclude.list"]:
            yield (
                f"{kind}.exclude.list",
                f"{kind}.include.list and {kind}.exclude.list exclude each other: give one.",
            )
    lists = [f"{kind}.{way}.list" for kind in ("schema", "table", "column") for way in _WAYS]
    for name in (*lists, "snapshot.include.collection.list"):
        try:
            Patterns.of(settings[name])
        except ConfigException as error:
            yield name, str(error)
    for name, read in (
        ("message.key.columns", _key_patterns),
        ("replica.identity.autoset.values", identities_in),
    ):
        try:
            read(settings[name] or "")
        except ConfigException as error:
            yield name, str(error)


_WAYS: Final = ("include", "exclude")
