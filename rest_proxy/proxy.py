"""The parts that calls work with, put together once."""

import asyncio
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from common.credentials.connecting import security_from
from common.process.clock import now_seconds
from rest_proxy.consumers.instances import Instances
from rest_proxy.kafka.admin import Admin
from rest_proxy.kafka.client_outcomes import client_outcomes
from rest_proxy.kafka.client_settings import aiokafka_settings, librdkafka_settings
from rest_proxy.kafka.metadata import Brokers
from rest_proxy.kafka.producer import Sender
from rest_proxy.refusals import cluster_not_found
from rest_proxy.schema_store import SchemaStore
from rest_proxy.settings import Settings
from rest_proxy.web.addresses import base_url

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
        )

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
