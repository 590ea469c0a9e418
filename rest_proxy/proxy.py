"""The parts that calls work with, put together once.

The clients of Kafka get servers, name and login in the forms of librdkafka and of aiokafka. A login
is given as `client.NAME`, with the names of Java's clients or with librdkafka's.
"""

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from common.credentials.aiokafka_clients import aiokafka_security
from common.credentials.connecting import security_from
from common.credentials.translation import ClientSettingsError, librdkafka_security
from common.process.clock import now_seconds
from rest_proxy.consumers.instances import Instances
from rest_proxy.kafka.admin import Admin
from rest_proxy.kafka.client_outcomes import client_outcomes
from rest_proxy.kafka.metadata import Brokers
from rest_proxy.kafka.producer import Sender
from rest_proxy.refusals import cluster_not_found
from rest_proxy.schema_store import SchemaStore
from rest_proxy.settings import Settings
from rest_proxy.web.addresses import base_url
from rest_proxy.web.turns import Turns

_CLIENT_ID: Final = "client.id"


def librdkafka_settings(bootstrap_servers: str, settings: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings for clients of librdkafka; raises ClientSettingsError."""
    try:
        security = librdkafka_security(settings)
    except ClientSettingsError as error:
        raise ClientSettingsError(f"client.{error}") from None
    return {
        "bootstrap.servers": bootstrap_servers,
        _CLIENT_ID: "rest-proxy",
        **security,
    }


def aiokafka_settings(
    settings: Mapping[str, Any], context: ssl.SSLContext | None
) -> dict[str, Any]:
    """Translate settings of librdkafka; raises ClientSettingsError for invalid files."""
    return {
        "bootstrap_servers": settings["bootstrap.servers"],
        "client_id": settings[_CLIENT_ID],
        **aiokafka_security(settings, context),
    }


_MS: Final = 1000
_PRODUCER: Final = "producer."


@dataclass(frozen=True, slots=True)
class Proxy:
    """Owns the clients."""

    settings: Settings
    brokers: Brokers
    admin: Admin
    sender: Sender
    schemas: SchemaStore
    instances: Instances
    line: asyncio.Lock
    """In which long pieces of work wait for their turns."""

    @classmethod
    def of(cls, settings: Settings) -> "Proxy":
        """Make the clients, none of which connects yet. Raises ClientSettingsError."""
        clients = client_outcomes(settings.client)
        told = librdkafka_settings(settings["bootstrap.servers"], clients.security)
        security = security_from(told)
        for_aiokafka = aiokafka_settings(told, security.tls)
        producer = {
            name.removeprefix(_PRODUCER): settings[name]
            for name in settings.values
            if name.startswith(_PRODUCER)
        }
        if producer["acks"] not in ("all", "-1"):
            producer["enable.idempotence"] = "false"
        for_admin = {"client_id": told["client.id"], **clients.of["admin"]}
        own = (told["bootstrap.servers"], security, for_admin.pop("client_id"))
        return cls(
            settings,
            Brokers(*own),
            Admin(*own, **for_admin),
            Sender({**told, **clients.of["producer"], **producer}),
            SchemaStore(settings["schema.registry.url"], now_seconds, settings.registry),
            Instances(
                {**for_aiokafka, **clients.of["consumer"]},
                timeout_seconds=settings.whole("consumer.instance.timeout.ms") / _MS,
                limit=settings.whole("consumer.instances.max"),
                now_seconds=now_seconds,
            ),
            asyncio.Lock(),
        )

    def turns(self) -> Turns:
        """Return the turns of a piece of work that begins."""
        return Turns(now_seconds, self.line)

    async def close(self) -> None:
        # At the same time, because each may wait for a broker that is gone.
        await asyncio.gather(self.instances.close(), self.sender.close())
        await self.schemas.close()
        await self.admin.close()
        await self.brokers.close()

    def base_url(self, request: web.Request) -> str:
        """Return the address of this proxy as the caller reaches it."""
        return base_url(
            request.headers,
            scheme=request.scheme,
            host=request.host,
            advertised=self.settings["advertised.listeners"],
            host_name=self.settings["host.name"],
        )

    async def check_cluster(self, cluster_id: str) -> None:
        """Raise RestError, 404, for a cluster that is not this one."""
        if cluster_id != await self.brokers.cluster_id():
            raise cluster_not_found(cluster_id)


PROXY: Final = web.AppKey("proxy", Proxy)
