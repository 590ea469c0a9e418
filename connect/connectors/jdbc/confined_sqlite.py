"""A connection to SQLite that opens no other file than its database.

A source's `query` is any statement, and ATTACH or VACUUM INTO would read and write files that the
worker's `file.allowed.directories` does not name.
"""

import sqlite3
from typing import Any


class ConfinedConnection(sqlite3.Connection):
    """Refuses ATTACH, and with it VACUUM, as "not authorized"."""

    def __init__(self, *told: Any, **more: Any) -> None:
        super().__init__(*told, **more)
        self.set_authorizer(_authorized)


def _authorized(action: int, *_: Any) -> int:
    return sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_ATTACH else sqlite3.SQLITE_OK
