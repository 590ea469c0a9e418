"""The planner's requests to Kafka: the partitions, and their start and end offsets.

One client a process and configuration is kept, because a connection takes longer than a request.
Transient errors (no broker, no leader) raise `UnreachableError`; any other is Kafka's own error and
ends the query.
"""

# ruff: noqa: SLF001 - librdkafka's own error codes have names with an underscore in Python.

import re
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, OffsetSpec

from common.kafka.listed_offsets import listed_offset
from common.kafka.metadata_age import ADMIN_SETTINGS
from spark_analytics.source.offsets import Offsets, TopicPartition
from spark_analytics.source.options import SourceOptions

REQUEST_TIMEOUT_SECONDS = 10.0
_PASSING = {
    KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT,
    KafkaError._RESOLVE, KafkaError._WAIT_COORD, KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.REQUEST_TIMED_OUT,
    KafkaError.BROKER_NOT_AVAILABLE, KafkaError.NETWORK_EXCEPTION,
    KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.OFFSET_NOT_AVAILABLE,
}  # fmt: skip
_ABSENT = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION}
# Settings of connections; the others are for consumers, and an admin client warns of them.
_SHARED = (
    "bootstrap.", "security.", "sasl.", "ssl.", "client.", "socket.", "metadata.", "broker.",
    "reconnect.", "log", "debug", "enable.ssl", "oauth_cb",
)  # fmt: skip
_clients: dict[tuple[tuple[str, str], ...], AdminClient] = {}


class UnreachableError(RuntimeError):
    """Kafka does not answer, or a leader is being elected: a retry may succeed."""


class TopicOffsets:
    """Offsets of the partitions one query reads."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._isolation = (
            IsolationLevel.READ_COMMITTED
            if options.client.get("isolation.level") == "read_committed"
            else IsolationLevel.READ_UNCOMMITTED
        )
        self._admin = admin_client(options.client)

    def partitions(self) -> list[TopicPartition]:
        """Return the existing partitions of the subscription, in order."""
        # A request for all topics, because one that names topics would create them.
        try:
            topics = self._admin.list_topics(timeout=REQUEST_TIMEOUT_SECONDS).topics
        except KafkaException as error:
            raise _translated(error) from error
        for topic in topics.values():
            if topic.error is not None and is_passing(topic.error):
                raise UnreachableError(f"topic {topic.topic}: {topic.error.str()}")
        present = {(name, number) for name, topic in topics.items() for number in topic.partitions}
        return sorted(key for key in present if is_subscribed(self._options, key))

    def earliest(self, keys: Iterable[TopicPartition]) -> Offsets:
        """Return the first offsets."""
        return self._ask({key: OffsetSpec.earliest() for key in keys})  # type: ignore[no-untyped-call]

    def latest(self, keys: Iterable[TopicPartition]) -> Offsets:
        """Return the high watermarks, or the last stable offsets with read_committed."""
        return self._ask({key: OffsetSpec.latest() for key in keys})  # type: ignore[no-untyped-call]

    def at_times(self, timestamps_ms: Mapping[TopicPartition, int]) -> Offsets:
        """Return the first offsets at these times or later, -1 without one."""
        return self._ask({key: OffsetSpec.for_timestamp(ms) for key, ms in timestamps_ms.items()})

    def _ask(self, specs: Mapping[TopicPartition, OffsetSpec]) -> Offsets:
        if not specs:
            return {}
        answers = self._admin.list_offsets(
            {Place(*key): spec for key, spec in specs.items()},
            isolation_level=self._isolation,
            request_timeout=REQUEST_TIMEOUT_SECONDS,
        )
        found: Offsets = {}
        for place, answer in answers.items():
            try:
                found[place.topic, place.partition] = listed_offset(answer)
            except KafkaException as error:
                if error.args[0].code() not in _ABSENT:
                    raise _translated(error) from error
        return found


def is_subscribed(options: SourceOptions, key: TopicPartition) -> bool:
    """Return True if a query reads a partition."""
    if options.topic_pattern is not None:
        return re.fullmatch(options.topic_pattern, key[0]) is not None
    return key in options.assigned or key[0] in options.topics


def is_passing(error: KafkaError) -> bool:
    """Return True for a transient error."""
    return error.code() in _PASSING or error.retriable()


def is_absent(error: KafkaError) -> bool:
    """Return True if the topic or partition does not exist."""
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


def admin_client(settings: Mapping[str, str]) -> AdminClient:
    """Return the process's admin client for these settings."""
    shared = {name: value for name, value in settings.items() if name.startswith(_SHARED)}
    key = tuple(sorted(shared.items()))
    if key not in _clients:
        _clients[key] = AdminClient({**ADMIN_SETTINGS, **quiet(shared)})
    return _clients[key]


def _translated(error: KafkaException) -> Exception:
    cause = error.args[0]
    return UnreachableError(str(cause)) if is_passing(cause) else error
