"""The planner's requests to Kafka: the partitions, and their start and end offsets.

One client a process and configuration is kept, because a connection takes longer than a request.
Transient errors (no broker, no leader) raise `UnreachableError`; any other is Kafka's own error and
ends the query.
"""

# ruff: noqa: SLF001 - librdkafka's own error codes have names with an underscore in Python.

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import confluent_kafka

from common.credentials.connecting import security_from
from common.kafka.admin.client import AdminClient
from common.kafka.admin.leaders import (
    EARLIEST,
    LATEST,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    list_offsets_at,
)
from common.kafka.admin.settings import AdminSettings
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.metadata import MetadataRequest, MetadataResponse
from common.kafka.topics import TopicPartition as Partition
from common.process.patterns import Pattern
from spark_analytics.source.offsets import Offsets, TopicPartition
from spark_analytics.source.options import SourceOptions

REQUEST_TIMEOUT_MS = 10_000
_LIBRARY = confluent_kafka.KafkaError
_PASSING = {
    _LIBRARY._TRANSPORT, _LIBRARY._ALL_BROKERS_DOWN, _LIBRARY._TIMED_OUT,
    _LIBRARY._RESOLVE, _LIBRARY._WAIT_COORD,
    ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT, ErrorCode.BROKER_NOT_AVAILABLE, ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.OFFSET_NOT_AVAILABLE,
}  # fmt: skip
_ABSENT = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, _LIBRARY._UNKNOWN_PARTITION}
_clients: dict[tuple[tuple[str, str], ...], AdminClient] = {}
_turn = threading.Lock()
"""A client has one request at a time."""

Answer = TypeVar("Answer")


class UnreachableError(RuntimeError):
    """Kafka does not answer, or a leader is being elected: a retry may succeed."""


class TopicOffsets:
    """Offsets of the partitions one query reads."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        is_committed = options.client.get("isolation.level") == "read_committed"
        self._isolation_level = READ_COMMITTED if is_committed else READ_UNCOMMITTED

    def partitions(self) -> list[TopicPartition]:
        """Return the existing partitions of the subscription, in order."""
        # A request for all topics, because the brokers may refuse some of those that it names.
        request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
        topics = ask(self._options, lambda client: client.ask(request, MetadataResponse)).topics
        for topic in topics:
            if topic.error_code and _is_passing(KafkaError(ErrorCode(topic.error_code))):
                raise UnreachableError(f"topic {topic.name}: {ErrorCode(topic.error_code).name}")
        present = {
            (topic.name or "", each.partition_index)
            for topic in topics
            for each in topic.partitions
        }
        return sorted(key for key in present if is_subscribed(self._options, key))

    def earliest(self, keys: Iterable[TopicPartition]) -> Offsets:
        """Return the first offsets."""
        return self.at_times(dict.fromkeys(keys, EARLIEST))

    def latest(self, keys: Iterable[TopicPartition]) -> Offsets:
        """Return the high watermarks, or the last stable offsets with read_committed."""
        return self.at_times(dict.fromkeys(keys, LATEST))

    def at_times(self, timestamps_ms: Mapping[TopicPartition, int]) -> Offsets:
        """Return the first offsets at these times or later, -1 without one."""
        wanted = {Partition(*key): at for key, at in timestamps_ms.items()}
        if not wanted:
            return {}
        listed = ask(
            self._options,
            lambda client: list_offsets_at(client, wanted, isolation_level=self._isolation_level),
        )
        found: Offsets = {}
        for (topic, partition), outcome in listed.items():
            if not isinstance(outcome, KafkaError):
                found[topic, partition] = outcome.offset
            elif outcome.code not in _ABSENT:
                raise _translated(outcome) from outcome
        return found


def is_subscribed(options: SourceOptions, key: TopicPartition) -> bool:
    """Return True if a query reads a partition."""
    if options.topic_pattern is not None:
        return Pattern(options.topic_pattern).fullmatch(key[0]) is not None
    return key in options.assigned or key[0] in options.topics


def is_passing(error: confluent_kafka.KafkaError) -> bool:
    """Return True for a transient error of a consumer."""
    return error.code() in _PASSING or error.retriable()


def is_absent(error: confluent_kafka.KafkaError) -> bool:
    """Return True if the topic or partition of a consumer does not exist."""
    return error.code() in _ABSENT


def quiet(settings: Mapping[str, str]) -> dict[str, Any]:
    """Add the settings of all clients: quick reconnects, and no log of lost connections.

    While no broker is there, librdkafka looks for one every half of the first of these times.
    """
    return {
        "reconnect.backoff.ms": "500",
        "reconnect.backoff.max.ms": "1000",
        # Refused connections have level 3. What they mean to a query is in the answers.
        "log_level": "2",
        **settings,
    }


def ask(options: SourceOptions, what: Callable[[AdminClient], Answer]) -> Answer:
    """Ask the process's admin client for these options. Raise UnreachableError or KafkaError."""
    settings = options.client
    key = tuple(sorted(settings.items()))
    try:
        with _turn:
            if key not in _clients:
                access = settings["bootstrap.servers"], security_from(settings)
                _clients[key] = AdminClient(AdminSettings.within(REQUEST_TIMEOUT_MS, *access))
            return what(_clients[key])
    except KafkaError as error:
        raise _translated(error) from error


def _is_passing(error: KafkaError) -> bool:
    return error.code in _PASSING or error.is_retriable


def _translated(error: KafkaError) -> Exception:
    return UnreachableError(str(error)) if _is_passing(error) else error
