"""Object store sink: writes records to files in S3, in a store compatible with S3, or in a folder.

The names of the class and its settings are those of Confluent's S3 sink. A file has the name of its
first record (`orders+0+0000000042.parquet`). Only the records decide where a file ends, so a task
that restarts writes the same files again, and each record is in exactly one file. Two settings use
the clock and are exceptions: `rotate.schedule.interval.ms` and `timestamp.extractor=Wallclock`.

`files.py` names the folder of a record and decides where a file ends, without IO. `formats.py`
writes Parquet, Avro, JSON lines and bytes. The connector needs `millstream[object-store]`
(pyarrow), which is imported when a task starts.
"""

from connect.connectors.object_store.sink import ObjectStoreSinkConnector

__all__ = ["ObjectStoreSinkConnector"]
