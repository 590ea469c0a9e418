"""Classify database errors: those that a retry may cure, and all others."""

import re
import sqlite3
from typing import Final

from sqlalchemy.exc import DataError, DBAPIError, IntegrityError

from millstream.connect import ConnectException

_PASSING_CLASSES: Final = ("08", "40", "53", "57")
"""Classes of SQLSTATE: connection, transaction rollback, insufficient resources, operator.

(PostgreSQL's documentation, appendix A.)
"""
_LOCKED: Final = "55P03"
_OF_VALUES: Final = ("42804", "428C9")
"""A value of another type than its column, and a value for a column that is always generated."""
_NO_CONNECTION: Final = re.compile(
    "starting up|shutting down|recovery|too many|slots are reserved|terminating connection"
)
_SQLITE_PASSING: Final = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_NOMEM,
    }
)


def may_pass(error: DBAPIError) -> bool:
    """Return whether a retry may succeed: the database is unreachable, busy or out of resources."""
    original = error.orig
    if error.connection_invalidated:
        return True
    if isinstance(original, sqlite3.Error):
        # The lowest byte of SQLite's extended code is the primary code.
        return (getattr(original, "sqlite_errorcode", 0) & 0xFF) in _SQLITE_PASSING
    state = getattr(original, "sqlstate", None)
    if state:
        return state[:2] in _PASSING_CLASSES or state == _LOCKED
    if type(error).__name__ not in ("OperationalError", "InterfaceError", "InternalError"):
        return False
    return not _is_turned_away(str(original))


def _is_turned_away(text: str) -> bool:
    """Return whether a server refused the connection, for example for a wrong password."""
    if "invalid connection option" in text or "does not support SSL" in text:
        return True
    return "FATAL:" in text and _NO_CONNECTION.search(text) is None


def is_of_row(error: Exception) -> bool:
    """Return whether a row is refused for its values, so that other rows may be written.

    The connector itself raises ConnectException for a row that its table cannot hold, and drivers
    raise UnicodeError for a text that is not valid Unicode.
    """
    if isinstance(error, IntegrityError | DataError | ConnectException | UnicodeError):
        return True
    original = error.orig if isinstance(error, DBAPIError) else None
    return getattr(original, "sqlstate", None) in _OF_VALUES


def said_by(error: Exception) -> str:
    """Return the database's message without the statement and its values, which SQLAlchemy adds."""
    if isinstance(error, UnicodeError):
        return f"a text is not valid Unicode: {error}"
    return " ".join(str(error.orig if isinstance(error, DBAPIError) else error).split())
