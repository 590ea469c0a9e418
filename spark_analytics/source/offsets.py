"""Offsets of many partitions, in the form of the checkpoint, and arithmetic on them.

`Offsets` is `{(topic, partition): offset}`. As JSON it is `{"topic": {"0": 12}}`, which is also the
form of the options and of the checkpoints of Spark's Kafka connector. Ranges are half-open: an end
is the next offset to read.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

TopicPartition = tuple[str, int]
Offsets = dict[TopicPartition, int]

# The options accept these instead of an offset; ListOffsets (KIP-79) has the same numbers.
LATEST = -1
EARLIEST = -2


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Records of one partition, `start_offset` included, `end_offset` not."""

    topic: str
    partition: int
    start_offset: int
    end_offset: int

    @property
    def size(self) -> int:
        """The count of offsets; with compaction and markers there are fewer records."""
        return self.end_offset - self.start_offset


def parse_offsets(text: str) -> Offsets:
    """Read `{"topic": {"0": 12}}`; raise ValueError on anything else."""
    return offsets_of(json.loads(text))


def offsets_of(document: Any) -> Offsets:
    """Read offsets from a decoded JSON document; raise ValueError on anything else."""
    if not isinstance(document, dict) or not all(isinstance(p, dict) for p in document.values()):
        raise ValueError('not of the form {"topic": {"0": 12}}')
    return {
        (topic, int(partition)): int(offset)
        for topic, partitions in document.items()
        for partition, offset in partitions.items()
    }


def document_of(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Return offsets as a JSON document in a fixed order, because Spark compares the texts."""
    document: dict[str, dict[str, int]] = {}
    for topic, partition in sorted(offsets):
        document.setdefault(topic, {})[str(partition)] = offsets[topic, partition]
    return document


def limit_rows(start: Offsets, end: Offsets, max_rows: int) -> Offsets:
    """Return ends with at most about `max_rows` offsets after the starts, a share per partition.

    A partition with offsets to read gets at least one, so that none is starved; the sum may exceed
    the limit by that, as with Spark's connector.
    """
    sizes = {key: end[key] - start.get(key, end[key]) for key in end}
    total = sum(size for size in sizes.values() if size > 0)
    if total <= max_rows:
        return dict(end)
    limited = {}
    for key, size in sizes.items():
        share = max_rows * size // total if size > 0 else 0
        limited[key] = start[key] + max(share, 1) if size > 0 else end[key]
    return limited


def not_beyond(offsets: Offsets, target: Offsets) -> Offsets:
    """Limit offsets to a target; partitions outside the target are left out."""
    return {key: min(offset, target[key]) for key, offset in offsets.items() if key in target}


def moved_back(start: Offsets, end: Offsets) -> Offsets:
    """Return the ends before their starts: a log was truncated, or a topic created again."""
    return {key: offset for key, offset in end.items() if offset < start.get(key, 0)}


def ranges_between(start: Offsets, end: Offsets) -> list[OffsetRange]:
    """Return the nonempty ranges in order; a partition without a start is left out."""
    found = (OffsetRange(*key, start[key], end[key]) for key in sorted(end) if key in start)
    return [item for item in found if item.size > 0]
