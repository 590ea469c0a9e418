"""Connections to the server, and the replication slot."""

import logging
import re
from collections.abc import Mapping
from typing import Any, Final

import psycopg
from psycopg.conninfo import make_conninfo

from millstream.connect import ConnectException

log = logging.getLogger(__name__)

# values.py reads these formats, whatever the defaults of server, database or user are.
_SESSION: Final = (
    "-c datestyle=ISO -c timezone=UTC -c bytea_output=hex -c extra_float_digits=3 "
    "-c intervalstyle=postgres -c lc_monetary=C -c client_encoding=UTF8"
)
_SLOT: Final = """
SELECT confirmed_flush_lsn - '0/0', wal_status = 'lost' FROM pg_replication_slots
WHERE slot_name = %s
"""
_STATEMENT: Final = re.compile(r"((?:;;|[^;])*)(?:;|$)")
_TLS: Final = ("sslmode", "sslcert", "sslkey", "sslrootcert")


def statements_in(text: str) -> list[str]:
    """Return the statements in `database.initial.statements`; `;;` is one `;` in a statement."""
    found = (match.group(1).replace(";;", ";").strip() for match in _STATEMENT.finditer(text))
    return [statement for statement in found if statement]


def connected(
    parsed: Mapping[str, Any], *, is_replicating: bool = False
) -> psycopg.Connection[Any]:
    """Open a connection. Raise psycopg.Error."""
    told: dict[str, Any] = {name: parsed[f"database.{name}"] for name in _TLS}
    secrets: dict[str, Any] = {
        name: None if parsed[f"database.{name}"] is None else parsed[f"database.{name}"].value
        for name in ("password", "sslpassword")
    }
    where = make_conninfo(
        host=parsed["database.hostname"],
        port=parsed["database.port"],
        user=parsed["database.user"],
        dbname=parsed["database.dbname"],
        connect_timeout=10,
        options=_SESSION,
        replication="database" if is_replicating else None,
        **told,
        **secrets,
    )
    connection = psycopg.connect(where, autocommit=True)
    try:
        for statement in statements_in(parsed["database.initial.statements"] or ""):
            connection.execute(statement.encode())
    except BaseException:
        connection.close()
        raise
    return connection


class Slot:
    """The replication slot of one configuration."""

    def __init__(self, parsed: Mapping[str, Any]) -> None:
        self._parsed = parsed
        self.name: str = parsed["slot.name"]

    def is_there(self, connection: psycopg.Connection[Any]) -> bool:
        return connection.execute(_SLOT, (self.name,)).fetchone() is not None

    def position(self, connection: psycopg.Connection[Any]) -> int | None:
        """Return the confirmed position; None if there is no slot that can be read.

        Drop a slot whose log the server has removed. Raise ConnectException for a physical slot.
        """
        found = connection.execute(_SLOT, (self.name,)).fetchone()
        if found is None:
            return None
        confirmed, is_lost = found
        if confirmed is None:
            raise ConnectException(
                f"The replication slot {self.name} is a physical one, of a standby"
            )
        if not is_lost:
            return int(confirmed)
        log.warning(
            "the server has removed the log of slot %s: a new slot is created, and rows that were "
            "deleted since the last snapshot stay in the topics",
            self.name,
        )
        connection.execute("SELECT pg_drop_replication_slot(%s)", (self.name,))
        return None

    def made(self, replication: psycopg.Connection[Any]) -> tuple[int, str]:
        """Create the slot; return its first position, and the name of the snapshot of that moment.

        The snapshot exists as long as the connection, which uses the replication protocol.
        """
        # This protocol has no parameters; the name has only letters, digits and _.
        command = f'CREATE_REPLICATION_SLOT "{self.name}" LOGICAL pgoutput EXPORT_SNAPSHOT'
        result = replication.pgconn.exec_(command.encode())
        name, lsn = result.get_value(0, 2), result.get_value(0, 1)
        if name is None or lsn is None:
            raise ConnectException(f"The slot cannot be created: {result.error_message.decode()}")
        high, _, low = lsn.decode().partition("/")
        return (int(high, 16) << 32) + int(low, 16), name.decode()

    def advance(self, connection: psycopg.Connection[Any], lsn: int) -> None:
        """Confirm a position, so that the server may remove the log before it."""
        connection.execute(
            "SELECT pg_replication_slot_advance(%s, '0/0'::pg_lsn + %s::numeric)", (self.name, lsn)
        )
