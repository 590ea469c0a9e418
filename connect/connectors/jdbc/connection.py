"""The connection to a database: the settings that both connectors share, and their URL."""

import logging
import sqlite3
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from connect.connectors.jdbc.zones import check_zone
from connect.local_files import allowed_path
from millstream.connect import ConfigDef, ConfigException, Importance
from millstream.connect.config.types import Type
from millstream.connect.config.validators import LambdaValidator, NonEmptyString

if TYPE_CHECKING:
    from sqlalchemy import URL, Engine

    from connect.connectors.jdbc.addresses import Address

log = logging.getLogger(__name__)

_SESSION: Final = "-c timezone=UTC -c datestyle=ISO -c bytea_output=hex -c extra_float_digits=3"
_FILES: Final = ("sslcert", "sslkey", "sslrootcert", "sslcrl", "sslcrldir", "passfile", "service")
LEVELS: Final = (
    "default", "read_uncommited", "read_uncommitted", "read_commited", "read_committed",
    "repeatable_read", "serializable",
)  # fmt: skip
"""Values of transaction.isolation.mode; Confluent's connector spells two of them with one t."""
_LEVELS: Final = {
    name: name.replace("commited", "committed").replace("_", " ").upper() for name in LEVELS[1:]
}


def with_connection_settings(config: ConfigDef) -> ConfigDef:
    """Add the settings of the connection to a definition of settings."""
    return (
        config.define(
            "connection.url",
            Type.PASSWORD,
            Importance.HIGH,
            "The database: sqlite:///file.db, postgresql://host/db, or a JDBC URL.",
            validator=NonEmptyString(),
            group="Database",
        )
        .define(
            "connection.user",
            Type.STRING,
            Importance.HIGH,
            "The name of the database user.",
            default=None,
            group="Database",
        )
        .define(
            "connection.password",
            Type.PASSWORD,
            Importance.HIGH,
            "That user's password.",
            default=None,
            group="Database",
        )
        .define(
            "db.timezone",
            Type.STRING,
            Importance.MEDIUM,
            "The time zone of columns that hold a date and a time without a zone.",
            default="UTC",
            validator=LambdaValidator(check_zone, "a time zone"),
            group="Database",
        )
    )


def address_in(settings: Mapping[str, Any]) -> "Address":
    """Return the address of a database; raise ConfigException if it cannot be understood."""
    from connect.connectors.jdbc.addresses import address_of

    address = address_of(settings["connection.url"].value)
    url = address.url
    told = {key: url.query[key] for key in ("user", "password") if key in url.query}
    url = url.difference_update_query(("user", "password"))
    username = settings["connection.user"] or told.get("user")
    password = settings["connection.password"]
    secret = password.value if password is not None else told.get("password")
    if username is not None:
        url = url.set(username=str(username))
    if secret is not None:
        url = url.set(password=str(secret))
    _require_allowed(url, address.arguments)
    return address._replace(url=url)


def url_of(settings: Mapping[str, Any]) -> "URL":
    """Return SQLAlchemy's URL of a database; raise ConfigException for an invalid address."""
    return address_in(settings).url


def address_mistake(settings: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the setting with an invalid address, and why; None if the address is valid."""
    from sqlalchemy.exc import NoSuchModuleError

    try:
        url = address_in(settings).url
    except ConfigException as error:
        return "connection.url", str(error)
    try:
        url.get_dialect().import_dbapi()
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        return "connection.url", f"connection.url: no driver {url.drivername} is installed: {error}"
    return None


def _require_allowed(url: "URL", arguments: Mapping[str, Any]) -> None:
    """Raise ConfigException for a file that the worker does not allow."""
    for name in _FILES:
        for path in (arguments.get(name), url.query.get(name)):
            if isinstance(path, str) and path:
                allowed_path("connection.url", path)
    if url.get_backend_name() != "sqlite":
        return
    if "uri" in url.query or (url.database or "").startswith("file:"):
        raise ConfigException(
            "connection.url: SQLite's URIs (file:...) are not supported: give a path"
        )
    if url.database and url.database != ":memory:":
        allowed_path("connection.url", url.database)


def engine_of(settings: Mapping[str, Any]) -> "Engine":
    """Return an engine, which is not connected yet. Raise ConfigException."""
    from sqlalchemy import create_engine
    from sqlalchemy.exc import NoSuchModuleError
    from sqlalchemy.pool import NullPool

    url, told, left_out = address_in(settings)
    if left_out:
        log.warning("parameters of the address have no effect names=%s", ", ".join(left_out))
    arguments: dict[str, Any] = dict(told)
    match url.get_backend_name():
        case "sqlite":
            # Another thread closes the connection of a task that stops.
            arguments |= {"check_same_thread": False, "timeout": 30, "factory": _ConfinedConnection}
        case "postgresql":
            # Times without a zone are in db.timezone, so the server's own zone must not count.
            # libpq takes all options as one string: those of the address come first.
            options = arguments.get("options") or url.query.get("options") or ""
            url = url.difference_update_query(("options",))
            arguments["options"] = f"{options} {_SESSION}".strip()
            if "connect_timeout" not in url.query:
                arguments.setdefault("connect_timeout", 10)
        case _:
            pass
    level = _LEVELS.get(settings.get("transaction.isolation.mode", "").lower())
    try:
        return create_engine(
            url,
            poolclass=NullPool,
            connect_args=arguments,
            **({} if level is None else {"isolation_level": level}),
        )
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        raise ConfigException(f"No driver for {url.drivername} is installed: {error}") from None


class _ConfinedConnection(sqlite3.Connection):
    """A connection that opens no file besides its database.

    A source's `query` may be any statement, and ATTACH or VACUUM INTO could read and write files
    outside the worker's `file.allowed.directories`. It refuses ATTACH, and therefore VACUUM, with
    the error "not authorized".
    """

    def __init__(self, *told: Any, **more: Any) -> None:
        super().__init__(*told, **more)
        self.set_authorizer(_authorized)


def _authorized(action: int, *_: Any) -> int:
    return sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_ATTACH else sqlite3.SQLITE_OK
