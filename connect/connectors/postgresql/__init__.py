"""Read PostgreSQL's changes as records: a snapshot first, then every insert, update and delete.

The connector uses logical replication (`pgoutput`, wal_level=logical). Its settings, topics
(`prefix.schema.table`), keys, schemas of values and the envelope of before, after, source and op
are those of Debezium. SETTINGS.md lists the outcome of each of Debezium's settings.

These modules do no IO: `selection.py` selects tables and columns, `pgoutput.py` parses the log's
messages, `types.py`, `values.py` and `clocks.py` parse values, `rows.py` builds rows with
the defaults of columns, and `envelope.py` records. These talk to the server: `source_task.py`
runs the task, `server.py` connects, `catalog.py` reads tables and keys, `publication.py` maintains
the publication, and `snapshot.py` and `log_reader.py` read rows and changes. `masks.py` and
`names.py` do no IO either; `capture.py` has the tables of a connection, `heartbeat.py` its
heartbeats. `source.py` is the connector, `settings.py` and `outcomes.py` have its settings,
`refusals.py` what cannot become a record. It needs `millstream[postgresql]`.
"""
