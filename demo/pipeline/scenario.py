"""The demo, step by step: start everything, send the orders, count, report, serve on."""

import asyncio
import contextlib
import shlex
import shutil
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import NamedTuple

import aiohttp

from common.credentials.access import VARIABLE, KafkaAccess, kafka_access
from common.process.tasks import spawn
from demo.pipeline.analytics import PROGRAMS, Analytics, has_java, start_analytics, why_not
from demo.pipeline.brokers import NODE_IDS, start_brokers
from demo.pipeline.connect import (
    Places,
    make_places,
    start_worker,
    wait_until_there,
    why_no_worker,
)
from demo.pipeline.display import Display
from demo.pipeline.installing import install
from demo.pipeline.invoices import read_scenery
from demo.pipeline.mirror import PROGRAMS as MIRROR_PROGRAMS
from demo.pipeline.mirror import Mirror, start_mirror
from demo.pipeline.observing import Observer
from demo.pipeline.options import Options
from demo.pipeline.orders import Scenery
from demo.pipeline.registry import RegistryReader, secured_session
from demo.pipeline.report import Run, build_report, count_reasons, find_faults, write_report
from demo.pipeline.security import ADMIN, CONSOLE, DEMO, LOAD, MIRROR, DemoSecurity
from demo.pipeline.sending import Sender
from demo.pipeline.services import SERVICES, start_services
from demo.pipeline.shop import fill_shop
from demo.pipeline.switches import broker_names, follow_switches
from demo.pipeline.synthetic import make_scenery
from demo.pipeline.topics import (
    delete_pipeline_topics,
    publish_catalogue,
    publish_customers,
)
from millstream.processes.child_processes import Children
from millstream.processes.cluster_layout import REPLICATION_FACTOR, free_ports

