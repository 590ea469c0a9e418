"""Makes the controller of a node, with its configuration and its random source."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from broker.config.broker_config import BrokerConfig
from broker.config.dynamic_settings import list_default, validate_dynamic_settings
from broker.log.storage import Storage
from broker.metadata.controller import Controller, ControllerConfig, refuse
from broker.metadata.image import MetadataImage
from broker.raft.node import RaftNode
from broker.server.clock import Random
from broker.server.quorum.controller.active_controller import ControllerLike
from broker.server.quorum.formatting import formatted_credentials, formatted_features
from broker.server.settings.config_entries import describe_topic
from common.kafka.errors import KafkaError
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.create_topics import CreatableTopicConfigs


class ControllerRules(NamedTuple):
    """Makes a controller on an image, and the answers that refuse a whole request."""

    new_controller: Callable[[MetadataImage], ControllerLike]
    refuse: Callable[[Message, int, KafkaError], Message]


def controller_config(
    config: BrokerConfig,
    cluster_id: str,
    storage: Storage,
    incarnation_id: bytes,
    node: Callable[[], RaftNode],
) -> ControllerConfig:
    """Return the controller's settings: those configured, and those formatted."""

    def describe(own: Mapping[str, str]) -> list[CreatableTopicConfigs]:
        return [
            CreatableTopicConfigs(
                name=described.name,
                value=described.value,
                read_only=described.is_read_only,
                config_source=described.source,
                is_sensitive=described.is_sensitive,
            )
            for described in describe_topic(config, own)
        ]

    return ControllerConfig(
        node_id=config.node_id,
        voters=lambda: node().voters.ids,
        heard_leader=lambda: node().heard_leader,
        own_incarnation_id=incarnation_id,
        cluster_id=cluster_id,
        partition_count=config.partition_count,
        replication_factor=config.replication_factor,
        session_timeout_ms=config.session_timeout_ms,
        leader_imbalance_check_interval_ms=config.quorum.leader_imbalance_check_interval_ms,
        delete_topic=config.delete_topic,
        features_at_format=formatted_features(storage, config.metadata_log_dir),
        credentials_at_format=tuple(formatted_credentials(storage, config.metadata_log_dir)),
        tokens=config.security.tokens,
        log=config.log,
        describe_topic_settings=describe,
        validate_broker_settings=validate_dynamic_settings,
        group_limits=config.group_limits,
        broker_list_default=list_default,
    )


def controller_rules(config: ControllerConfig, random_source: Random) -> ControllerRules:
    """Make the rules of a controller of this configuration."""
    return ControllerRules(lambda image: Controller(image, config, random_source), refuse)
