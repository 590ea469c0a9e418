"""Client settings for aiokafka, which the worker uses where librdkafka lacks a request."""

from collections.abc import Mapping
from typing import Any

from aiokafka.helpers import create_ssl_context


def aiokafka_settings(said: Mapping[str, Any]) -> dict[str, Any]:
    """Translate librdkafka's settings for bootstrap servers, client id and security."""
    protocol = str(said.get("security.protocol", "PLAINTEXT")).upper()
    told: dict[str, Any] = {
        "bootstrap_servers": said["bootstrap.servers"],
        "client_id": said.get("client.id") or "connect",
        "security_protocol": protocol,
    }
    if protocol.startswith("SASL"):
        told["sasl_mechanism"] = said.get("sasl.mechanism", "PLAIN")
        told["sasl_plain_username"] = said.get("sasl.username")
        told["sasl_plain_password"] = said.get("sasl.password")
    if protocol.endswith("SSL"):
        told["ssl_context"] = create_ssl_context(
            cafile=said.get("ssl.ca.location"), cadata=said.get("ssl.ca.pem")
        )
    return told
