"""Kafka's client settings of security, in the spelling of aiokafka."""

import asyncio
import ssl
from collections.abc import Mapping
from typing import Any

from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaConnectionError

from common.credentials.jaas import LoginSettingsError
from common.credentials.kerberos import SERVICE
from common.credentials.mechanisms import MECHANISMS, become
from common.credentials.tokens import NoToken, TokenReader
from common.credentials.translation import ClientSettingsError, client_context


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]
    """Gives a new token to each connection. The connection fails when there is none."""

    def __init__(self, reader: TokenReader) -> None:
        self._reader = reader

    async def token(self) -> str:
        """Return a token. Raise KafkaConnectionError, so that aiokafka tries again."""
        try:
            return (await asyncio.to_thread(self._reader.read)).text
        except NoToken as error:
            raise KafkaConnectionError(str(error)) from None


def aiokafka_security(
    told: Mapping[str, Any], context: ssl.SSLContext | None = None
) -> dict[str, Any]:
    """Translate security settings that have librdkafka's names; `context` is made if there is none.

    With GSSAPI this process gets a ticket and is that user from then on. Raise ClientSettingsError.
    """
    protocol = str(told.get("security.protocol", "PLAINTEXT")).upper()
    settings: dict[str, Any] = {"security_protocol": protocol}
    if protocol.startswith("SASL"):
        try:
            settings |= _aiokafka_login(told)
        except LoginSettingsError as error:
            raise ClientSettingsError(str(error)) from error
    if protocol.endswith("SSL"):
        settings["ssl_context"] = context or client_context(told)
    return settings


def _aiokafka_login(told: Mapping[str, Any]) -> dict[str, Any]:
    mechanism = told.get("sasl.mechanism")
    settings: dict[str, Any] = {"sasl_mechanism": mechanism}
    match mechanism:
        case "OAUTHBEARER":
            settings["sasl_oauth_token_provider"] = TokenProvider(told["oauth_cb"])
        case "GSSAPI":
            become(told)
            settings["sasl_kerberos_service_name"] = told[SERVICE]
        case _ if mechanism in MECHANISMS:
            settings["sasl_plain_username"] = told.get("sasl.username")
            settings["sasl_plain_password"] = told.get("sasl.password")
        case _:
            raise ClientSettingsError(f"sasl.mechanism={mechanism}: {', '.join(MECHANISMS)}")
    return settings
