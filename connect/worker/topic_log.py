"""A compacted topic that every worker reads from the beginning: configs, statuses, offsets.

One thread consumes the topic; a producer writes to it. All in-sync replicas acknowledge a write,
and the writes to a partition keep their order. The consumer reads committed records only, so the
offsets in a source's transaction become visible when the transaction is committed.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_INVALID,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

from common.process.clock import now_ms
from connect.worker.client_settings import (
    ADMIN_SETTINGS,
    AWAY_DEFAULTS,
    CONSUMER_DEFAULTS,
    KAFKA_LOG,
    PRODUCER_DEFAULTS,
)
from connect.worker.topics import TopicGroup, create_topic
from millstream.connect.errors import ConnectException

log = logging.getLogger(__name__)

_BATCH: Final = 500
_POLL_SECONDS: Final = 0.1
_LOOK_SECONDS: Final = 0.1
_TIMEOUT_SECONDS: Final = 30.0
_TRANSACTION_SECONDS: Final = 90.0
"""More than `transaction.timeout.ms`, after which the brokers abort an open transaction."""
_COMMITTED: Final = IsolationLevel.READ_COMMITTED
_UNCOMMITTED: Final = IsolationLevel.READ_UNCOMMITTED
_NOT_YET: Final = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    # A broker that has not read the topic's creation yet.
    KafkaError.UNKNOWN_TOPIC_OR_PART,
)
_COMPACTED: Final = {"cleanup.policy": "compact"}
_NOT_TOLD: Final = "the leader was lost before it told the offset"
LARGEST_BYTES: Final = str(8 << 20)

Entry = tuple[bytes | None, bytes | None]
Positions = dict[int, int]
Replay = Callable[[list[Entry], Positions], None]
"""Called in the log's thread with the entries of a batch and the consumer's new positions."""


@dataclass(frozen=True, slots=True)
class LogTopic:
    """A topic's name, and the settings with which it is created when it is missing."""

    name: str
    partitions: int
    replication_factor: int


class TooLargeError(ConnectException):
    """A record is larger than its topic's `max.message.bytes`."""


def not_written(topic: str, error: Exception) -> ConnectException:
    """Return the error for records that could not be written."""
    reason = error.args[0] if isinstance(error, KafkaException) else None
    if isinstance(reason, KafkaError) and reason.code() == KafkaError.MSG_SIZE_TOO_LARGE:
        return TooLargeError(f"a record is larger than max.message.bytes of topic {topic} allows")
    return ConnectException(f"topic {topic}: {error}")


