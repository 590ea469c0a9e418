"""The input of the controller's handlers: the image, the configuration, the brokers' sessions."""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from broker.log.config import LogConfig
from broker.metadata.control.group_limits import GROUP_LIMITS, GroupLimit
from broker.metadata.control.sessions import Sessions
from broker.metadata.features import ELIGIBLE_LEADER_REPLICAS_VERSION, FEATURES_AT_FORMAT
from broker.metadata.image import BrokerImage, MetadataImage, TopicImage
from broker.metadata.parts.brokers import UNASSIGNED_DIRECTORY
from broker.metadata.parts.configs import BROKER_RESOURCE, CLUSTER_DEFAULT, TOPIC_RESOURCE
from broker.metadata.parts.delegation_tokens import TokenFinder
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.create_topics import CreatableTopicConfigs


class Random(Protocol):
    """The part of `random.Random` that decisions use."""

    def randrange(self, stop: int, /) -> int:
        """Return a number from 0 to `stop` - 1."""
        ...

    def randbytes(self, n: int, /) -> bytes:
        """Return random bytes."""
        ...


@dataclass(frozen=True, slots=True)
class Moment:
    """The time of a decision, and its place in the log."""

    now_ms: int
    timestamp_ms: int
    next_offset: int  # of the first record of this decision


@dataclass(slots=True)
class Decision:
    """A response and records. The response is sent after the records are committed and replayed."""

    response: Message
    records: list[Message] = field(default_factory=list)


DecisionSteps = Generator[Sequence[Message], None, Decision]
"""A large decision: the records of each yield are committed before it continues."""


def describe_nothing(settings: Mapping[str, str]) -> list[CreatableTopicConfigs]:
    """Return no descriptions of a created topic's settings."""
    return []


class ValidateBrokerSettings(Protocol):
    """Checks the dynamic settings of one broker, or with `is_for_all` those of all brokers."""

    def __call__(self, settings: Mapping[str, str], *, is_for_all: bool) -> None:
        """Raise INVALID_CONFIG or INVALID_REQUEST for settings that are not valid."""


def accept_any(settings: Mapping[str, str], *, is_for_all: bool) -> None:
    """Accept any broker settings."""


def nobody() -> tuple[int, int] | None:
    """Return None: no other leader was heard of."""
    return None


def no_list(name: str) -> str | None:
    """Return None: no broker setting is of type LIST."""
    return None


@dataclass(frozen=True, slots=True)
class TokenConfig:
    """The settings of delegation tokens, `delegation.token.*`."""

    secret_key: str = field(default="", repr=False)
    """Empty: there are no delegation tokens."""
    max_lifetime_ms: int = 604_800_000
    renewal_ms: int = 86_400_000
    """delegation.token.expiry.time.ms: the lifetime until a token has to be renewed."""
    check_interval_ms: int = 3_600_000


@dataclass(frozen=True, slots=True)
class ControllerConfig:
    """The configuration of the node that runs the controller."""

    node_id: int = -1
    voters: Callable[[], tuple[int, ...]] = tuple
    """Returns the node ids of the quorum's voters."""
    heard_leader: Callable[[], tuple[int, int] | None] = nobody
    """Returns the last leader that answered this node, and when (monotonic milliseconds)."""
    own_incarnation_id: bytes | None = None
    """The incarnation of the broker in this process: it replaces an earlier one at once."""
    cluster_id: str = ""
    partition_count: int = 1
    replication_factor: int = 1
    session_timeout_ms: int = 9_000  # broker.session.timeout.ms
    leader_imbalance_check_interval_ms: int = 300_000
    """The interval of preferred leader elections; 0 turns them off."""
    delete_topic: bool = True  # delete.topic.enable
    features_at_format: Mapping[str, int] = field(default_factory=lambda: dict(FEATURES_AT_FORMAT))
    """The feature levels of a new cluster."""
    credentials_at_format: tuple[Message, ...] = ()
    """The records of users' SCRAM credentials that a new cluster starts with (KIP-900)."""
    tokens: TokenConfig = field(default_factory=TokenConfig)
    log: LogConfig = field(default_factory=LogConfig)
    """The settings of a topic without its own settings."""
    describe_topic_settings: Callable[[Mapping[str, str]], list[CreatableTopicConfigs]] = (
        describe_nothing
    )
    """Returns all settings of a topic with these own settings, for the answer of CreateTopics."""
    validate_broker_settings: ValidateBrokerSettings = accept_any
    group_limits: Mapping[str, GroupLimit] = field(default_factory=lambda: dict(GROUP_LIMITS))
    """The bounds of the settings of groups."""
    broker_list_default: Callable[[str], str | None] = no_list
    """Returns the default of a broker setting of type LIST, None for other types."""


class ClusterView:
    """The image, with queries that several handlers need."""

    def __init__(self, image: MetadataImage, config: ControllerConfig, random: Random) -> None:
        self.image = image
        self.config = config
        self.random = random
        self.sessions = Sessions(config.session_timeout_ms, config.own_incarnation_id)
        self.token_finder = TokenFinder()

    def is_active(self, broker_id: int) -> bool:
        """Return True if a broker may lead and be in an in-sync set."""
        broker = self.image.brokers.get(broker_id)
        return broker is not None and broker.is_active

    def registered(self, broker_id: int, broker_epoch: int) -> BrokerImage:
        """Return the registered broker; raise STALE_BROKER_EPOCH for another epoch."""
        broker = self.image.brokers.get(broker_id)
        if broker is None:
            problem = f"No broker registration found for broker id {broker_id}"
        elif broker.epoch != broker_epoch:
            problem = f"Expected broker epoch {broker.epoch}, but got broker epoch {broker_epoch}"
        else:
            return broker
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, problem)

    def default_directory(self, broker_id: int) -> bytes:
        """Return the log directory of a new replica on a broker."""
        broker = self.image.brokers.get(broker_id)
        return UNASSIGNED_DIRECTORY if broker is None else broker.default_directory

    def default_directories(self, replicas: Sequence[int]) -> list[bytes]:
        """Return the log directories of new replicas."""
        return [self.default_directory(broker_id) for broker_id in replicas]

    # --- settings that leadership depends on ---

    @property
    def is_elr_enabled(self) -> bool:
        """True if eligible leader replicas are enabled (KIP-966)."""
        return self.image.features.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0

    def min_isr(self, topic: TopicImage) -> int:
        """Return the number of required in-sync replicas, at most the replication factor."""
        text = self._setting(topic.name, "min.insync.replicas")
        wanted = self.config.log.min_insync_replicas if text is None else int(text)
        return min(wanted, topic.replication_factor)

    def allows_unclean_election(self, topic_name: str) -> bool:
        """Return True if a replica that was not in sync may lead if no other one can."""
        text = self._setting(topic_name, "unclean.leader.election.enable")
        if text is None:
            return self.config.log.unclean_leader_election_enable
        return text.strip().lower() == "true"

    def _setting(self, topic_name: str, name: str) -> str | None:
        settings_of = self.image.configs.settings_of
        this_node = (BROKER_RESOURCE, str(self.config.node_id))
        for resource in ((TOPIC_RESOURCE, topic_name), this_node, CLUSTER_DEFAULT):
            text = settings_of(*resource).get(name)
            if text is not None:
                return text
        return None
