"""How ranges of offsets become Spark's tasks.

One task a partition of Kafka, and more of them when `minPartitions` or `maxRecordsPerPartition` ask
for it: the big ranges are cut, the small ones stay whole. Rules of Spark's Kafka connector
(OffsetRangeCalculator).

Fewer of them with `minRecordsPerPartition`, which the connector has not: a task of ours is a Python
process, so a micro-batch of a few records from each of many partitions is best read by one.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from spark_analytics.source.offsets import OffsetRange


def split_ranges(
    ranges: Sequence[OffsetRange],
    *,
    min_partitions: int | None = None,
    max_records_per_partition: int | None = None,
) -> list[OffsetRange]:
    """Cut ranges so that there are at least so many, none longer than so."""
    parts = list(ranges)
    if max_records_per_partition is not None:
        parts = [
            part for item in parts for part in cut(item, -(-item.size // max_records_per_partition))
        ]
    if min_partitions is not None and len(parts) < min_partitions:
        parts = list(_cut_by_share(parts, min_partitions))
    return parts


def group_ranges(
    ranges: Sequence[OffsetRange], min_records: int | None
) -> list[tuple[OffsetRange, ...]]:
    """Put ranges together into tasks of about so many records or more; without it one each."""
    if min_records is None:
        return [(item,) for item in ranges]
    total = sum(item.size for item in ranges)
    groups: list[list[OffsetRange]] = [[] for _ in range(max(1, total // min_records))]
    sizes = [0] * len(groups)
    # The largest first, each to the task that has least.
    for item in sorted(ranges, key=lambda item: -item.size):
        lightest = sizes.index(min(sizes))
        groups[lightest].append(item)
        sizes[lightest] += item.size
    return [tuple(group) for group in groups if group]


def cut(item: OffsetRange, parts: int) -> list[OffsetRange]:
    """Cut one range into parts whose sizes differ by one at most; none is empty."""
    parts = max(1, min(parts, item.size))
    edges = [item.start_offset + item.size * index // parts for index in range(parts + 1)]
    return [
        OffsetRange(item.topic, item.partition, first, behind) for first, behind in pairwise(edges)
    ]


def _cut_by_share(ranges: Sequence[OffsetRange], min_partitions: int) -> Iterable[OffsetRange]:
    total = sum(item.size for item in ranges)
    # Rounded up, where the connector rounds: `minPartitions` is then a minimum in truth.
    for item in ranges:
        yield from cut(item, -(-item.size * min_partitions // total))
