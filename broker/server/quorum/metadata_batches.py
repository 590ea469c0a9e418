"""Batches of metadata records, made for the log: what is decided together is one batch.

Of very many records it is made in steps, and others come in between.
"""

from collections.abc import Generator, Sequence

from broker.protocol.message import Message
from broker.protocol.records.metadata import encode_metadata_record
from broker.records.build import batch_of_encoded
from broker.records.record import encode_record

RECORDS_PER_STEP = 512
"""Of some seven microseconds each."""


def batch_in_steps(records: Sequence[Message], timestamp_ms: int) -> Generator[None, None, bytes]:
    """Make one batch of all records."""
    payload = bytearray()
    for index, record in enumerate(records):
        if index and not index % RECORDS_PER_STEP:
            yield
        payload += encode_record(index, 0, None, encode_metadata_record(record), ())
    return batch_of_encoded(payload, record_count=len(records), timestamp_ms=timestamp_ms)
