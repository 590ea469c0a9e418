"""A connection to SQLite that opens no file besides its database.

A source's `query` may be any statement. ATTACH or VACUUM INTO could read and write files outside
the worker's `file.allowed.directories`.
"""

import sqlite3
from typing import Any


class ConfinedConnection(sqlite3.Connection):
    """Refuses ATTACH, and therefore VACUUM, with the error "not authorized"."""

    def __init__(self, *told: Any, **more: Any) -> None:
        super().__init__(*told, **more)
        self.set_authorizer(_authorized)


def _authorized(action: int, *_: Any) -> int:
    return sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_ATTACH else sqlite3.SQLITE_OK
