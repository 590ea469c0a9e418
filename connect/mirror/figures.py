"""How far a task has copied each partition, and how fast: pure.

Names are those that MirrorMaker 2's metrics get from the exporter for Prometheus. Its users miss
the lag: how many of the source's offsets have no copy yet.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from connect.mirror.flow import Flow
from millrace.connect.connectors import TaskMetric, TopicPartition

_PREFIX: Final = "kafka_connect_mirror_mirrorsourceconnector"


@dataclass(slots=True)
class PartitionFigures:
    """One partition. `position` is the first offset of the source that has no copy."""

    position: int = 0
    end_offset: int = 0
    read: int = 0
    stored: int = 0
    stored_bytes: int = 0
    record_age_ms: int = 0
    """How old the last record was when it was read."""
    replication_latency_ms: int = 0
    """How old it was when its copy stood."""
    read_to: int = 0
    """Where the source ended at last; behind the last record there may be markers."""

    @property
    def lag(self) -> int:
        return max(0, self.end_offset - self.position)

    def was_read(self, offset: int, age_ms: int) -> None:
        self.read += 1
        self.record_age_ms = age_ms
        self.end_offset = max(self.end_offset, offset + 1)

    def was_stored(self, offset: int, size: int, latency_ms: int) -> None:
        """Learn that a record has its copy, or was left out on purpose."""
        self.stored += 1
        self.stored_bytes += size
        self.replication_latency_ms = latency_ms
        self.position = offset + 1
        self._settle()

    def ended(self, offset: int) -> None:
        """Learn that nothing is left to read before this offset."""
        self.read_to = offset
        self.end_offset = max(self.end_offset, offset)
        self._settle()

    def _settle(self) -> None:
        if self.stored == self.read:
            self.position = max(self.position, self.read_to)


def metrics(flow: Flow, partitions: dict[TopicPartition, PartitionFigures]) -> Iterator[TaskMetric]:
    for at, figures in partitions.items():
        labels = {
            "source": flow.source,
            "target": flow.target,
            "topic": flow.remote_topic(at.topic),
            "partition": str(at.partition),
        }
        for name, value in (
            ("record_count_total", figures.stored),
            ("byte_count_total", figures.stored_bytes),
            ("record_age_ms", figures.record_age_ms),
            ("replication_latency_ms", figures.replication_latency_ms),
            ("replication_offset", figures.position),
            ("replication_offset_lag", figures.lag),
        ):
            yield TaskMetric(f"{_PREFIX}_{name}", labels, value)
