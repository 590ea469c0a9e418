"""Encodes metadata records for the log: the records of one decision are one batch.

A batch of very many records is made in steps, so that other requests are served in between.
"""

from collections.abc import Generator, Sequence

from broker.records.build import batch_of_encoded
from broker.records.record import encode_record
from common.kafka.protocol.message import Message
from common.kafka.protocol.records.metadata import encode_metadata_record

RECORDS_PER_STEP = 512
"""One record takes about seven microseconds."""


def batch_in_steps(records: Sequence[Message], timestamp_ms: int) -> Generator[None, None, bytes]:
    """Make one batch of all records."""
    payload = bytearray()
    for index, record in enumerate(records):
        if index and not index % RECORDS_PER_STEP:
            yield
        payload += encode_record(index, 0, None, encode_metadata_record(record), ())
    return batch_of_encoded(payload, record_count=len(records), timestamp_ms=timestamp_ms)