SESSION_MS = 6_000
"""The shortest session that every Kafka allows: the orders of a killed service wait for this time.
With Spark on the same cores a service may be silent for longer than that."""
_IN_FLIGHT = 64
_IN_FLIGHT_PACED = 1024
_JUDGED_SECONDS = 90.0
_ENDS_SECONDS = 60.0
_INDEX_SECONDS = 30.0
_PROGRESS_SECONDS = 0.25
_MIRROR_PORTS = 4
_SWITCHES = "switches"


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses of all programs."""

    kafka: KafkaAccess
    security: DemoSecurity | None
    urls: dict[str, str]
    analytics: Analytics | None
    start_later: Callable[[], Awaitable[Analytics]] | None
    """Starts the analytics, if their packages are being installed."""
    mirror: Mirror | None
    connectors: Places | None


async def run_demo(options: Options, display: Display) -> int:
    """Run the demo; return the exit code, or serve until cancelled."""
    scenery = _load_scenery(options)
    display.say(f"{len(scenery.orders)} orders, {len(scenery.catalogue)} products")
    data_folder = options.folder.absolute() / f"data-{time.strftime('%Y%m%d-%H%M%S')}"
    children = Children(options.folder / "logs")
    installing = _begin_to_install(options, display)
    try:
        connectors = _prepare_connectors(options, display, scenery)
        is_later = installing is not None
        addresses = await _start(
            options, display, children, connectors, data_folder, is_later=is_later
        )
        async with asyncio.TaskGroup() as group:
            # The death of a child ends the demo with an error.
            watching = group.create_task(children.watch())
            brokers = children.named(broker_names())
            switching = group.create_task(follow_switches(data_folder / _SWITCHES, brokers))
            analytics = group.create_task(_wait_for_analytics(display, addresses, installing))
            exit_code = await _perform(options, display, scenery, addresses, analytics)
            watching.cancel()
            switching.cancel()
        return exit_code
    finally:
        if installing is not None:
            installing.cancel()
            await asyncio.wait([installing])
        await children.stop()
        shutil.rmtree(data_folder, ignore_errors=True)


def _begin_to_install(options: Options, display: Display) -> asyncio.Task[bool] | None:
    """Begin to install what Spark and the streams need; None if nothing is to be installed."""
    if options.lite or not options.install_command or not has_java() or why_not() is None:
        return None
    display.say("Spark, streams and the dashboard come later: their packages are being installed")
    return spawn(install(options.install_command, options.folder.absolute(), display.say))


async def _wait_for_analytics(
    display: Display, addresses: Addresses, installing: asyncio.Task[bool] | None
) -> Analytics | None:
    """Return the analytics, which are started when their packages have come; None without."""
    if installing is None or addresses.start_later is None or not await installing:
        return addresses.analytics
    if (lacking := why_not()) is not None:
        display.say(f"without Spark, streams and dashboard: {lacking}")
        return None
    started_at = time.monotonic()
    display.say("starting Spark, streams and the dashboard")
    analytics = await addresses.start_later()
    display.say(f"they are ready after {time.monotonic() - started_at:.1f} s")
    display.show_urls(analytics.urls)
    return analytics


def _load_scenery(options: Options) -> Scenery:
    if options.orders is not None:
        return read_scenery(options.orders, options.limit)
    count = options.count if options.limit is None else min(options.limit, options.count)
    return make_scenery(count, options.seed)


async def _start(
    options: Options,
    display: Display,
    children: Children,
    connectors: Places | None,
    data_folder: Path,
    *,
    is_later: bool,
) -> Addresses:
    started_at = time.monotonic()
    ports = _assign_ports(options.ports)
    lacking = None if options.lite else why_not()
    is_whole = is_later or (not options.lite and lacking is None)
    pages = {} if options.bootstrap else _broker_pages(ports)
    pages |= {} if connectors is None else {"connect": f"http://127.0.0.1:{ports.connect}"}
    scheme = "https" if options.secure else "http"
    pages |= {"console": f"{scheme}://127.0.0.1:{ports.console}"}
    neighbours = {**pages, **(_mirror_pages(ports) if options.mirror else {})}
    children.environment = _links(ports, neighbours, is_whole=is_whole, is_secure=options.secure)
    security = DemoSecurity(data_folder / "secrets") if options.secure else None
    told = (options, display, children, data_folder)
    kafka, topics = await _start_kafka(*told, ports, security)
    where = ["--bootstrap-servers", kafka.bootstrap_servers]
    children.begin_level()
    registry = await children.start(
        "registry",
        "schemas.registry",
        *(*where, *topics, "--http-port", str(ports.registry)),
        is_revived=True,
    )
    where += ["--registry-url", registry.address]
    children.begin_level()
    urls = {**pages, "registry": registry.address}
    urls |= await start_services(
        children,
        [*where, *topics, *([] if is_whole else ["--session-timeout-ms", str(SESSION_MS)])],
        data_folder,
        ports.services,
    )
    if connectors is not None:
        addresses = (kafka.bootstrap_servers, registry.address, pages["connect"])
        await start_worker(children, connectors, data_folder, *addresses)
    asked = ["--bootstrap-server", kafka.bootstrap_servers, "--port", str(ports.console)]
    asked += ["--schema-registry", registry.address]
    asked += ["--connect", pages["connect"]] if "connect" in pages else []
    asked += [] if options.bootstrap else ["--stack", str(data_folder / _SWITCHES)]
    await children.start(CONSOLE, "console", *asked, is_revived=True)
    analytics = None
    begin = partial(start_analytics, children, [*where, *topics], data_folder, ports.analytics)
    if is_whole and not is_later:
        display.say("starting Spark, streams and the dashboard")
        analytics = await begin()
        urls |= analytics.urls
    elif not is_later and lacking is not None:
        display.say(f"without Spark, streams and dashboard: {lacking}")
    mirror = None
    if options.mirror:
        source = kafka if security is None else security.access(kafka.bootstrap_servers, MIRROR)
        mirror = await start_mirror(children, source, data_folder, ports.mirror)
        urls |= mirror.urls
    display.say(f"all ready after {time.monotonic() - started_at:.1f} s")
    later = begin if is_later else None
    return Addresses(kafka, security, urls, analytics, later, mirror, connectors)


async def _start_kafka(
    options: Options,
    display: Display,
    children: Children,
    data_folder: Path,
    ports: "_Ports",
    security: DemoSecurity | None,
) -> tuple[KafkaAccess, list[str]]:
    """Start the demo's own brokers, or clean the user's cluster.

    Return the access to it, and the arguments of programs that create topics.
    """
    if not options.bootstrap:
        where = (ports.brokers, ports.controllers, ports.pages)
        servers = await start_brokers(children, data_folder, *where, security)
        topics = ["--replication-factor", str(REPLICATION_FACTOR)]
        if security is None:
            return kafka_access(servers), topics
        children.own_environment = security.environment
        await security.give_rights(servers, display)
        return security.access(servers, DEMO), topics
    kafka = kafka_access(options.bootstrap, options.command_config)
    if options.command_config:
        children.environment = {**children.environment, VARIABLE: options.command_config}
    deleted = await delete_pipeline_topics(kafka)
    if deleted:
        display.say("deleted, to start clean: " + ", ".join(deleted))
    return kafka, []


def _prepare_connectors(options: Options, display: Display, scenery: Scenery) -> Places | None:
    """Fill the connectors' database, and return their places; None without connectors."""
    if options.lite and not options.connect:
        return None
    lacking = why_no_worker(options.shop, options.elasticsearch)
    if lacking is not None:
        display.say(f"without connectors: {lacking}")
        return None
    places = make_places(options.folder, options.shop, options.elasticsearch)
    fill_shop(places.shop_url, scenery.catalogue, scenery.customer_ids())
    return places


