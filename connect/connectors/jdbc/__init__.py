"""JDBC source and sink: they copy tables to topics and topics to tables, through SQLAlchemy.

The names of classes, settings and offsets are those of Confluent's JDBC connectors, so their
configurations work: a URL may be `jdbc:postgresql://host/db`, `jdbc:sqlite:file` or SQLAlchemy's
own. SQLite needs no driver, PostgreSQL needs `millstream[postgresql]`, any other database its
driver. SQLAlchemy is imported when a task starts.

`addresses.py` parses addresses, `table_lists.py` finds the tables, `source_task.py` reads them and
`sink_task.py` writes. `table_schemas.py` maps columns to schemas, and `debezium.py` writes what
Debezium's types mean; `zones.py` maps
dates and times to points in time. SOURCE-SETTINGS.md and SINK-SETTINGS.md list the outcome of each
setting of Confluent's connectors.
"""

from connect.connectors.jdbc.sink import JdbcSinkConnector
from connect.connectors.jdbc.source import JdbcSourceConnector

__all__ = ["JdbcSinkConnector", "JdbcSourceConnector"]
