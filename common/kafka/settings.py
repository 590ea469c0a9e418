"""The settings of a program that is a client of Kafka."""

from dataclasses import dataclass
from functools import cached_property

from common.credentials.access import MEANING, KafkaAccess, kafka_access
from common.process.settings import Checked, setting


@dataclass(frozen=True, kw_only=True)
class KafkaSettings(Checked):
    """Where Kafka is, and how to connect to it."""

    bootstrap_servers: str = setting("127.0.0.1:9092", "host:port of Kafka, or a list with commas")
    command_config: str = setting("", MEANING)

    def __post_init__(self) -> None:
        """Read the file at once; raises ClientSettingsError."""
        super().__post_init__()
        self.kafka  # noqa: B018 - to be refused at the start

    @cached_property
    def kafka(self) -> KafkaAccess:
        """How clients connect."""
        return kafka_access(self.bootstrap_servers, self.command_config, needs_librdkafka=False)
