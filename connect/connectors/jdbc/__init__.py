"""JDBC source and sink: tables as topics and topics as tables, through SQLAlchemy.

Names of classes, settings and offsets are those of Confluent's JDBC connectors, so that their
configurations work: `jdbc:postgresql://host/db` and `jdbc:sqlite:file` are understood beside
SQLAlchemy's own URLs. SQLite is always there, PostgreSQL with `millrace[postgresql]`, any other
database with its driver. SQLAlchemy is imported when a task starts, not before.

`source_task.py` reads, `sink_task.py` writes, `table_schemas.py` says which column is which schema.
"""

from connect.connectors.jdbc.sink import JdbcSinkConnector
from connect.connectors.jdbc.source import JdbcSourceConnector

__all__ = ["JdbcSinkConnector", "JdbcSourceConnector"]
