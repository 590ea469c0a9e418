"""Reads a replica's log as a consumer of committed data does."""

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
    """Decode a batch; every look at the log of any replica meets the same ones."""
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
    """Give the numbers that a consumer of committed data reads, from one replica's log."""
    return [int(value) for value in read_values(log, random)]


def read_values(log: PartitionLog, random: Random) -> list[bytes]:
    """Read as a consumer of committed data does, from the log's start."""
    reader = Reader(log.log_start_offset)
    reader.read(log, random)
    return list(reader.found.values())


class Reader:
    """A consumer of committed data, which goes on where it is, whatever replica it reads next."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.found: dict[int, bytes] = {}
        """What it has read, by offset."""

    def read(self, log: PartitionLog, random: Random) -> None:
        """Read on, up to where a replica lets readers of committed data read now."""
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
