"""Client settings for aiokafka, which the worker uses where librdkafka lacks a request."""

from collections.abc import Mapping
from typing import Any

from common.credentials.aiokafka_clients import aiokafka_security
from common.credentials.translation import ClientSettingsError
from millstream.connect.errors import ConfigException


def aiokafka_settings(said: Mapping[str, Any]) -> dict[str, Any]:
    """Translate librdkafka's settings for bootstrap servers, client id and security.

    Raises ConfigException.
    """
    try:
        security = aiokafka_security(said)
    except ClientSettingsError as error:
        raise ConfigException(str(error)) from None
    return {
        "bootstrap_servers": said["bootstrap.servers"],
        "client_id": said.get("client.id") or "connect",
        **security,
    }
