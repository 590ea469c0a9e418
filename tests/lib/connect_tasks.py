"""Connectors' tasks without a worker: these classes replace the worker."""

from collections.abc import Mapping, Sequence
from typing import Any

from millstream.connect import (
    ConnectException,
    Header,
    Schema,
    SinkRecord,
    SinkTask,
    SourceRecord,
    SourceTask,
    TopicPartition,
)
from millstream.connect.connectors import SourceConnector


class Kept:
    """An offset store in memory."""

    def __init__(self) -> None:
        self.offset_of: dict[str, dict[str, Any]] = {}

    def offset(self, partition: Mapping[str, Any]) -> dict[str, Any] | None:
        return self.offset_of.get(str(sorted(partition.items())))

    def offsets(self, partitions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any] | None]:
        return [self.offset(partition) for partition in partitions]

    def keep(self, record: SourceRecord) -> None:
        if record.source_partition is not None and record.source_offset is not None:
            self.offset_of[str(sorted(record.source_partition.items()))] = dict(
                record.source_offset
            )


class SourceSide:
    def __init__(self, kept: Kept) -> None:
        self.offset_storage_reader = kept
        self.configs: dict[str, str] = {}
        self.reconfigurations = 0

    def request_task_reconfiguration(self) -> None:
        self.reconfigurations += 1

    def raise_error(self, error: Exception) -> None:
        raise error


class SinkSide:
    """The context of a sink task, which records the task's requests."""

    def __init__(self, *, tolerates: bool = False) -> None:
        self.configs: dict[str, str] = {}
        self.reported: list[tuple[SinkRecord, Exception]] = []
        self.timeouts_ms: list[int] = []
        self.commit_requests = 0
        self.errant_record_reporter = self if tolerates else None
        self.assigned = frozenset({TopicPartition("orders", 0)})

    def report(self, record: SinkRecord, error: Exception) -> None:
        self.reported.append((record, error))

    def timeout(self, timeout_ms: int) -> None:
        self.timeouts_ms.append(timeout_ms)

    def assignment(self) -> frozenset[TopicPartition]:
        return self.assigned

    def offset(self, offsets: Mapping[TopicPartition, int]) -> None:
        raise NotImplementedError

    def pause(self, *partitions: TopicPartition) -> None:
        raise NotImplementedError

    def resume(self, *partitions: TopicPartition) -> None:
        raise NotImplementedError

    def request_commit(self) -> None:
        self.commit_requests += 1


def started_source(
    connector: SourceConnector, settings: Mapping[str, str], kept: Kept
) -> SourceTask:
    """Start a connector and its only task; the connector stops once the task has its settings."""
    side = SourceSide(kept)
    connector.context = side
    connector.start(settings)
    (config,) = connector.task_configs(1)
    task = connector.task_class()()
    assert isinstance(task, SourceTask)
    task.context = side
    connector.stop()
    task.start(config)
    return task


def polled(task: SourceTask, kept: Kept, polls: int = 1) -> list[SourceRecord]:
    """Poll, and store the offsets."""
    records: list[SourceRecord] = []
    for _ in range(polls):
        found: Any = task.poll()
        records += found or []
    for record in records:
        kept.keep(record)
    return records


def started_sink(
    task: SinkTask, settings: Mapping[str, str], *, tolerates: bool = False
) -> SinkSide:
    side = SinkSide(tolerates=tolerates)
    task.context = side
    task.start(settings)
    return side


def sink_record(
    offset: int,
    key: Any,
    value: Any,
    *,
    topic: str = "orders",
    headers: tuple[Header, ...] = (),
    partition: int = 0,
) -> SinkRecord:
    """Return a record; a struct has its own schema, numbers and strings the usual ones."""
    return SinkRecord(
        topic=topic,
        kafka_partition=partition,
        kafka_offset=offset,
        key=key,
        key_schema=_schema(key),
        value=value,
        value_schema=_schema(value),
        timestamp_ms=1_700_000_000_000 + offset,
        headers=headers,  # type: ignore[arg-type]
    )


def _schema(value: Any) -> Schema | None:
    match value:
        case None | dict():
            return None
        case int():
            return Schema.int64()
        case str():
            return Schema.string()
        case _ if hasattr(value, "schema"):
            found: Schema = value.schema
            return found
        case _:
            raise ConnectException(f"no schema for {value!r}")
