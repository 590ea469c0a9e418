"""Topics that nobody created: made when a client first asks for them (auto.create.topics.enable).

The controller creates them; who asked is answered when this node knows them, or why there are none.
"""

import logging
from collections.abc import Callable, Iterable

from broker.config.broker_config import BrokerConfig
from broker.config.internal_topics import InternalTopic
from broker.errors import ErrorCode, KafkaError
from broker.metadata.topic_names import validate_topic_name
from broker.protocol.message import Message
from broker.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from broker.server.cluster.metadata_quorum import AskController, ClusterMetadata
from broker.server.cluster.metadata_waits import MetadataWaits

logger = logging.getLogger(__name__)

CREATE_TOPICS_VERSION = 7
CREATION_TIMEOUT_MS = 10_000
VISIBLE_TIMEOUT_MS = 5_000
THERE_BY_NOW = {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}

OnCreated = Callable[[dict[str, ErrorCode]], None]
"""Given, by name, why a topic could not be created; the others are there."""


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

    def ensure(self, names: Iterable[str], on_created: OnCreated) -> None:
        """Create those of the topics that do not exist, then call `on_created`."""
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
        if not wanted:
            on_created(refused)
            return

        def answered(response: Message) -> None:
            assert isinstance(response, CreateTopicsResponse), response
            for topic in response.topics:
                if topic.error_code not in THERE_BY_NOW:
                    refused[topic.name] = ErrorCode(topic.error_code)
            self._wait([topic.name for topic in wanted], refused, on_created)

        request = CreateTopicsRequest(topics=wanted, timeout_ms=CREATION_TIMEOUT_MS)
        self._ask(request, CREATE_TOPICS_VERSION, answered, timeout_ms=CREATION_TIMEOUT_MS)

    def _wait(self, names: list[str], refused: dict[str, ErrorCode], on_created: OnCreated) -> None:
        """Wait until they are here; one this node does not know in time is tried again later."""

        def missing() -> list[str]:
            by_name = self._metadata.image.topics.by_name
            return [name for name in names if name not in by_name and name not in refused]

        def proceed() -> None:
            refused.update(dict.fromkeys(missing(), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            on_created(refused)

        def are_here() -> bool:
            return not missing() and all(map(self._is_complete, names))

        self._waits.until(are_here, proceed, timeout_ms=VISIBLE_TIMEOUT_MS)

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
