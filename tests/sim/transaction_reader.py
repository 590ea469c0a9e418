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
    found: list[bytes] = []
    offset, end_offset = log.log_start_offset, log.last_stable_offset
    while offset < end_offset:
        read = log.read(
            offset,
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
                found += [] if producer_id in aborted else content
            elif not content.is_commit:
                aborted.discard(producer_id)
        offset = batches[-1].next_offset
    return found
