"""Reading a log from its start to its end, for the state machines that are rebuilt from one."""

from collections.abc import Iterator

from broker.log.partition_log import PartitionLog
from broker.records.batch import RecordBatch, split_batches

CHUNK_BYTES = 1024 * 1024


def committed_batches(log: PartitionLog) -> Iterator[RecordBatch]:
    """Yield every batch below the high watermark, oldest first, reading 1 MiB at a time."""
    offset = log.log_start_offset
    while offset < log.high_watermark:
        read = log.read(offset, max_bytes=CHUNK_BYTES, max_offset=log.high_watermark)
        chunk = b"".join(part if isinstance(part, bytes) else part.read() for part in read.parts)
        batch = None
        for batch in split_batches(chunk):
            yield batch
        if batch is None:
            return
        offset = batch.next_offset
