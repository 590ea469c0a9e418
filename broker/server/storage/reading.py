"""Reading a log from its start to its end, for the state machines that are rebuilt from one."""

from collections.abc import Iterator

from broker.log.partition_log import PartitionLog
from broker.records.batch import RecordBatch, split_batches
from broker.records.errors import CorruptBatch

CHUNK_BYTES = 1024 * 1024


def committed_batches(log: PartitionLog) -> Iterator[RecordBatch]:
    """Yield every batch below the high watermark, oldest first, reading 1 MiB at a time.

    Raises CorruptBatch or KafkaError for what is not as it was written.
    """
    offset = log.log_start_offset
    while offset < log.high_watermark:
        read = log.read(offset, max_bytes=CHUNK_BYTES, max_offset=log.high_watermark)
        chunk = b"".join(part if isinstance(part, bytes) else part.read() for part in read.parts)
        batch = None
        for batch in split_batches(chunk):
            if not batch.has_valid_crc:
                raise CorruptBatch(f"batch {batch.base_offset} fails its CRC")
            yield batch
        if batch is None:
            if read.size_bytes:
                raise CorruptBatch(f"no whole batch at offset {offset}")
            return
        offset = batch.next_offset
