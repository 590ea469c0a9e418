"""The worker's own client of Kafka, where librdkafka lacks a request."""

from collections.abc import Mapping
from typing import Any

from common.credentials.connecting import security_from
from common.credentials.translation import ClientSettingsError
from common.kafka.client.cluster import KafkaClient
from common.kafka.errors import KafkaError
from millstream.connect.errors import ConfigException


def kafka_client(said: Mapping[str, Any], request_timeout_ms: int) -> KafkaClient:
    """Make a client of librdkafka's settings for bootstrap servers, client id and security.

    Raises ConfigException.
    """
    try:
        return KafkaClient(
            said["bootstrap.servers"],
            security_from(said),
            client_id=said.get("client.id") or "connect",
            request_timeout_ms=request_timeout_ms,
        )
    except (ClientSettingsError, KafkaError) as error:
        raise ConfigException(str(error)) from None
