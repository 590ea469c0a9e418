"""Looks at a cluster at intervals, and serves `/metrics`, `/health/live`, `/health/ready` and `/`.

A look asks brokers and may take seconds, so it is taken on a thread; the loop goes on. While looks
fail the last numbers stay, and `/health/ready` says what is wrong.
"""

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge

from common.http.application import build_app
from common.http.front import FrontPage, Link
from common.http.security import HttpSecurity
from common.http.serving import front_page_handler, runner_of, serve_on
from common.http.site_guard import guard_of
from common.kafka.client.exchange import ConnectionFailed
from common.kafka.errors import KafkaError
from common.process.clock import now_seconds
from common.process.tasks import spawn
from lag.facts import Look
from lag.families import LagCollector
from lag.monitor import Monitor

log = logging.getLogger("millstream.lag")

STALE_LOOKS: Final = 3
"""After so many intervals without a look the numbers are too old to be called ready."""


class Looking:
    """Owns the monitor, and takes looks until it is stopped."""

    def __init__(self, look: Callable[[], Look], interval_seconds: float) -> None:
        self.monitor = Monitor()
        self.registry = CollectorRegistry()
        self.registry.register(LagCollector(self.monitor))
        self._look = look
        self._interval_seconds = interval_seconds
        self._failed = Counter(
            "millstream_lag_failed_looks", "Looks that failed", registry=self.registry
        )
        self._seconds = Gauge(
            "millstream_lag_look_seconds", "How long the last look took", registry=self.registry
        )
        self._taken_at: float | None = None
        self._why = "the first look"

    async def run(self) -> None:
        """Take looks until cancelled."""
        while True:
            began = now_seconds()
            await self._take(began)
            await asyncio.sleep(max(0.0, began + self._interval_seconds - now_seconds()))

    async def _take(self, began: float) -> None:
        try:
            look = await asyncio.to_thread(self._look)
        except (KafkaError, ConnectionFailed) as error:
            self._failed.inc()
            self._why = str(error)
            log.warning("no look at the cluster: %s", error)
            return
        self.monitor.take(look)
        self._taken_at = now_seconds()
        self._seconds.set(self._taken_at - began)

    async def missing(self) -> list[str]:
        """Return why the numbers cannot be used; nothing if they can."""
        oldest = now_seconds() - STALE_LOOKS * self._interval_seconds - 1
        return [self._why] if self._taken_at is None or self._taken_at < oldest else []


def application(looking: Looking, host: str) -> web.Application:
    """Return the server's routes."""
    app = build_app(looking.registry, looking.missing, site_guard=guard_of("", host))
    page = FrontPage(
        name="lag",
        title="Lag monitor",
        what="How far the groups of a Kafka cluster are behind.",
        links=[Link("/metrics", "/metrics", "the numbers, for Prometheus")],
    )

    async def state(_: web.Request) -> tuple[list[str], Mapping[str, str]]:
        groups = looking.monitor.groups
        facts = {
            name: f"{each.total:,} records, {each.state.name}" for name, each in groups.items()
        }
        return await looking.missing(), facts

    app.add_routes([web.get("/", front_page_handler(page, state))])
    return app


async def serve(
    looking: Looking,
    probing: Sequence[Coroutine[Any, Any, None]],
    address: tuple[str, int],
    security: HttpSecurity,
    say: Callable[[str], None],
) -> None:
    """Serve until SIGTERM or SIGINT, and probe if asked. Raises OSError when the port is taken."""
    host, port = address
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    runner = runner_of(application(looking, host), security=security)
    await runner.setup()
    running = [spawn(each) for each in (looking.run(), *probing)]
    try:
        await serve_on(runner, host, port)
        say(f"millstream lag ready on {security.scheme}://{host}:{runner.addresses[0][1]}/metrics")
        await stopping.wait()
    finally:
        for each in running:
            each.cancel()
        await asyncio.wait(running)
        await runner.cleanup()
