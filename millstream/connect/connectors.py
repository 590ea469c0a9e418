"""What a connector is written with: `from millstream.connect import ...`.

A *connector* reads its settings and says how the work is divided: `task_configs`. Its *tasks* do
the work: a source task's `poll` gives records, a sink task's `put` takes them. Every method may be
plain or `async`; each task runs in a thread of its own (an async one on a loop of its own in that
thread), so that a task that blocks holds up nothing but itself.

The names and rules are those of Kafka Connect's Java interface (org.apache.kafka.connect.connector,
.source and .sink), in Python's spelling. What need not be written has a default here: the least
connector is a class with `task_class`, the least task one with `poll` or `put`.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, Protocol

from millstream.connect.config.config_def import ConfigDef, ConfigValue
from millstream.connect.data.records import SinkRecord, SourceRecord

Settings = Mapping[str, str]
"""A connector's or a task's configuration, as it was given."""

SourcePartition = Mapping[str, Any]
SourceOffset = Mapping[str, Any]


class TopicPartition(NamedTuple):
    topic: str
    partition: int


class RecordMetadata(NamedTuple):
    """Where a record of a source was stored."""

    topic: str
    partition: int
    offset: int
    timestamp: int | None


class TaskMetric(NamedTuple):
    """A figure of a task's own, for /metrics; what is counted has a name that ends in _total."""

    name: str
    labels: Mapping[str, str]
    value: float


class ExactlyOnceSupport(Enum):
    """Whether a source can deliver exactly once with the settings at hand (KIP-618)."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"


class ConnectorTransactionBoundaries(Enum):
    """Whether a source's tasks can say where a transaction ends (KIP-618)."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"


class OffsetStorageReader(Protocol):
    """Where a source had come to."""

    def offset(self, partition: SourcePartition) -> dict[str, Any] | None: ...

    def offsets(self, partitions: Sequence[SourcePartition]) -> list[dict[str, Any] | None]: ...


class ConnectorContext(Protocol):
    """What the worker does for a connector. Both may be called from any thread."""

    def request_task_reconfiguration(self) -> None:
        """Have `task_configs` asked again, because the source looks different now."""

    def raise_error(self, error: Exception) -> None:
        """Fail the connector from a thread of its own."""

    @property
    def offset_storage_reader(self) -> OffsetStorageReader: ...


class TransactionContext(Protocol):
    """Ends a task's transactions, from any thread (KIP-618)."""

    def commit_transaction(self, record: SourceRecord | None = None) -> None:
        """Commit after this record; without one, after the batch that `poll` returns next."""

    def abort_transaction(self, record: SourceRecord | None = None) -> None:
        """Drop what was written since the last commit, up to this record; without one, up to the
        end of the batch that `poll` returns next. It counts as read and does not come again."""


class SourceTaskContext(Protocol):
    """What the worker does for a source task."""

    @property
    def configs(self) -> Settings: ...

    @property
    def offset_storage_reader(self) -> OffsetStorageReader: ...

    @property
    def transaction_context(self) -> TransactionContext | None:
        """None unless the worker writes in transactions and `transaction.boundary=connector`."""


class ErrantRecordReporter(Protocol):
    """Takes single records that a sink cannot write (KIP-610)."""

    def report(self, record: SinkRecord, error: Exception) -> None:
        """Send a record to the dead-letter topic and the log. Raises ConnectException if errors are
        not tolerated."""


