"""How clients reach Kafka, in the forms of librdkafka and of aiokafka: servers, name, login.

A login is given as `client.NAME`, with the names of Java's clients or with librdkafka's.
"""

import ssl
from collections.abc import Mapping
from typing import Any, Final

from common.credentials.aiokafka_clients import aiokafka_security
from common.credentials.translation import ClientSettingsError, librdkafka_security

_CLIENT_ID: Final = "client.id"


def librdkafka_settings(bootstrap_servers: str, said: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings for clients of librdkafka; raises ClientSettingsError."""
    try:
        security = librdkafka_security(said)
    except ClientSettingsError as error:
        raise ClientSettingsError(f"client.{error}") from None
    return {
        "bootstrap.servers": bootstrap_servers,
        _CLIENT_ID: "rest-proxy",
        **security,
    }


def aiokafka_settings(told: Mapping[str, Any], context: ssl.SSLContext | None) -> dict[str, Any]:
    """Translate settings of librdkafka; raises ClientSettingsError for invalid files."""
    return {
        "bootstrap_servers": told["bootstrap.servers"],
        "client_id": told[_CLIENT_ID],
        **aiokafka_security(told, context),
    }
