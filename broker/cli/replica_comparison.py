"""Compares the batches of replicas up to the high watermark.

One round compares the answers of all replicas from the same offset on. While each has another
complete batch below its high watermark, the batches must end at the same offset (otherwise the
comparison cannot continue: `ReplicasDiffer`) and have the same checksum. The next round starts
after the last batch that all replicas have. Pure; the texts are those of Kafka's
ReplicaVerificationTool.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from broker.model import TopicPartition
from broker.records.batch import split_batches
from broker.records.header import BatchHeader, BytesLike


class Held(NamedTuple):
    """The answer of one replica about a partition; empty if it did not answer."""

    high_watermark: int = -1
    records: BytesLike = b""


class Lag(NamedTuple):
    """The partition with the largest lag of the comparison, and its offset."""

    partition: TopicPartition
    offset: int
    behind: int


class ReplicasDiffer(Exception):  # noqa: N818 -- what was found
    """Batches do not end at the same offset: the comparison cannot continue."""


class ReplicaComparison:
    """A comparison; `offsets` are the start offsets of the next round by partition."""

    def __init__(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.offsets = dict(offsets)

    def compare(self, partition: TopicPartition, held: Mapping[int, Held]) -> Iterator[str]:
        """Compare one partition's replicas by broker id; yield a text for each difference.

        The comparison ends with the shortest replica. Raise ReplicasDiffer.
        """
        headers = {broker_id: _headers(one) for broker_id, one in held.items()}
        while True:
            row: dict[int, BatchHeader] = {}
            for broker_id, found in headers.items():
                header = next(found, None)
                if header is not None:
                    row[broker_id] = header
                    yield from _differences(partition, row, broker_id)
            if len(row) < len(headers) or not row:
                return
            self.offsets[partition] = next(iter(row.values())).next_offset

    def lag(self, high_watermarks: Mapping[TopicPartition, int]) -> Lag:
        """Return the partition with the largest lag behind its highest high watermark."""
        lags = [
            Lag(partition, self.offsets[partition], high_watermark - self.offsets[partition])
            for partition, high_watermark in high_watermarks.items()
        ]
        return max(lags, key=lambda lag: lag.behind)


def lag_text(lag: Lag, partition_count: int) -> str:
    """Return the text of a report."""
    return (
        f"max lag is {lag.behind} for partition {lag.partition} at offset {lag.offset} "
        f"among {partition_count} partitions"
    )


def highest(held: Iterable[Held]) -> int:
    """Return the highest of some replicas' high watermarks."""
    return max((one.high_watermark for one in held), default=-1)


def _headers(held: Held) -> Iterator[BatchHeader]:
    """Yield the headers of the complete batches below the high watermark."""
    for batch in split_batches(held.records):
        if batch.header.last_offset >= held.high_watermark:
            return
        yield batch.header


def _differences(
    partition: TopicPartition, row: Mapping[int, BatchHeader], broker_id: int
) -> Iterator[str]:
    """Compare the last headers of the replicas with the first replica's."""
    first_id, first = next(iter(row.items()))
    header = row[broker_id]
    if first.last_offset != header.last_offset:
        raise ReplicasDiffer(
            f"partition {partition}: replica {first_id}'s offset {first.last_offset} doesn't match "
            f"replica {broker_id}'s offset {header.last_offset}"
        )
    if first.crc != header.crc:
        yield (
            f"partition {partition} has unmatched checksum at offset {header.last_offset}; replica "
            f"{first_id}'s checksum {first.crc}; replica {broker_id}'s checksum {header.crc}"
        )
