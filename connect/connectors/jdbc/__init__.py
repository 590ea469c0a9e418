"""JDBC source and sink: tables as topics and topics as tables, through SQLAlchemy.

Names of classes, settings and offsets are those of Confluent's JDBC connectors, so that their
configurations work: `jdbc:postgresql://host/db` and `jdbc:sqlite:file` are understood beside
SQLAlchemy's own URLs. SQLite is always there, PostgreSQL with `millrace[postgresql]`, any other
database with its driver. SQLAlchemy is imported when a task starts, not before.

`addresses.py` reads addresses, `table_lists.py` says which tables there are, `source_task.py` reads
them, `sink_task.py` writes; `table_schemas.py` says which column is which schema, `zones.py` and
`moments.py` which moment a date and time is. SOURCE-SETTINGS.md and SINK-SETTINGS.md say what
becomes of each of the originals' settings.
"""

from connect.connectors.jdbc.sink import JdbcSinkConnector
from connect.connectors.jdbc.source import JdbcSourceConnector

__all__ = ["JdbcSinkConnector", "JdbcSourceConnector"]
