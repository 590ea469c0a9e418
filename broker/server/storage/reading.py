"""Reading a log from its start to its end, for the state machines that are rebuilt from one."""

from collections.abc import Iterator

from broker.log.partition_log import PartitionLog
from broker.records.batch import RecordBatch, split_batches
from broker.records.errors import CorruptBatch

CHUNK_BYTES = 128 * 1024
"""About a thousand batches of one small record: finding them takes some milliseconds."""


def batches_in_pieces(log: PartitionLog, end_offset: int) -> Iterator[list[RecordBatch]]:
    """Yield the batches below an offset, oldest first, 128 KiB at a time.

    Raises CorruptBatch or KafkaError for damaged bytes.
    """
    offset = log.log_start_offset
    while offset < end_offset:
        read = log.read(offset, max_bytes=CHUNK_BYTES, max_offset=end_offset)
        chunk = b"".join(part if isinstance(part, bytes) else part.read() for part in read.parts)
        piece = list(split_batches(chunk))
        for batch in piece:
            if not batch.has_valid_crc:
                raise CorruptBatch(f"batch {batch.base_offset} fails its CRC")
        if not piece:
            if read.size_bytes:
                raise CorruptBatch(f"no whole batch at offset {offset}")
            return
        yield piece
        offset = piece[-1].next_offset
