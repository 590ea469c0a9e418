"""The division of ranges of offsets into Spark's tasks.

There is one task a partition of Kafka, and more if `minPartitions` or `maxRecordsPerPartition`
require them: large ranges are split, small ones stay whole. Rules of Spark's Kafka connector
(OffsetRangeCalculator).

There are fewer with `minRecordsPerPartition`, which the connector does not have: a task of ours is
a Python process, so one task is best for a micro-batch with a few records from each of many
partitions.
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
    """Split ranges into at least `minPartitions`, of at most `maxRecordsPerPartition` each."""
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
    """Group ranges into tasks of about a minimum of records; without one into a task each."""
    if min_records is None:
        return [(item,) for item in ranges]
    total = sum(item.size for item in ranges)
    groups: list[list[OffsetRange]] = [[] for _ in range(max(1, total // min_records))]
    sizes = [0] * len(groups)
    # The largest range first, each to the smallest task.
    for item in sorted(ranges, key=lambda item: -item.size):
        lightest = sizes.index(min(sizes))
        groups[lightest].append(item)
        sizes[lightest] += item.size
    return [tuple(group) for group in groups if group]


def cut(item: OffsetRange, parts: int) -> list[OffsetRange]:
    """Split one range into nonempty parts whose sizes differ by at most one."""
    parts = max(1, min(parts, item.size))
    edges = [item.start_offset + item.size * index // parts for index in range(parts + 1)]
    return [
        OffsetRange(item.topic, item.partition, first, behind) for first, behind in pairwise(edges)
    ]


def _cut_by_share(ranges: Sequence[OffsetRange], min_partitions: int) -> Iterable[OffsetRange]:
    total = sum(item.size for item in ranges)
    # Rounded up, unlike in the connector, so that `minPartitions` is really a minimum.
    for item in ranges:
        yield from cut(item, -(-item.size * min_partitions // total))
