"""The shop's database: products, stock and customers, which connectors copy to topics.

It is SQLite or PostgreSQL. Connectors find changes by time, so every row has a time that triggers
set at each write. Existing tables and rows of other programs are kept.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from sqlalchemy import (
    DDL,
    BigInteger,
    Column,
    ColumnElement,
    DateTime,
    Engine,
    MetaData,
    Table,
    Text,
    create_engine,
    event,
    make_url,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.pool import NullPool

_SQLITE_NOW = "strftime('%Y-%m-%d %H:%M:%f', 'now')"
# Not now(), which is the start of the transaction: connectors could miss the change.
_POSTGRESQL_NOW = "timezone('utc', clock_timestamp())"
_SQLITE_TRIGGER = """
CREATE TRIGGER {table}_touched AFTER UPDATE OF {columns} ON {table} BEGIN
    UPDATE {table} SET updated_at = {now} WHERE {key} = new.{key};
END
"""
_POSTGRESQL_TRIGGER = """
CREATE OR REPLACE FUNCTION {table}_touched() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.updated_at := {now};
    RETURN NEW;
END $$;
CREATE TRIGGER {table}_touched BEFORE UPDATE ON {table}
    FOR EACH ROW EXECUTE FUNCTION {table}_touched();
"""


class _UtcNow(ColumnElement[Any]):
    """Return SQL for the current time without a zone."""

    inherit_cache = True
    type = DateTime()


@compiles(_UtcNow, "sqlite")
def _sqlite_now(*_: Any, **__: Any) -> str:
    return _SQLITE_NOW


@compiles(_UtcNow, "postgresql")
def _postgresql_now(*_: Any, **__: Any) -> str:
    return _POSTGRESQL_NOW


def _table(name: str, key: str, *columns: Column[Any]) -> Table:
    made = Table(
        name,
        _TABLES,
        Column(key, Text, primary_key=True),
        *columns,
        Column("updated_at", DateTime, nullable=False, server_default=_UtcNow()),
    )
    told = {"table": name, "key": key, "columns": ", ".join(column.name for column in columns)}
    for dialect, text, now in (
        ("sqlite", _SQLITE_TRIGGER, _SQLITE_NOW),
        ("postgresql", _POSTGRESQL_TRIGGER, _POSTGRESQL_NOW),
    ):
        # DDL treats percent signs as placeholders, so they are doubled.
        statement = text.format(**told, now=now).replace("%", "%%")
        made_by: Any = DDL
        event.listen(made, "after_create", made_by(statement).execute_if(dialect=dialect))
    return made


_TABLES = MetaData()
_PRODUCTS = _table("products", "product_id", Column("description", Text, nullable=False))
_STOCK = _table("stock", "product_id", Column("quantity", BigInteger, nullable=False))
_CUSTOMERS = _table(
    "customers",
    "customer_id",
    Column("name", Text, nullable=False),
    Column("email", Text, nullable=False),
    Column("country", Text),
)


def fill_shop(
    url: str, catalogue: Mapping[str, tuple[str, int]], customer_ids: Iterable[str]
) -> None:
    """Write products, stock and customers; `url` is SQLAlchemy's. Raise SQLAlchemyError."""
    rows: dict[Table, list[dict[str, Any]]] = {
        _PRODUCTS: [
            {"product_id": product_id, "description": description}
            for product_id, (description, _) in catalogue.items()
        ],
        _STOCK: [
            {"product_id": product_id, "quantity": quantity}
            for product_id, (_, quantity) in catalogue.items()
        ],
        _CUSTOMERS: [
            {
                "customer_id": customer_id,
                "name": f"Customer {customer_id}",
                "email": f"{customer_id}@customers.example",
                "country": None,
            }
            for customer_id in sorted(set(customer_ids))
        ],
    }
    engine = _engine(url)
    _TABLES.create_all(engine)
    with engine.begin() as connection:
        for table, wanted in rows.items():
            if wanted:
                connection.execute(_upsert(engine, table), wanted)


def _engine(url: str) -> Engine:
    told = make_url(url)
    if told.drivername == "postgresql":
        told = told.set(drivername="postgresql+psycopg")
    return create_engine(told, poolclass=NullPool)


def _upsert(engine: Engine, table: Table) -> Any:
    dialect = cast(Any, sqlite if engine.dialect.name == "sqlite" else postgresql)
    statement = dialect.insert(table)
    keys: Sequence[str] = [column.name for column in table.primary_key]
    kept = {*keys, "updated_at"}
    changed = {
        column.name: statement.excluded[column.name]
        for column in table.columns
        if column.name not in kept
    }
    return statement.on_conflict_do_update(
        index_elements=keys, set_={**changed, "updated_at": _UtcNow()}
    )