class SinkTaskContext(Protocol):
    """What the worker does for a sink task."""

    @property
    def configs(self) -> Settings: ...

    def assignment(self) -> frozenset[TopicPartition]: ...

    def offset(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Read on from these offsets after this `put` or `open`."""

    def timeout(self, timeout_ms: int) -> None:
        """Wait this long until the records of a `put` that raised RetriableException come again."""

    def pause(self, *partitions: TopicPartition) -> None: ...

    def resume(self, *partitions: TopicPartition) -> None: ...

    def request_commit(self) -> None: ...

    @property
    def errant_record_reporter(self) -> ErrantRecordReporter | None: ...


class Connector:
    """What source and sink connectors have in common."""

    kafka_class: str | None = None
    """The class of Kafka Connect it stands for, if any."""

    context: ConnectorContext

    @classmethod
    def version(cls) -> str:
        return "undefined"

    @classmethod
    def config(cls) -> ConfigDef:
        """Return the definition of the connector's own settings."""
        return ConfigDef()

    def validate(self, settings: Settings) -> dict[str, ConfigValue]:
        """Look at all settings together; override to check what one definition cannot say."""
        return self.config().validate_all(settings)

    def start(self, settings: Settings) -> Awaitable[None] | None:
        """Keep the settings as `self.settings`; override to open connections or watch a source."""
        self.settings = dict(settings)
        return None

    def task_class(self) -> "type[SourceTask | SinkTask]":
        raise NotImplementedError(f"{type(self).__name__}.task_class")

    def task_configs(self, max_tasks: int) -> Sequence[Settings]:
        """Divide the work; by default one task does it all, with the connector's own settings."""
        del max_tasks
        return [self.settings]

    def note(self) -> str | None:
        """Return a sentence for the connector's status, as that it finds nothing to do.

        Asked for after `start` and `task_configs`; None when all is as configured.
        """
        return None

    def stop(self) -> Awaitable[None] | None:
        return None


class SourceConnector(Connector):
    """Brings data into topics."""

    def changed_by_reading(self, settings: Settings) -> str | None:
        """Say what reading a few records changes though no offset is kept; None when nothing.

        What it changes is why it has no preview.
        """
        del settings
        return None

    def exactly_once_support(self, settings: Settings) -> ExactlyOnceSupport | None:
        """Say whether these settings allow exactly once; None when the connector does not know."""
        del settings
        return None

    def can_define_transaction_boundaries(
        self, settings: Settings
    ) -> ConnectorTransactionBoundaries:
        del settings
        return ConnectorTransactionBoundaries.UNSUPPORTED

    def alter_offsets(
        self,
        settings: Settings,
        offsets: Sequence[tuple[SourcePartition | None, SourceOffset | None]],
    ) -> bool:
        """Check offsets that a user wants to set (KIP-875); raises ConnectException.

        Returns True when the offsets in the worker's keeping are all there is.
        """
        del settings, offsets
        return False


class SinkConnector(Connector):
    """Takes data out of topics."""

    def alter_offsets(
        self, settings: Settings, offsets: Mapping[TopicPartition, int | None]
    ) -> bool:
        """Check offsets that a user wants to set (KIP-875); raises ConnectException.

        Returns True when the consumer group's offsets are all there is.
        """
        del settings, offsets
        return False


class SourceTask:
    """Reads one part of a source."""

    kafka_class: str | None = None
    context: SourceTaskContext

    @classmethod
    def version(cls) -> str:
        return "undefined"

    def start(self, settings: Settings) -> Awaitable[None] | None:
        self.settings = dict(settings)
        return None

    def poll(
        self,
    ) -> Iterable[SourceRecord] | Awaitable[Iterable[SourceRecord] | None] | None:
        """Return records that are there; nothing, after at most a second, when there are none."""
        raise NotImplementedError(f"{type(self).__name__}.poll")

    def commit(self) -> Awaitable[None] | None:
        """Learn that the offsets of all records so far are kept."""
        return None

    def commit_record(
        self, record: SourceRecord, metadata: RecordMetadata | None
    ) -> Awaitable[None] | None:
        """Learn that a record is stored; without metadata, that it was filtered or skipped."""
        del record, metadata
        return None

    def metrics(self) -> Iterable[TaskMetric]:
        """Return figures of its own (as KIP-877). Called from another thread, at any time."""
        return ()

    def note(self) -> str | None:
        """Return a sentence for the status of a task that runs, as that it finds nothing to do.

        Asked for after every `poll`; None when all is as configured.
        """
        return None

    def stop(self) -> Awaitable[None] | None:
        """End a `poll` that waits. May be called from another thread."""
        return None


class SinkTask:
    """Writes one part of the records."""

    kafka_class: str | None = None
    context: SinkTaskContext

    @classmethod
    def version(cls) -> str:
        return "undefined"

    def start(self, settings: Settings) -> Awaitable[None] | None:
        self.settings = dict(settings)
        return None

    def open(self, partitions: Sequence[TopicPartition]) -> Awaitable[None] | None:
        """Learn of partitions that are ours from now on."""
        del partitions
        return None

    def close(self, partitions: Sequence[TopicPartition]) -> Awaitable[None] | None:
        """Learn of partitions that are ours no longer; their offsets are committed by now."""
        del partitions
        return None

    def put(self, records: Sequence[SinkRecord]) -> Awaitable[None] | None:
        """Write records, or begin to. Raises RetriableException to get the same ones again."""
        raise NotImplementedError(f"{type(self).__name__}.put")

    def flush(self, offsets: Mapping[TopicPartition, int]) -> Awaitable[None] | None:
        """Return when everything before these offsets is written."""
        del offsets
        return None

    def pre_commit(
        self, offsets: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int] | Awaitable[Mapping[TopicPartition, int]]:
        """Return the offsets that may be committed; by default those given, after `flush`."""
        flushed = self.flush(offsets)
        if flushed is None:
            return offsets
        return _after(flushed, lambda: offsets)

    def note(self) -> str | None:
        """Return a sentence for the status of a task that runs. Asked for about every second."""
        return None

    def stop(self) -> Awaitable[None] | None:
        return None


async def _after(
    first: Awaitable[None], then: Callable[[], Mapping[TopicPartition, int]]
) -> Mapping[TopicPartition, int]:
    await first
    return then()
