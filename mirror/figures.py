"""How far a task has copied each partition, and how fast: pure.

Names are those that MirrorMaker 2's metrics get from the exporter for Prometheus. Its users miss
the lag: how many of the source's offsets have no copy yet.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from millrace.connect.connectors import TaskMetric, TopicPartition
from mirror.flow import Flow
from mirror.measured import SAMPLE_MS, Measured

_PREFIX: Final = "kafka_connect_mirror_mirrorsourceconnector"
_CHECKPOINT_PREFIX: Final = "kafka_connect_mirror_mirrorcheckpointconnector"


@dataclass(slots=True)
class PartitionFigures:
    """One partition. `position` is the first offset of the source that has no copy."""

    position: int = 0
    end_offset: int = 0
    read: int = 0
    stored: int = 0
    stored_bytes: int = 0
    record_age_ms: Measured = field(default_factory=Measured)
    """How old records were when they were read."""
    replication_latency_ms: Measured = field(default_factory=Measured)
    """How old they were when their copies stood."""
    sizes: Measured = field(default_factory=Measured)
    sampled_from_ms: tuple[int, int] = (0, 0)
    """When the sample before the last and the last one began; 0 when none has."""
    next_offset: int | None = None
    """The offset that is to be read next; None until something was read or resumed."""
    missing: int = 0
    """Offsets that the source had deleted before they were copied."""
    read_to: int = 0
    """Where the source ended at last; behind the last record there may be markers."""

    @property
    def lag(self) -> int:
        return max(0, self.end_offset - self.position)

    def were_read(self, last_offset: int, ages_ms: Sequence[int]) -> None:
        """Learn of records that were read together, at least one."""
        self.read += len(ages_ms)
        self.record_age_ms.add_all(ages_ms)
        self.end_offset = max(self.end_offset, last_offset + 1)
        self.next_offset = last_offset + 1

    def resumes(self, offset: int) -> None:
        """Learn that reading goes on at an offset, and that all before it is settled."""
        self.position = self.next_offset = self.read_to = offset

    def was_stored(self, offset: int, size: int, latency_ms: int) -> None:
        """Learn that a record has its copy, or was left out on purpose."""
        self.stored += 1
        self.stored_bytes += size
        self.replication_latency_ms.add(latency_ms)
        self.sizes.add(size)
        self.position = offset + 1
        if self.stored == self.read:
            self._settle()

    def ended(self, offset: int) -> None:
        """Learn that nothing is left to read before this offset."""
        self.read_to = offset
        self.next_offset = offset
        self.end_offset = max(self.end_offset, offset)
        if self.stored == self.read:
            self._settle()

    def pass_time(self, now_ms: int) -> None:
        """Begin another sample when it is time."""
        _, began_ms = self.sampled_from_ms
        if began_ms == 0:
            self.sampled_from_ms = (now_ms, now_ms)
        elif now_ms - began_ms >= SAMPLE_MS:
            self.sampled_from_ms = (began_ms, now_ms)
            for each in (self.record_age_ms, self.replication_latency_ms, self.sizes):
                each.roll()

    def rates(self, now_ms: int) -> tuple[float, float]:
        """Give records and bytes a second, of at least one whole sample, as Kafka does."""
        seconds = max(SAMPLE_MS, now_ms - self.sampled_from_ms[0]) / 1000
        return self.sizes.count / seconds, self.sizes.total / seconds

    def _settle(self) -> None:
        """All that was read has its copy: what is left behind it is no record."""
        self.position = max(self.position, self.read_to)


def metrics(
    flow: Flow, partitions: dict[TopicPartition, PartitionFigures], now_ms: int
) -> Iterator[TaskMetric]:
    for at, figures in partitions.items():
        labels = {
            "source": flow.source,
            "target": flow.target,
            "topic": flow.remote_topic(at.topic),
            "partition": str(at.partition),
        }
        record_rate, byte_rate = figures.rates(now_ms)
        for name, value in (
            ("record_count_total", figures.stored),
            ("record_rate", record_rate),
            ("byte_count_total", figures.stored_bytes),
            ("byte_rate", byte_rate),
            *figures.record_age_ms.named("record_age_ms"),
            *figures.replication_latency_ms.named("replication_latency_ms"),
            ("missing_offsets_total", figures.missing),
            ("replication_offset", figures.position),
            ("replication_offset_lag", figures.lag),
        ):
            yield TaskMetric(f"{_PREFIX}_{name}", labels, value)


def checkpoint_metrics(
    flow: Flow, latencies: dict[tuple[str, TopicPartition], Measured]
) -> Iterator[TaskMetric]:
    """Tell how long it took from a checkpoint's making to its standing in the target."""
    for (group, at), measured in latencies.items():
        labels = {
            "source": flow.source,
            "target": flow.target,
            "group": group,
            "topic": at.topic,
            "partition": str(at.partition),
        }
        for name, value in measured.named("checkpoint_latency_ms"):
            yield TaskMetric(f"{_CHECKPOINT_PREFIX}_{name}", labels, value)