class _Ports(NamedTuple):
    """All ports, chosen before any program starts, because every program gets all addresses."""

    brokers: list[int]
    controllers: list[int]
    pages: list[int]
    """The brokers' pages for browsers."""
    registry: int
    services: list[int]
    analytics: list[int]
    connect: int
    mirror: list[int]
    """The second cluster's broker, controller and page, and the mirror's page."""
    console: int


def _assign_ports(first: int) -> _Ports:
    """Assign the ports, beginning at `first`; the first broker has the first one."""
    numbers = iter(count(first) if first else free_ports())
    broker = next(numbers)
    registry = next(numbers)
    services = list(islice(numbers, len(SERVICES)))
    analytics = list(islice(numbers, len(PROGRAMS)))
    brokers = [broker, *islice(numbers, len(NODE_IDS) - 1)]
    controllers = list(islice(numbers, len(NODE_IDS)))
    pages = list(islice(numbers, len(NODE_IDS)))
    connect = next(numbers)
    mirror = list(islice(numbers, _MIRROR_PORTS))
    console = next(numbers)
    return _Ports(
        brokers, controllers, pages, registry, services, analytics, connect, mirror, console
    )


def _broker_pages(ports: _Ports) -> dict[str, str]:
    return {
        f"broker-{node_id}": f"http://127.0.0.1:{port}"
        for node_id, port in zip(NODE_IDS, ports.pages, strict=True)
    }


def _mirror_pages(ports: _Ports) -> dict[str, str]:
    shown = ports.mirror[-len(MIRROR_PROGRAMS) :]
    return {
        name: f"http://127.0.0.1:{port}" for name, port in zip(MIRROR_PROGRAMS, shown, strict=True)
    }


def _links(
    ports: _Ports, pages: dict[str, str], *, is_whole: bool, is_secure: bool
) -> dict[str, str]:
    """Return the variables with the pages to which every program links."""
    numbers = {**dict(zip(SERVICES, ports.services, strict=True)), "registry": ports.registry}
    if is_whole:
        numbers |= zip(PROGRAMS, ports.analytics, strict=True)
    urls = {name: f"http://127.0.0.1:{port}" for name, port in numbers.items()} | pages
    if is_secure:
        urls["registry"] = f"https://127.0.0.1:{ports.registry}"
    text = ",".join(f"{name}={url}" for name, url in urls.items())
    return {"MILLSTREAM_NEIGHBOURS": text, "KAFKA_HTTP_NEIGHBOURS": text}


