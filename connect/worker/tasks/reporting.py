"""Reports failed records: to the log, and for sinks to the dead letter queue."""

import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from connect.definitions.concealing import Concealing
from connect.errors.dead_letters import (
    PARTITION_COUNT,
    DeadLetterSettings,
    Origin,
    context_headers,
    sink_log_message,
    source_log_message,
)
from connect.errors.tolerance import ErrorCounts, ErrorSettings, Failure
from connect.herder.names import TaskId
from connect.worker.client_settings import ADMIN_SETTINGS
from connect.worker.topics import TopicGroup, create_topic
from millstream.connect.connectors import TopicPartition
from millstream.connect.data.records import SourceRecord
from millstream.connect.errors import ConnectException

log = logging.getLogger(__name__)

_FLUSH_SECONDS: Final = 30.0
_WAITING_LIMIT: Final = 20_000


class SourceReport:
    """Logs a source's failed records."""

    def __init__(
        self, task: TaskId, settings: ErrorSettings, counts: ErrorCounts, concealing: Concealing
    ) -> None:
        self._task = task
        self._settings = settings
        self._counts = counts
        self._concealing = concealing

    def __call__(self, failure: Failure, about: SourceRecord) -> None:
        if not self._settings.is_logged:
            return
        self._counts.total_errors_logged += 1
        where = None
        if self._settings.is_record_logged:
            where = about.source_partition, about.source_offset
        message = source_log_message(failure, self._task.connector, self._task.task, where)
        log.error("%s\n%s", message, self._concealing.trace(failure.error))


class SinkReport:
    """Logs a sink's failed records, and sends them to the dead letter queue."""

    def __init__(
        self,
        task: TaskId,
        errors: ErrorSettings,
        dead_letters: DeadLetterSettings,
        counts: ErrorCounts,
        concealing: Concealing,
    ) -> None:
        self._task = task
        self._errors = errors
        self._dead_letters = dead_letters
        self._concealing = concealing
        self._counts = counts
        self._producer: Producer | None = None
        self._problem: str | None = None
        self._messages: dict[TopicPartition, dict[int, Any]] = {}
        """Consumed messages that are not committed, by offset: a task may still report one."""

    @property
    def takes_single_records(self) -> bool:
        """True if a task can report records: to the dead letter queue or to the log."""
        return self.keeps_records or self._errors.is_logged

    @property
    def keeps_records(self) -> bool:
        """True if there is a dead letter queue."""
        return bool(self._dead_letters.topic_name)

    def start(self, producer: Mapping[str, Any], admin: Mapping[str, Any]) -> None:
        """Connect, and create the topic. Raises ConnectException."""
        if not self.keeps_records:
            return
        topic = self._dead_letters.topic_name
        group = TopicGroup(PARTITION_COUNT, self._dead_letters.replication_factor)
        create_topic(AdminClient({**ADMIN_SETTINGS, **admin}), topic, group)
        self._producer = Producer(dict(producer))

    def __call__(self, failure: Failure, about: Any) -> None:
        """Report a failed message, in the form in which it was consumed."""
        if self._errors.is_logged:
            self._counts.total_errors_logged += 1
            origin = _origin(about) if self._errors.is_record_logged else None
            message = sink_log_message(failure, self._task.connector, self._task.task, origin)
            log.error("%s\n%s", message, self._concealing.trace(failure.error))
        if self._producer is not None:
            self._send(failure, about)

    def _send(self, failure: Failure, about: Any) -> None:
        assert self._producer is not None
        headers = list(about.headers() or ())
        if self._dead_letters.is_with_context_headers:
            connector, task = self._task
            headers += context_headers(failure, connector, task, _origin(about))
        _, timestamp = about.timestamp()
        self._counts.deadletterqueue_produce_requests += 1
        while True:
            try:
                self._producer.produce(
                    self._dead_letters.topic_name,
                    key=about.key(),
                    value=about.value(),
                    headers=headers,
                    timestamp=max(0, timestamp),
                    on_delivery=self._delivered,
                )
            except BufferError:
                self._producer.poll(0.1)
                continue
            return

    def _delivered(self, error: Any, _: Any) -> None:
        if error is not None:
            self._counts.deadletterqueue_produce_failures += 1
            self._problem = str(error)

    # --- what was consumed ---

    @property
    def is_full(self) -> bool:
        """True if so many messages are kept that offsets should be committed to free them."""
        return sum(map(len, self._messages.values())) > _WAITING_LIMIT

    def consumed(self, at: TopicPartition, message: Any) -> None:
        if self.takes_single_records:
            self._messages.setdefault(at, {})[message.offset()] = message

    def message_of(self, at: TopicPartition, offset: int) -> Any:
        """Return a kept message. Raises ConnectException if it was committed or not consumed."""
        message = self._messages.get(at, {}).get(offset)
        if message is None:
            raise ConnectException(f"no record is waiting at {at.topic}-{at.partition}@{offset}")
        return message

    def committed(self, offsets: Mapping[TopicPartition, int]) -> None:
        for at, end_offset in offsets.items():
            waiting = self._messages.get(at, {})
            self._messages[at] = {o: each for o, each in waiting.items() if o >= end_offset}

    def lost(self, partitions: Iterable[TopicPartition]) -> None:
        for at in partitions:
            self._messages.pop(at, None)

    # --- letters ---

    def raise_problem(self) -> None:
        """Raises ConnectException when a dead letter could not be sent."""
        if self._producer is not None:
            self._producer.poll(0)
        problem, self._problem = self._problem, None
        if problem is not None:
            raise ConnectException(
                "Could not produce message to dead letter queue. "
                f"topic={self._dead_letters.topic_name}: {problem}"
            )

    def flush(self) -> None:
        """Wait until all dead letters are stored, so that their records may be committed.

        Raises ConnectException when one could not be stored.
        """
        if self._producer is None:
            return
        if self._producer.flush(_FLUSH_SECONDS):
            self._problem = self._problem or "timed out"
        self.raise_problem()


_TIMESTAMP_TYPES: Final = ("NoTimestampType", "CreateTime", "LogAppendTime")


def timestamp_type(kind: int) -> str:
    return _TIMESTAMP_TYPES[kind] if 0 <= kind < len(_TIMESTAMP_TYPES) else _TIMESTAMP_TYPES[0]


def _origin(about: Any) -> Origin:
    kind, timestamp = about.timestamp()
    return Origin(about.topic(), about.partition(), about.offset(), timestamp, timestamp_type(kind))
