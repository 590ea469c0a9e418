"""The declaration of a service, and the parts of it that run."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Generic, TypeVar

from aiohttp import web

from common.process.telemetry import Metrics
from common.processing.processor import Processor
from common.processing.settings import Settings
from common.processing.table import FollowedTable
from common.processing.worker import Worker
from common.registry.events import Events

S = TypeVar("S", bound=Settings)
R = TypeVar("R")


@dataclass
class Running(Generic[R]):
    """The parts of a service that run; filled by the service's `assemble`."""

    metrics: Metrics = field(default_factory=Metrics)
    processor: Processor | None = None
    tables: list[FollowedTable] = field(default_factory=list)
    service: R | None = None
    """What the service's own routes work with; None until it is put together."""

    async def missing(self) -> list[str]:
        """Return what stands between this service and its work."""
        missing = []
        if self.processor is None or not self.processor.is_restored:
            missing.append("partitions and their state")
        if not all(table.is_loaded for table in self.tables):
            missing.append("tables")
        if not missing and self.processor and not await self.processor.is_broker_reachable():
            missing.append("the broker")
        return missing


Assemble = Callable[[S, str, Events, Running[R]], Awaitable[None]]
"""Builds the parts from settings, own URL and events, and puts them into `Running`."""
AddRoutes = Callable[[web.Application, S, Running[R]], None]


@dataclass(frozen=True)
class Service(Generic[S, R]):
    """One service. Its worker's class says which topics it reads and writes."""

    name: str
    """Also its consumer group, and what its transactional ids begin with."""
    worker: type[Worker]
    settings: type[S]
    assemble: Assemble[S, R]
    add_routes: AddRoutes[S, R] | None = None

    @property
    def topics(self) -> tuple[str, ...]:
        """Return the names of the topics it reads and writes, without dead letters."""
        worker = self.worker
        named = (topic.name for topic in (*worker.inputs, *worker.tables, *worker.outputs))
        return tuple(dict.fromkeys(named))

    @property
    def package(self) -> str:
        """Return the package that it lies in."""
        return self.assemble.__module__.rpartition(".")[0]

    @property
    def what(self) -> str:
        """Return what its package says of itself in the first paragraph."""
        text = import_module(self.package).__doc__ or ""
        return " ".join(text.partition("\n\n")[0].split())
