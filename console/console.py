"""The parts that views work with."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from aiohttp import web

from common.credentials.registry import registry_access
from common.http.problems import unavailable
from console.cluster import Cluster, client_of
from console.http_calls import HttpCalls
from console.reading.tails import Tails
from console.records.masking import TopicMask, mask_of
from console.settings import ConsoleSettings
from console.watching.flows import FlowMeter
from console.watching.watch import ClusterWatch

if TYPE_CHECKING:
    from console.own_stack import OwnStack

MAX_LONG_READS: Final = 20
"""Each holds some megabytes of records at a time, and a share of the processor."""


class LongReads:
    """Counts what reads for long: searches, exports, and texts that are followed."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._count = 0

    @contextmanager
    def one(self) -> Iterator[None]:
        """Let one more run; raise ProblemError, 503, if as many run as may."""
        if self._count >= self._limit:
            raise unavailable(f"{self._limit} searches and exports run already: stop one of them.")
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1


@dataclass(frozen=True, slots=True)
class Console:
    """Owns what is shared by all views."""

    settings: ConsoleSettings
    cluster: Cluster
    tails: Tails
    registry: HttpCalls | None
    connect: tuple[HttpCalls, ...]
    watch: ClusterWatch
    stack: "OwnStack | None"
    long_reads: LongReads

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
        stack = _stack_of(settings)
        watch = ClusterWatch(
            partial(client_of, settings.kafka),
            FlowMeter(cluster).look,
            lambda: {} if stack is None else stack.states(),
        )
        reads = LongReads(MAX_LONG_READS)
        return cls(settings, cluster, tails, registry, connect, watch, stack, reads)

    def mask(self, topic: str) -> TopicMask | None:
        """Return the rules that hide parts of a topic's records."""
        return mask_of(self.settings.masks, topic)

    async def close(self) -> None:
        """End the tails, and close all connections."""
        await self.tails.close()
        await self.watch.close()
        await self.cluster.close()
        for each in (self.registry, *self.connect):
            if each is not None:
                await each.close()


def _stack_of(settings: ConsoleSettings) -> "OwnStack | None":
    if not settings.stack:
        return None
    # Most consoles have none, and start sooner without.
    from console.own_stack import OwnStack

    return OwnStack(settings.stack)


CONSOLE: Final = web.AppKey("console", Console)
