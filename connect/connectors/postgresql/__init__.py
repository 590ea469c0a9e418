"""PostgreSQL's changes as records: a snapshot first, then every insert, update and delete.

Through logical replication (`pgoutput`, wal_level=logical), with Debezium's names: settings, topics
(`prefix.schema.table`), keys, and the envelope of before, after, source, op. Times are Connect's
own types, as with Debezium's time.precision.mode=connect.

`pgoutput.py` reads the log's messages, `rows.py` the values in them, `envelope.py` makes records of
both: all pure. `source_task.py` talks to the server. Needs `millrace[postgresql]`.
"""

from connect.connectors.postgresql.source import PostgresSourceConnector

__all__ = ["PostgresSourceConnector"]
