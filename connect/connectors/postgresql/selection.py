"""Which schemas, tables and columns are captured, by the original's lists of patterns. Pure.

A list holds regular expressions with commas between (`\\,` is a comma inside of one). Each has to
match the whole name, in any case: `schema`, `schema.table` or `schema.table.column`. The
expressions are RE2's, which no name can slow down; a look-ahead or a back-reference is refused.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import re2

from millrace.connect import ConfigException

_COMMA: Final = re.compile(r"((?:\\.|[^\\,])*)(?:,|$)", re.DOTALL)
_KEY_COLUMNS: Final = re.compile(r"\s*([^:]+):([^:,]+(?:,[^:,]+)*)\s*")


def patterns_in(text: str) -> list[str]:
    """Return the expressions of a list."""
    parts = [match.group(1) for match in _COMMA.finditer(text)]
    return [part.strip().replace("\\,", ",") for part in parts if part.strip()]


class Patterns:
    """Some expressions; a name matches when it is all of what one of them stands for."""

    def __init__(self, texts: Iterable[str]) -> None:
        """Raises ConfigException for what is no expression of RE2."""
        options = re2.Options()
        options.case_sensitive = False
        options.log_errors = False
        self._compiled: list[Any] = []
        for text in texts:
            try:
                self._compiled.append(re2.compile(text, options))
            except re2.error as error:
                said = error.args[0] if error.args else ""
                said = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
                raise ConfigException(
                    f"{text} is no regular expression of RE2 (which has neither look-ahead nor "
                    f"back-references): {said}"
                ) from None

    @classmethod
    def of(cls, text: str | None) -> Self | None:
        """Return the expressions of a list; None when there is none."""
        texts = patterns_in(text or "")
        return cls(texts) if texts else None

    def match(self, name: str) -> bool:
        return any(one.fullmatch(name) is not None for one in self._compiled)


@dataclass(frozen=True, slots=True)
class _Choice:
    """An include list or an exclude list; with neither, everything is chosen."""

    included: Patterns | None
    excluded: Patterns | None

    def includes(self, *names: str) -> bool:
        """Tell whether one of a thing's names is included and none is excluded."""
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
        """Raises ConfigException."""
        self._schemas, self._tables, self._columns = (
            _choice(settings, kind) for kind in ("schema", "table", "column")
        )
        self._in_snapshot = Patterns.of(settings["snapshot.include.collection.list"])
        self._keys = _key_patterns(settings["message.key.columns"] or "")

    def has_table(self, schema: str, *names: str) -> bool:
        """Tell whether a table is captured; `names` are its own and those of tables it is part of.

        Each is `schema.table`.
        """
        return self._schemas.includes(schema) and self._tables.includes(*names)

    def is_in_snapshot(self, *names: str) -> bool:
        return self._in_snapshot is None or any(map(self._in_snapshot.match, names))

    def has_column(self, table: str, column: str) -> bool:
        return self._columns.includes(f"{table}.{column}")

    def key_columns(self, table: str, columns: Sequence[str]) -> list[str]:
        """Return the columns that message.key.columns makes a table's key; none when it does not
        name the table."""
        found = [
            column
            for pattern in self._keys
            for column in columns
            if pattern.match(f"{table}.{column}")
        ]
        return list(dict.fromkeys(found))


def _key_patterns(text: str) -> list[Patterns]:
    """Return an expression for each column of `table:column,column;table:column`."""
    found: list[Patterns] = []
    for entry in filter(str.strip, text.split(";")):
        match = _KEY_COLUMNS.fullmatch(entry)
        if match is None:
            raise ConfigException.of_value(
                "message.key.columns", text, "Entries are table:column,column with ; between"
            )
        table, columns = match.groups()
        found += [Patterns([f"{table.strip()}.{one.strip()}"]) for one in columns.split(",")]
    return found


def mistakes_in(settings: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Give each setting whose list is wrong, or is there beside its opposite, and why."""
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
    try:
        _key_patterns(settings["message.key.columns"] or "")
    except ConfigException as error:
        yield "message.key.columns", str(error)


_WAYS: Final = ("include", "exclude")
