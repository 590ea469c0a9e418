"""The parts that views work with."""

from dataclasses import dataclass
from functools import partial
from typing import Final

from aiohttp import web

from console.cluster import Cluster, client_of
from console.reading.tails import Tails
from console.records.masking import TopicMask, mask_of
from console.settings import ConsoleSettings


@dataclass(frozen=True, slots=True)
class Console:
    """Owns what is shared by all views."""

    settings: ConsoleSettings
    cluster: Cluster
    tails: Tails

    @classmethod
    def of(cls, settings: ConsoleSettings) -> "Console":
        """Make the parts, none of which connects yet. Raise KafkaError, ClientSettingsError."""
        cluster = Cluster(settings)
        tails = Tails(partial(client_of, settings.kafka), cluster.shelf)
        return cls(settings, cluster, tails)

    def mask(self, topic: str) -> TopicMask | None:
        """Return the rules that hide parts of a topic's records."""
        return mask_of(self.settings.masks, topic)

    async def close(self) -> None:
        """End the tails, and close all connections."""
        await self.tails.close()
        await self.cluster.close()


CONSOLE: Final = web.AppKey("console", Console)
