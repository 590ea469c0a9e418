"""Creates topics when a client first asks for them (auto.create.topics.enable).

The controller creates them; the client is answered when this node knows the topics, or the error.
"""

import logging
from collections.abc import Callable, Iterable

from broker.config.broker_config import BrokerConfig
from broker.config.internal_topics import InternalTopic
from broker.metadata.topic_names import validate_topic_name
from broker.server.cluster.metadata_quorum import AskController, ClusterMetadata, MetadataWaits
from broker.server.network.later import Later, Steps
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

logger = logging.getLogger(__name__)

CREATE_TOPICS_VERSION = 7
CREATION_TIMEOUT_MS = 10_000
VISIBLE_TIMEOUT_MS = 5_000
THERE_BY_NOW = {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}


class AutoTopics:
    """Asks the controller for topics with the defaults of this node."""

    def __init__(
        self,
        config: BrokerConfig,
        metadata: ClusterMetadata,
        ask: AskController,
        waits: MetadataWaits,
        *,
        is_complete: Callable[[str], bool],
    ) -> None:
        self._is_complete = is_complete
        self._config = config
        self._metadata = metadata
        self._ask = ask
        self._waits = waits
        self._warned: set[str] = set()

    def ensure(self, names: Iterable[str]) -> Steps[dict[str, ErrorCode]]:
        """Create the topics that do not exist.

        Returns, by name, the error of each topic that could not be created; the others exist.
        """
        refused: dict[str, ErrorCode] = {}
        wanted: list[CreatableTopic] = []
        for name in dict.fromkeys(names):
            if name in self._metadata.image.topics.by_name:
                continue
            try:
                validate_topic_name(name)
            except KafkaError as error:
                refused[name] = error.code
            else:
                wanted.append(self._automatic(name))
        if wanted:
            yield from self._create(wanted, refused)
        return refused

    def _create(self, wanted: list[CreatableTopic], refused: dict[str, ErrorCode]) -> Steps[None]:
        """Wait until this node knows the topics; the client has to retry after a time-out."""
        request = CreateTopicsRequest(topics=wanted, timeout_ms=CREATION_TIMEOUT_MS)
        created = Later()
        self._ask(request, CREATE_TOPICS_VERSION, created.done, timeout_ms=CREATION_TIMEOUT_MS)
        response = yield created
        assert isinstance(response, CreateTopicsResponse), response
        for topic in response.topics:
            if topic.error_code not in THERE_BY_NOW:
                refused[topic.name] = ErrorCode(topic.error_code)
                self._warn(topic)
        names = [topic.name for topic in wanted]

        def missing() -> list[str]:
            by_name = self._metadata.image.topics.by_name
            return [name for name in names if name not in by_name and name not in refused]

        yield self._waits.until(
            lambda: not missing() and all(map(self._is_complete, names)),
            timeout_ms=VISIBLE_TIMEOUT_MS,
        )
        refused.update(dict.fromkeys(missing(), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))

    def _warn(self, topic: CreatableTopicResult) -> None:
        """Log, once, why an internal topic cannot be created: clients only wait and ask again."""
        if topic.name in self._config.internal_topics and topic.name not in self._warned:
            self._warned.add(topic.name)
            logger.warning(
                "internal topic cannot be created topic=%s error=%s message=%s",
                topic.name, ErrorCode(topic.error_code).name, topic.error_message,
            )  # fmt: skip

    def _automatic(self, name: str) -> CreatableTopic:
        config = self._config
        internal = config.internal_topics.get(name)
        if internal is None:
            return CreatableTopic(
                name=name,
                num_partitions=config.partition_count,
                replication_factor=config.replication_factor,
            )
        made = internal.on(len(self._metadata.image.brokers))
        if made.replication_factor < internal.replication_factor:
            logger.warning(
                "internal topic has fewer replicas than by default topic=%s replicas=%d default=%d "
                "reason=this node is its own and only controller",
                name, made.replication_factor, internal.replication_factor,
            )  # fmt: skip
        return _creatable(name, made)


def _creatable(name: str, internal: InternalTopic) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=internal.partition_count,
        replication_factor=internal.replication_factor,
        configs=[
            CreatableTopicConfig(name=key, value=value) for key, value in internal.settings.items()
        ],
    )