async def _perform(
    options: Options,
    display: Display,
    scenery: Scenery,
    addresses: Addresses,
    analytics: Awaitable[Analytics | None],
) -> int:
    run = Run()
    connector = aiohttp.TCPConnector(limit=0)
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        secured_session(addresses.kafka) as of_registry,
    ):
        registry = RegistryReader(addresses.urls["registry"], of_registry)
        await _bring_in(addresses, registry, scenery)
        observer = Observer(addresses.kafka, registry)
        run_name = f"demo-{time.time_ns()}"
        sender = Sender(addresses.urls["orders"], run_name, session, observer, _JUDGED_SECONDS)
        async with asyncio.TaskGroup() as group:
            observing = group.create_task(observer.run())
            watching = _watch_mirror(group, addresses.mirror, session)
            await observer.started.wait()
            await _send_with_progress(options, display, scenery, sender, run)
            await sender.wait_for_ends(run, _ENDS_SECONDS)
            for task in (observing, *watching):
                task.cancel()
        run.documents = await _count_documents(addresses.urls["search"], session, run)
        report = build_report(run)
        if addresses.mirror is not None:
            display.say("waiting for the mirror to catch up")
            report["mirror"] = await addresses.mirror.wait_until_level(session)
        write_report(report, options.folder / "report.json")
    faults = find_faults(run)
    urls = {"kafka": addresses.kafka.bootstrap_servers, **addresses.urls}
    if addresses.connectors is not None:
        urls |= addresses.connectors.shown()
    urls["openapi"] = addresses.urls["orders"] + "/openapi.json"
    display.show_result(report, count_reasons(run))
    if addresses.mirror is not None:
        display.show_rows("Mirror", [addresses.mirror.rows(report["mirror"])])
    display.show_urls(urls)
    if addresses.security is not None:
        display.say(f"console: user {ADMIN}, password in {addresses.security.console_users}")
    for fault in faults:
        display.say(f"WRONG: {fault}")
    if options.once:
        if (shown := await analytics) is not None:
            display.say("waiting for the dashboard to catch up")
            await shown.wait_until_caught_up(len(run.accepted), options.folder)
            display.say(f"the dashboard shows all {len(run.accepted)} orders")
        return 1 if faults else 0
    display.say(
        f"more orders: {_own_command()} load --orders-url {addresses.urls['orders']} "
        f"--bootstrap-servers {addresses.kafka.bootstrap_servers} "
        f"{_load_file(options, addresses.security)}"
        f"--registry-url {addresses.urls['registry']}"
    )
    display.say("serving until Ctrl-C")
    await asyncio.Event().wait()
    return 0


def _load_file(options: Options, security: DemoSecurity | None) -> str:
    """Return the option of `millstream load` for a secured cluster, with a space behind it."""
    file = options.command_config if security is None else security.client_file(LOAD)
    return f"--command-config {shlex.quote(file)} " if file else ""


def _own_command() -> str:
    """Return the command of this program; the `.venv` of a clone is usually not on the PATH."""
    if shutil.which("millstream"):
        return "millstream"
    python, here = Path(sys.executable), Path.cwd()
    shown = python.relative_to(here) if python.is_relative_to(here) else python
    return f"{shlex.quote(str(shown))} -m millstream"


async def _count_documents(search_url: str, session: aiohttp.ClientSession, run: Run) -> int | None:
    """Wait until the index has all orders or the time is over; return their number in it."""
    found: int | None = None
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_INDEX_SECONDS):
            while found != len(run.accepted):
                async with session.get(f"{search_url}/v1/index") as response:
                    found = (await response.json(content_type=None)).get("documents")
                await asyncio.sleep(_PROGRESS_SECONDS)
    return found


def _watch_mirror(
    group: asyncio.TaskGroup, mirror: Mirror | None, session: aiohttp.ClientSession
) -> list[asyncio.Task[None]]:
    return [] if mirror is None else [group.create_task(mirror.watch(session))]


async def _bring_in(addresses: Addresses, registry: RegistryReader, scenery: Scenery) -> None:
    """Wait until products, stock and customers are in their topics."""
    kafka = addresses.kafka
    if addresses.connectors is None:
        await publish_catalogue(kafka, registry, scenery.catalogue)
        await publish_customers(kafka, registry, scenery.customer_ids())
        return
    await wait_until_there(kafka, scenery.catalogue, scenery.customer_ids())


async def _send_with_progress(
    options: Options, display: Display, scenery: Scenery, sender: Sender, run: Run
) -> None:
    total = len(scenery.orders)
    with display.progress(total) as update:
        async with asyncio.TaskGroup() as group:
            showing = group.create_task(_show_progress(display, sender, run, update))
            await sender.send_all(
                scenery.orders,
                run,
                in_flight=_IN_FLIGHT_PACED if options.rate else _IN_FLIGHT,
                per_second=options.rate,
            )
            showing.cancel()
        update(total)


async def _show_progress(
    display: Display, sender: Sender, run: Run, update: Callable[[int], None]
) -> None:
    first: str | None = None
    while True:
        update(sender.judged_count + run.refused_count)
        if first is None and (first := sender.first_validated(run)) is not None:
            display.say(f"the first order is validated: {first}")
        await asyncio.sleep(_PROGRESS_SECONDS)
