"""The start and the end of a query, from its options and Kafka's offsets.

Rules of Spark's Kafka connector: offsets and times by partition must name all partitions and no
others; a time after the last record is an error at the start (or `latest`, by option) and the end
of the log at the end.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

from spark_analytics.source.offsets import EARLIEST, LATEST, Offsets, TopicPartition
from spark_analytics.source.options import Bound, Edge, OptionError, SourceOptions


class LogEdges(Protocol):
    """The questions to Kafka: `TopicOffsets`, or a fake."""

    def partitions(self) -> list[TopicPartition]: ...
    def earliest(self, keys: Iterable[TopicPartition]) -> Offsets: ...
    def latest(self, keys: Iterable[TopicPartition]) -> Offsets: ...
    def at_times(self, timestamps_ms: Mapping[TopicPartition, int]) -> Offsets: ...


class UnknownTopicError(RuntimeError):
    """A topic or partition named by the options does not exist."""


def known_partitions(options: SourceOptions, kafka: LogEdges) -> list[TopicPartition]:
    """Return the partitions to read; raise UnknownTopicError if a named one does not exist."""
    found = kafka.partitions()
    topics = {topic for topic, _ in found}
    absent = [topic for topic in options.topics if topic not in topics]
    absent += [f"{topic}-{number}" for topic, number in set(options.assigned) - set(found)]
    if absent:
        raise UnknownTopicError(f"not in Kafka: {', '.join(sorted(absent))}")
    return found


def start_offsets(options: SourceOptions, kafka: LogEdges) -> Offsets:
    """Return the start offsets of a query."""
    keys = known_partitions(options, kafka)
    found = _resolve(options.start, keys, kafka)
    late = [key for key, offset in found.items() if offset == LATEST]
    if late and options.is_late_start_an_error:
        raise OptionError(
            f"no record of the starting time or later in {late[0][0]}-{late[0][1]}; with"
            " startingOffsetsByTimestampStrategy=latest the query starts at the end there"
        )
    return found | kafka.latest(late)


def end_offsets(options: SourceOptions, kafka: LogEdges) -> Offsets:
    """Return the end offsets of a batch query."""
    found = _resolve(options.end, known_partitions(options, kafka), kafka)
    return found | kafka.latest([key for key, offset in found.items() if offset == LATEST])


def _resolve(edge: Edge, keys: list[TopicPartition], kafka: LogEdges) -> Offsets:
    """Return offsets; -1 for a partition whose last record is before the time."""
    if edge.bound is Bound.EARLIEST:
        return kafka.earliest(keys)
    if edge.bound is Bound.LATEST:
        return kafka.latest(keys)
    if edge.timestamp_ms is not None:
        return kafka.at_times(dict.fromkeys(keys, edge.timestamp_ms))
    if edge.timestamps_ms is not None:
        _check_complete(edge.timestamps_ms, keys)
        return kafka.at_times(edge.timestamps_ms)
    assert edge.offsets is not None, edge
    _check_complete(edge.offsets, keys)
    found = {key: offset for key, offset in edge.offsets.items() if offset >= 0}
    found |= kafka.earliest([key for key in keys if edge.offsets[key] == EARLIEST])
    return found | kafka.latest([key for key in keys if edge.offsets[key] == LATEST])


def _check_complete(named: Offsets, keys: list[TopicPartition]) -> None:
    if wrong := sorted(set(named) ^ set(keys)):
        topic, partition = wrong[0]
        which = "is not read by this query" if wrong[0] in named else "is missing"
        raise OptionError(f"offsets must name every partition read: {topic}-{partition} {which}")
