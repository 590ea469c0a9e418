"""Start a service, say when it is ready, stop it cleanly.

Order at start: HTTP first (so probes are answered and the instance knows its own URL), then the
registry, then Kafka. One line on standard output says that the service is ready. SIGTERM or
SIGINT: HTTP stops taking requests, the batch in hand is finished, offsets are committed, the
group is left.
"""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Awaitable
from functools import partial

from common.http.accepting import CannotListenError
from common.http.application import build_app
from common.http.serving import runner_of, serve_on
from common.http.site_guard import guard_of
from common.kafka.quiet_clients import quiet_clients
from common.process import clock, traces
from common.process.ending import run_until_closed
from common.process.settings import read_settings
from common.process.starting import announce, collect_seldom, configure_logging
from common.processing.front import add_fault_switch, add_front_page
from common.processing.service import R, Running, S, Service
from common.registry.client import SchemaRegistryClient
from common.registry.events import Events

log = logging.getLogger(__name__)

_READY_POLL_SECONDS = 0.05


def run_service(service: Service[S, R]) -> None:
    """Run a service as this process, and end it."""
    sys.exit(run_until_closed(partial(_run, service)))


def _run(service: Service[S, R]) -> int:
    program = f"millstream service {service.name}"
    settings = read_settings(service.settings, program, service.what, sys.argv[1:], os.environ)
    configure_logging()
    quiet_clients()
    collect_seldom()
    try:
        with traces.recorded(service.name):
            asyncio.run(_serve(service, settings))
    except CannotListenError as error:
        sys.stderr.write(f"{program}: {error}\n")
        return 1
    return 0


async def _serve(service: Service[S, R], settings: S) -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    running = Running[R]()
    app = build_app(
        running.metrics.registry,
        running.missing,
        http_seconds=running.metrics.http_seconds,
        site_guard=guard_of(settings.allowed_hosts, settings.http_host, settings.advertised_url),
    )
    if service.add_routes is not None:
        service.add_routes(app, settings, running)
    if settings.allow_faults:
        add_fault_switch(app, lambda: running.processor)
    add_front_page(app, service, settings, running.missing)
    runner = runner_of(app, 2.0, settings.http_security)
    await runner.setup()
    try:
        await serve_on(runner, settings.http_host, settings.http_port)
        scheme = settings.http_security.scheme
        url = f"{scheme}://{settings.http_host}:{runner.addresses[0][1]}"
        secured = settings.kafka.registry
        events = Events(SchemaRegistryClient(settings.registry_url, secured, waits=True))
        own_url = settings.advertised_url or url
        assembling = service.assemble(settings, own_url, events, running)
        await _work(service.name, url, running, assembling, stopping)
    finally:
        await runner.cleanup()
        log.info("service stopped name=%s", service.name)


async def _work(
    name: str, url: str, running: Running[R], assembling: Awaitable[None], stopping: asyncio.Event
) -> None:
    async with asyncio.TaskGroup() as group:
        work = group.create_task(_assemble_and_run(name, url, running, assembling))
        await stopping.wait()
        log.info("service stopping name=%s: finishing the batch, committing, leaving", name)
        if running.processor is None:
            work.cancel()
        else:
            running.processor.stop()


async def _assemble_and_run(
    name: str, url: str, running: Running[R], assembling: Awaitable[None]
) -> None:
    await assembling
    assert running.processor is not None
    async with asyncio.TaskGroup() as group:
        helpers = [group.create_task(table.run()) for table in running.tables]
        helpers.append(group.create_task(_announce(name, url, running)))
        processing = group.create_task(running.processor.run())
        await asyncio.wait([processing])
        if processing.cancelled():  # by itself: a task group would take that for its end
            raise RuntimeError("the processing was cancelled by something within it")
        for helper in helpers:
            helper.cancel()


async def _announce(name: str, url: str, running: Running[R]) -> None:
    started = clock.now_seconds()
    # What is waited for lies with Kafka, so there is no event to wait on.
    while await running.missing():  # noqa: ASYNC110
        await asyncio.sleep(_READY_POLL_SECONDS)
    announce(name, url)
    log.info("service ready name=%s after_seconds=%.2f", name, clock.now_seconds() - started)
