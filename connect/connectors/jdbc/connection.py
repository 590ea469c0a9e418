"""How a database is reached: the settings both connectors share, and the URL they come to."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from connect.local_files import allowed_path
from millrace.connect import ConfigDef, ConfigException, Importance
from millrace.connect.config.types import Type
from millrace.connect.config.validators import NonEmptyString

if TYPE_CHECKING:
    from sqlalchemy import URL, Engine

_DRIVERS = {
    "postgresql": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mysql+pymysql",
}


def with_connection_settings(config: ConfigDef) -> ConfigDef:
    """Add the settings that say which database it is."""
    return (
        config.define(
            "connection.url",
            Type.PASSWORD,
            Importance.HIGH,
            "The database: sqlite:///file.db, postgresql://host/db, or jdbc:... of the same.",
            validator=NonEmptyString(),
            group="Database",
        )
        .define(
            "connection.user",
            Type.STRING,
            Importance.HIGH,
            "Who to be there.",
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
    )


def url_of(settings: Mapping[str, Any]) -> "URL":
    """Return SQLAlchemy's URL of a database; raises ConfigException for what is none."""
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    text: str = settings["connection.url"].value
    name, colon, rest = text.removeprefix("jdbc:").partition(":")
    if text.startswith("jdbc:sqlite") and not rest.startswith("//"):
        rest = f"///{rest}"
    try:
        url = make_url(f"{_DRIVERS.get(name, name)}{colon}{rest}")
    except (ArgumentError, ValueError):
        # The URL may hold a password: it is not repeated.
        raise ConfigException.of_value("connection.url", "[hidden]", "no URL") from None
    told = {key: url.query[key] for key in ("user", "password") if key in url.query}
    url = url.difference_update_query(("user", "password"))
    username = settings["connection.user"] or told.get("user")
    password = settings["connection.password"]
    secret = password.value if password is not None else told.get("password")
    if username is not None:
        url = url.set(username=str(username))
    return url if secret is None else url.set(password=str(secret))


def _require_allowed(url: "URL") -> None:
    """Raises ConfigException for a database of SQLite in a file that the worker does not allow."""
    if "uri" in url.query or (url.database or "").startswith("file:"):
        raise ConfigException(
            "connection.url: SQLite's own URIs (file:...) are not taken: a path is"
        )
    if url.database and url.database != ":memory:":
        allowed_path("connection.url", url.database)


def engine_of(settings: Mapping[str, Any]) -> "Engine":
    """Make what connects; nothing is connected yet. Raises ConfigException."""
    from sqlalchemy import create_engine
    from sqlalchemy.exc import NoSuchModuleError
    from sqlalchemy.pool import NullPool

    url = url_of(settings)
    arguments: dict[str, Any] = {}
    match url.get_backend_name():
        case "sqlite":
            _require_allowed(url)
            # A task that is told to stop is closed from another thread.
            arguments = {"check_same_thread": False, "timeout": 30}
        case "postgresql" if "options" not in url.query:
            # Points in time without a zone are UTC, whatever the server thinks.
            arguments = {"options": "-c timezone=UTC", "connect_timeout": 10}
    try:
        return create_engine(url, poolclass=NullPool, connect_args=arguments)
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        raise ConfigException(f"No driver for {url.drivername} is installed: {error}") from None
