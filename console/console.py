"""The parts that views work with."""

from dataclasses import dataclass
from functools import partial
from typing import Final

from aiohttp import web

from common.credentials.registry import registry_access
from console.cluster import Cluster, client_of
from console.http_calls import HttpCalls
from console.reading.tails import Tails
from console.records.masking import TopicMask, mask_of
from console.settings import ConsoleSettings


@dataclass(frozen=True, slots=True)
class Console:
    """Owns what is shared by all views."""

    settings: ConsoleSettings
    cluster: Cluster
    tails: Tails
    registry: HttpCalls | None
    connect: tuple[HttpCalls, ...]

    @classmethod
    def of(cls, settings: ConsoleSettings) -> "Console":
        """Make the parts, none of which connects yet. Raise KafkaError, ClientSettingsError."""
        cluster = Cluster(settings)
        tails = Tails(partial(client_of, settings.kafka), cluster.shelf)
        registry = None
        if settings.schema_registry:
            access = registry_access(settings.kafka.registry)
            registry = HttpCalls(settings.schema_registry, "The schema registry", access)
        connect = tuple(HttpCalls(url, "Connect") for url in settings.connect)
        return cls(settings, cluster, tails, registry, connect)

    def mask(self, topic: str) -> TopicMask | None:
        """Return the rules that hide parts of a topic's records."""
        return mask_of(self.settings.masks, topic)

    async def close(self) -> None:
        """End the tails, and close all connections."""
        await self.tails.close()
        await self.cluster.close()
        for each in (self.registry, *self.connect):
            if each is not None:
                await each.close()


CONSOLE: Final = web.AppKey("console", Console)