class TopicLog:
    """Owns the thread, its consumer and the producer."""

    def __init__(self, client: Mapping[str, Any], topic: LogTopic, replay: Replay) -> None:
        self.topic = topic
        self._client = dict(client)
        self._replay = replay
        self._positions: Positions = {}
        self.record_ends: Positions = {}
        """By partition, the offset after the last record; transaction markers do not count."""
        self._moved = threading.Condition()
        self._is_stopping = False
        # No code polls it, so its log lines would stay in memory. Its answers have its errors.
        quiet = {"log_level": "2"}
        self._admin = AdminClient({**ADMIN_SETTINGS, **AWAY_DEFAULTS, **self._client, **quiet})
        self._consumer: Consumer | None = None
        self._producer = Producer(
            {
                **PRODUCER_DEFAULTS,
                "linger.ms": "0",
                "message.max.bytes": LARGEST_BYTES,
                **self._client,
                "logger": KAFKA_LOG,
            }
        )
        self._thread = threading.Thread(target=self._run, name=f"log-{topic.name}", daemon=True)

    # --- reading ---

    def start(self) -> None:
        """Create the topic if it is missing, and read it to its end. Raises ConnectException."""
        made = TopicGroup(self.topic.partitions, self.topic.replication_factor, config=_COMPACTED)
        if create_topic(self._admin, self.topic.name, made):
            log.info("topic created topic=%s", self.topic.name)
        partitions = self._partitions()
        self._positions = dict.fromkeys(partitions, 0)
        self._consumer = Consumer(
            {
                **CONSUMER_DEFAULTS,
                "group.id": f"reads-{self.topic.name}",
                "enable.partition.eof": "true",
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": "100",
                **self._client,
                "logger": KAFKA_LOG,
            }
        )
        self._consumer.assign(
            [TopicPartition(self.topic.name, each, OFFSET_BEGINNING) for each in partitions]
        )
        self._thread.start()
        self.catch_up()

    def _partitions(self) -> list[int]:
        """Return the partitions; wait until a broker lists those of a new topic.

        A consumer that is assigned no partition reads nothing and reports no error.
        """
        deadline_ms = now_ms() + int(1000 * _TIMEOUT_SECONDS)
        while not (told := self._told()).partitions:
            if now_ms() >= deadline_ms:
                raise ConnectException(f"topic {self.topic.name} cannot be read: {told.error}")
            time.sleep(_LOOK_SECONDS)
        return sorted(told.partitions)

    def _told(self) -> Any:
        try:
            topics = self._admin.list_topics(self.topic.name, timeout=_TIMEOUT_SECONDS).topics
        except KafkaException as error:
            raise ConnectException(f"topic {self.topic.name} cannot be read: {error}") from error
        return topics[self.topic.name]

    def _run(self) -> None:
        assert self._consumer is not None
        while not self._is_stopping:
            messages = self._consumer.consume(_BATCH, _POLL_SECONDS)
            self._producer.poll(0)
            if messages:
                self._take(messages)
        self._consumer.close()

    def _take(self, messages: Sequence[Any]) -> None:
        entries: list[Entry] = []
        positions: Positions = {}
        for message in messages:
            error = message.error()
            if error is None:
                entries.append((message.key(), message.value()))
                positions[message.partition()] = message.offset() + 1
                self.record_ends[message.partition()] = message.offset() + 1
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - librdkafka's code
                # The position is after the transaction markers, too, which are not delivered.
                positions[message.partition()] = message.offset()
            else:
                log.warning("log says topic=%s error=%s", self.topic.name, error)
        try:
            self._replay(entries, positions)
        except RuntimeError:
            # The loop that reads is closed.
            self._is_stopping = True
        with self._moved:
            self._positions.update(positions)
            self._moved.notify_all()

    def catch_up(self, *, ends_transactions: bool = False) -> Positions:
        """Read up to the present end; return the positions. Raises ConnectException.

        With `ends_transactions`, also wait until every transaction that is open has ended:
        committed records of other producers may lie after its first record.
        """
        level = _UNCOMMITTED if ends_transactions else _COMMITTED
        seconds = _TRANSACTION_SECONDS if ends_transactions else _TIMEOUT_SECONDS
        ends = self._end_offsets(level)
        with self._moved:
            is_there = self._moved.wait_for(
                lambda: all(self._positions.get(each, 0) >= end for each, end in ends.items()),
                seconds,
            )
        if not is_there:
            raise ConnectException(f"topic {self.topic.name} was not read to its end in time")
        return ends

    def _end_offsets(self, level: IsolationLevel) -> Positions:
        """Retry until the leaders answer: the leader of a new topic may not know it yet."""
        deadline_ms = now_ms() + int(1000 * _TIMEOUT_SECONDS)
        while True:
            try:
                return self._told_ends(level)
            except KafkaException as error:
                if error.args[0].code() not in _NOT_YET or now_ms() >= deadline_ms:
                    raise ConnectException(
                        f"the end of topic {self.topic.name} is not known: {error}"
                    ) from error
                time.sleep(_LOOK_SECONDS)

    def _told_ends(self, level: IsolationLevel) -> Positions:
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        asked = {TopicPartition(self.topic.name, each): latest for each in self._positions}
        futures = self._admin.list_offsets(
            asked,
            isolation_level=level,
            request_timeout=_TIMEOUT_SECONDS,
        )
        return {at.partition: listed_offset(future) for at, future in futures.items()}

    # --- writing ---

    def produce(
        self, entries: Sequence[Entry], done: Callable[[Exception | None, Positions], None]
    ) -> None:
        """Write entries; call `done` in the log's thread with their end offsets or the error."""
        left, ends = len(entries), Positions()
        errors: list[Exception] = []

        def delivered(problem: Any, message: Any) -> None:
            nonlocal left
            left -= 1
            if problem is not None:
                errors.append(KafkaException(problem))
            else:
                at = message.partition()
                ends[at] = max(ends.get(at, 0), message.offset() + 1)
            if not left:
                done(errors[0] if errors else None, ends)

        if not entries:
            done(None, ends)
        for key, value in entries:
            try:
                self._producer.produce(self.topic.name, value, key, on_delivery=delivered)
            except (KafkaException, BufferError) as problem:
                delivered(getattr(problem, "args", [problem])[0], None)

    def write(self, entries: Sequence[Entry], timeout_ms: int) -> None:
        """Write entries and wait until they are stored. Raises ConnectException."""
        stored = threading.Event()
        errors: list[Exception] = []

        def done(error: Exception | None, _: Positions) -> None:
            if error is not None:
                errors.append(error)
            stored.set()

        self.produce(entries, done)
        if not stored.wait(timeout_ms / 1000):
            raise ConnectException(f"topic {self.topic.name} did not take records in time")
        if errors:
            raise not_written(self.topic.name, errors[0]) from errors[0]

    def stop(self) -> None:
        self._producer.flush(5)
        self._is_stopping = True
        if self._thread.is_alive():
            self._thread.join(5)


def listed_offset(answer: Future[Any], timeout_seconds: float | None = None) -> int:
    """Return the offset of one partition that librdkafka's `list_offsets` was asked for.

    Raises KafkaException, with LEADER_NOT_AVAILABLE too where the leader went away while it was
    asked: librdkafka calls that a success, at the offset -1001 (its
    `rd_kafka_ListOffsets_response_merge` takes no error of a request over). A caller that took it
    for the end of a partition would believe that it had read all of it. Raises TimeoutError after
    `timeout_seconds`.
    """
    offset: int = answer.result(timeout_seconds).offset
    if offset == OFFSET_INVALID:
        raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE, _NOT_TOLD))
    return offset
