"""A `read_committed` consumer that reads a replica's log."""

from functools import lru_cache
from random import Random
from typing import cast

from broker.log.partition_log import PartitionLog
from broker.records.batch import split_batches
from broker.records.control import EndMarker, end_marker
from tests.lib.logs import joined
from tests.sim.transaction_replicas import MAX_BYTES


@lru_cache(maxsize=10_000)
def content_of(data: bytes) -> EndMarker | list[bytes]:
    """Decode a batch, cached: all replicas and all reads have the same batches."""
    (batch,) = split_batches(data)
    if batch.header.is_control:
        (record,) = batch.records()
        marker = end_marker(record)
        assert marker is not None
        return marker
    values = [record.value for record in batch.records()]
    assert None not in values
    return cast("list[bytes]", values)


def read_committed(log: PartitionLog, random: Random) -> list[int]:
    """Return the values that a `read_committed` consumer reads from one replica's log."""
    return [int(value) for value in read_values(log, random)]


def read_values(log: PartitionLog, random: Random) -> list[bytes]:
    """Return the record values that a `read_committed` consumer reads from the log's start."""
    reader = Reader(log.log_start_offset)
    reader.read(log, random)
    return list(reader.found.values())


class Reader:
    """A `read_committed` consumer, which continues at its position on any replica."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.found: dict[int, bytes] = {}
        """The values read so far, by offset."""

    def read(self, log: PartitionLog, random: Random) -> None:
        """Read from the position up to the replica's last stable offset."""
        end_offset = log.last_stable_offset
        while self.offset < end_offset:
            read = log.read(
                self.offset,
                max_bytes=random.choice([1, 400, MAX_BYTES]),
                max_offset=end_offset,
                with_aborted_transactions=True,
            )
            batches = list(split_batches(joined(read.parts)))
            if not batches:
                break
            upcoming = sorted(read.aborted_transactions, key=lambda each: each.first_offset)
            aborted: set[int] = set()
            for batch in batches:
                while upcoming and upcoming[0].first_offset <= batch.last_offset:
                    aborted.add(upcoming.pop(0).producer_id)
                producer_id = batch.header.producer_id
                content = content_of(bytes(batch.buffer))
                if isinstance(content, list):
                    if producer_id not in aborted:
                        self.found.update(enumerate(content, batch.base_offset))
                elif not content.is_commit:
                    aborted.discard(producer_id)
            self.offset = batches[-1].next_offset
