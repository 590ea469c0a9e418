"""Object store sink: records as files in S3, in anything that speaks S3, or in a folder.

Names of the class and its settings are those of Confluent's S3 sink. A file is named for its first
record (`orders+0+0000000042.parquet`), and where files end depends on the records alone: a task
that starts again writes the same files again, so each record is in one file exactly once.

`partitioners.py` says in which folder a record goes, `files.py` where a file ends; both are pure.
`formats.py` writes Parquet, Avro and JSON lines. Needs `millrace[object-store]` (pyarrow), which is
imported when a task starts.
"""

from connect.connectors.object_store.sink import ObjectStoreSinkConnector

__all__ = ["ObjectStoreSinkConnector"]
