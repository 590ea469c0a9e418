"""A task's metrics for each partition: position, rates, latencies and lag. Pure.

The names are those of MirrorMaker 2's metrics in the Prometheus exporter. The lag, the number of
the source's offsets without a copy, is an addition.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from millstream.connect.connectors import TaskMetric, TopicPartition
from mirror.flow import Flow

MEANINGS: Final = {
    "record_count_total": "Copies that are stored",
    "record_rate": "Copies stored per second",
    "byte_count_total": "Bytes of these copies",
    "byte_rate": "Bytes of copies stored per second",
    "record_age_ms": "Milliseconds from a record's timestamp until it was read, the last one",
    "replication_latency_ms": "Milliseconds from a record's timestamp until its copy was stored",
    "missing_offsets_total": "Offsets that the source had deleted before they were copied",
    "replication_offset": "The first offset of the source that has no copy",
    "replication_offset_lag": "Offsets of the source without a copy",
    "checkpoint_latency_ms": "Milliseconds from a checkpoint's creation until it was stored",
}
"""What each name says, for the reference of metrics. A latency also has _min, _max and _avg, of the
last half to one minute."""
_PREFIX: Final = "kafka_connect_mirror_mirrorsourceconnector"
_CHECKPOINT_PREFIX: Final = "kafka_connect_mirror_mirrorcheckpointconnector"


SAMPLE_MS: Final = 30_000


@dataclass(slots=True)
class _Sample:
    count: int = 0
    total: int = 0
    least: int = 0
    greatest: int = 0


@dataclass(slots=True)
class Gauge:
    """A value per record: the last value, minimum, maximum and mean.

    As in Kafka's metrics, they cover the current sample and the one before it, half a minute each.
    """

    last: int = 0
    _now: _Sample = field(default_factory=_Sample)
    _before: _Sample = field(default_factory=_Sample)

    def add(self, value: int) -> None:
        self.last = value
        sample = self._now
        if sample.count == 0 or value < sample.least:
            sample.least = value
        if sample.count == 0 or value > sample.greatest:
            sample.greatest = value
        sample.count += 1
        sample.total += value

    def add_all(self, values: Sequence[int]) -> None:
        """Add at least one."""
        sample, least, greatest = self._now, min(values), max(values)
        self.last = values[-1]
        sample.least = min(sample.least, least) if sample.count else least
        sample.greatest = max(sample.greatest, greatest) if sample.count else greatest
        sample.count += len(values)
        sample.total += sum(values)

    def roll(self) -> None:
        """Begin a new sample; the older one of the two is dropped."""
        self._before, self._now = self._now, _Sample()

    @property
    def count(self) -> int:
        return self._now.count + self._before.count

    @property
    def total(self) -> int:
        return self._now.total + self._before.total

    def named(self, name: str) -> Iterator[tuple[str, float]]:
        """Yield the four values; 0 when both samples are empty."""
        samples = [each for each in (self._now, self._before) if each.count]
        yield name, self.last
        yield f"{name}_min", min((each.least for each in samples), default=0)
        yield f"{name}_max", max((each.greatest for each in samples), default=0)
        yield f"{name}_avg", self.total / self.count if samples else 0


@dataclass(slots=True)
class PartitionMetrics:
    """One partition. `position` is the first offset of the source that has no copy."""

    position: int = 0
    end_offset: int = 0
    read: int = 0
    stored: int = 0
    stored_bytes: int = 0
    record_age_ms: Gauge = field(default_factory=Gauge)
    """The age of records when they were read."""
    replication_latency_ms: Gauge = field(default_factory=Gauge)
    """The age of records when their copies were stored."""
    sizes: Gauge = field(default_factory=Gauge)
    sampled_from_ms: tuple[int, int] = (0, 0)
    """The start times of the last two samples, the older first; 0 for none."""
    next_offset: int | None = None
    """The next offset to read; None until the task has read or resumed."""
    missing: int = 0
    """Offsets that the source had deleted before they were copied."""
    read_to: int = 0
    """The source's last known end offset; transaction markers may follow the last record."""

    @property
    def lag(self) -> int:
        return max(0, self.end_offset - self.position)

    def were_read(self, last_offset: int, ages_ms: Sequence[int]) -> None:
        """Note that one or more records were read together."""
        self.read += len(ages_ms)
        self.record_age_ms.add_all(ages_ms)
        self.end_offset = max(self.end_offset, last_offset + 1)
        self.next_offset = last_offset + 1

    def resumes(self, offset: int) -> None:
        """Note that reading continues at an offset, and that all earlier ones are settled."""
        self.position = self.next_offset = self.read_to = offset

    def was_stored(self, offset: int, size: int, latency_ms: int) -> None:
        """Note that a record's copy is stored, or that it was left out on purpose."""
        self.stored += 1
        self.stored_bytes += size
        self.replication_latency_ms.add(latency_ms)
        self.sizes.add(size)
        self.position = offset + 1
        if self.stored == self.read:
            self._settle()

    def ended(self, offset: int) -> None:
        """Note that all records before this offset have been read."""
        self.read_to = offset
        self.next_offset = offset
        self.end_offset = max(self.end_offset, offset)
        if self.stored == self.read:
            self._settle()

    def pass_time(self, now_ms: int) -> None:
        """Begin a new sample when it is time."""
        _, began_ms = self.sampled_from_ms
        if began_ms == 0:
            self.sampled_from_ms = (now_ms, now_ms)
        elif now_ms - began_ms >= SAMPLE_MS:
            self.sampled_from_ms = (began_ms, now_ms)
            for each in (self.record_age_ms, self.replication_latency_ms, self.sizes):
                each.roll()

    def rates(self, now_ms: int) -> tuple[float, float]:
        """Return records and bytes per second over at least one whole sample, as Kafka does."""
        seconds = max(SAMPLE_MS, now_ms - self.sampled_from_ms[0]) / 1000
        return self.sizes.count / seconds, self.sizes.total / seconds

    def _settle(self) -> None:
        """Every record has its copy: move the position over offsets that hold no record."""
        self.position = max(self.position, self.read_to)


def metrics(
    flow: Flow, partitions: dict[TopicPartition, PartitionMetrics], now_ms: int
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
    flow: Flow, latencies: dict[tuple[str, TopicPartition], Gauge]
) -> Iterator[TaskMetric]:
    """Yield the time from a checkpoint's creation until it was stored in the target."""
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
