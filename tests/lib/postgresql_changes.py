"""A task of PostgresSource with a real server, and a replacement of the worker."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from connect.connectors.postgresql.source import PostgresSourceConnector
from millstream.connect import SourceRecord
from tests.lib.connect_tasks import Kept, started_source
from tests.lib.postgresql import PostgreSql


@contextmanager
def emptied(server: PostgreSql) -> Iterator[psycopg.Connection[Any]]:
    """Yield a connection to a database without tables, publications and slots."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        # Connections of a failed test hold locks and slots.
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE pid <> "
            "pg_backend_pid() AND backend_type IN ('client backend', 'walsender')"
        )
        connection.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")
        for (name,) in connection.execute("SELECT pubname FROM pg_publication").fetchall():
            connection.execute(f'DROP PUBLICATION "{name}"'.encode())
        schemas = """SELECT nspname FROM pg_namespace
            WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'"""
        for (name,) in connection.execute(schemas).fetchall():
            connection.execute(f'DROP SCHEMA "{name}" CASCADE'.encode())
        connection.execute("CREATE SCHEMA public")
        yield connection


class Reader:
    """A task, whose offsets and confirmations this class handles instead of a worker."""

    def __init__(
        self,
        server: PostgreSql,
        kept: Kept | None = None,
        more: dict[str, str] | None = None,
        **settings: str,
    ) -> None:
        self._kept = kept = Kept() if kept is None else kept
        told = {name.replace("_", "."): value for name, value in settings.items()}
        config = {
            "database.hostname": "127.0.0.1",
            "database.port": str(server.port),
            "database.user": "postgres",
            "database.dbname": "postgres",
            "topic.prefix": "shop",
            "slot.name": "s",
            "publication.name": "p",
            "poll.interval.ms": "1",
            **told,
            **(more or {}),
        }
        self.task = started_source(PostgresSourceConnector(), config, kept)

    def read(self, count: int, *, confirmed: int | None = None) -> list[SourceRecord]:
        """Poll until so many records arrived; only the first `confirmed` are confirmed."""
        records: list[SourceRecord] = []
        for _ in range(200):
            polled: Any = self.task.poll()
            for record in polled or []:
                records.append(record)
                if confirmed is None or len(records) <= confirmed:
                    self.task.commit_record(record, None)
                    self._kept.keep(record)
            if len(records) >= count:
                break
        assert len(records) == count, records
        return records

    def is_quiet(self) -> bool:
        return not any(self.task.poll() for _ in range(3))
