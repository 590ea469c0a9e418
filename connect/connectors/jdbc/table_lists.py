"""Find the tables of a database that the settings select."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

from connect.connectors.name_patterns import Patterns
from millstream.connect import ConfigException

if TYPE_CHECKING:
    from sqlalchemy import Engine, Inspector

_OF_SERVER: Final = ("information_schema", "pg_catalog", "pg_toast")


def patterns_of(parsed: Mapping[str, Any], name: str) -> Patterns:
    """Return the expressions of a list. Raise ConfigException."""
    return Patterns(parsed[name], is_case_sensitive=True)


def list_mistake(parsed: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the name of a list with an invalid expression, and why; None if both are valid."""
    for name in ("table.include.list", "table.exclude.list"):
        try:
            patterns_of(parsed, name)
        except ConfigException as error:
            return name, str(error)
    return None


def tables_in(engine: "Engine", parsed: Mapping[str, Any]) -> list[str]:
    """Return the tables to read: their names, with the schema unless it is the default one.

    `table.whitelist` and `table.blacklist` contain names, also of tables that do not exist;
    `table.include.list` and `table.exclude.list` contain expressions. Each may match table,
    schema.table or database.schema.table.
    """
    from sqlalchemy import inspect

    named, unnamed = set(parsed["table.whitelist"]), set(parsed["table.blacklist"])
    if named:
        return sorted(name for name in named if is_there(engine, name))
    included = patterns_of(parsed, "table.include.list") if parsed["table.include.list"] else None
    excluded = patterns_of(parsed, "table.exclude.list")
    found: list[str] = []
    for schema, name, is_default in _tables(inspect(engine), parsed):
        whole = name if schema is None else f"{schema}.{name}"
        names = (name, whole, f"{engine.url.database}.{whole}")
        if unnamed.intersection(names) or excluded.match(*names):
            continue
        if included is None or included.match(*names):
            found.append(name if is_default else whole)
    return sorted(found)


def is_there(engine: "Engine", name: str) -> bool:
    """Return whether a table or view with this name exists: table or schema.table."""
    from sqlalchemy import inspect

    schema, _, table = name.rpartition(".")
    return bool(inspect(engine).has_table(table, schema=schema or None))


def _tables(
    inspector: "Inspector", parsed: Mapping[str, Any]
) -> Iterator[tuple[str | None, str, bool]]:
    """Yield the schema and name of each table, and whether the schema is the default one."""
    pattern = parsed["schema.pattern"]
    default = inspector.default_schema_name
    for schema in inspector.get_schema_names():
        if schema in _OF_SERVER or schema.startswith("pg_"):
            continue
        if pattern and not _is_like(schema, pattern):
            continue
        is_default = schema == default and not pattern
        if "TABLE" in parsed["table.types"]:
            for name in inspector.get_table_names(schema=schema):
                yield schema, name, is_default
        if "VIEW" in parsed["table.types"]:
            for name in inspector.get_view_names(schema=schema):
                yield schema, name, is_default


def _is_like(name: str, pattern: str) -> bool:
    """Return whether a name matches a pattern of SQL's LIKE."""
    escaped = pattern.replace("[", "[[]").replace("*", "[*]").replace("?", "[?]")
    return fnmatchcase(name, escaped.replace("%", "*").replace("_", "?"))
