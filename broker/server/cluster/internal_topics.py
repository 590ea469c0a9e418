"""Creates the internal topics of streams groups: repartition topics and changelogs (KIP-1071).

A heartbeat does not wait for them: the controller is asked, and a later heartbeat of the group
finds the topics, or is told why they could not be created. An error is remembered for two heartbeat
intervals, as in Apache Kafka.
"""

import logging
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from broker.coordinator.streams_group.configured_topology import InternalTopic
from broker.server.clock import Clock
from broker.server.cluster.auto_topics import (
    CREATE_TOPICS_VERSION,
    CREATION_TIMEOUT_MS,
    THERE_BY_NOW,
)
from broker.server.cluster.metadata_quorum import AskController
from common.kafka.errors import ErrorCode
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

logger = logging.getLogger(__name__)

MAX_ERRORS: Final = 10_000


class InternalTopics:
    """Owns the topics that are being created, and the errors of those that could not be."""

    def __init__(self, clock: Clock, ask: AskController) -> None:
        self._clock = clock
        self._ask = ask
        self._under_way: set[str] = set()
        self._errors: OrderedDict[str, tuple[str, int]] = OrderedDict()
        """By topic, the error and when it is forgotten."""

    def not_under_way(self, topics: Iterable[InternalTopic]) -> list[InternalTopic]:
        """Return the topics for which the controller is not just being asked."""
        return [topic for topic in topics if topic.name not in self._under_way]

    def create(self, wanted: list[InternalTopic], errors_for_ms: int) -> None:
        """Ask the controller for topics that are not under way."""
        if not wanted:
            return
        names = [topic.name for topic in wanted]
        self._under_way.update(names)

        def on_response(response: Message) -> None:
            self._under_way.difference_update(names)
            assert isinstance(response, CreateTopicsResponse), response
            expires_ms = self._clock.now_ms() + errors_for_ms
            for topic in response.topics:
                self._note(topic.name, topic.error_code, topic.error_message, expires_ms)

        logger.info("streams group lacks internal topics, asking for them topics=%s", names)
        request = CreateTopicsRequest(
            topics=[_creatable(topic) for topic in wanted], timeout_ms=CREATION_TIMEOUT_MS
        )
        self._ask(request, CREATE_TOPICS_VERSION, on_response, timeout_ms=CREATION_TIMEOUT_MS)

    def errors_of(self, names: Iterable[str]) -> dict[str, str]:
        """Return, by topic, the errors that are remembered."""
        now_ms = self._clock.now_ms()
        known = {name: self._errors[name] for name in names if name in self._errors}
        return {name: text for name, (text, expires_ms) in known.items() if expires_ms > now_ms}

    def _note(self, name: str, code: int, message: str | None, expires_ms: int) -> None:
        self._errors.pop(name, None)
        if code in THERE_BY_NOW:
            return
        text = message or ErrorCode(code).name
        logger.warning("internal topic could not be created topic=%s error=%s", name, text)
        self._errors[name] = (text, expires_ms)
        if len(self._errors) > MAX_ERRORS:
            self._errors.popitem(last=False)


def _creatable(topic: InternalTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partition_count,
        replication_factor=topic.replication_factor,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in topic.settings],
    )
