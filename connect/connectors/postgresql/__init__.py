"""PostgreSQL's changes as records: a snapshot first, then every insert, update and delete.

Through logical replication (`pgoutput`, wal_level=logical), with Debezium's names: settings, topics
(`prefix.schema.table`), keys, schemas of values, and the envelope of before, after, source, op.
SETTINGS.md says what becomes of each of Debezium's settings.

Pure: `selection.py` says which tables and columns are captured, `pgoutput.py` reads the log's
messages, `types.py`, `values.py`, `clocks.py` and `temporal.py` the values in them, `rows.py` makes
rows of those and `envelope.py` records. `source_task.py` talks to the server: `server.py` connects,
`catalog.py` asks for tables and keys, `publication.py` has them published, `snapshot.py` and
`log_reader.py` read. Needs `millrace[postgresql]`.
"""

from connect.connectors.postgresql.source import PostgresSourceConnector

__all__ = ["PostgresSourceConnector"]
