"""The command `millstream load`."""

import asyncio
import signal
import struct
import sys
from collections.abc import Sequence
from functools import partial
from http import HTTPStatus
from typing import Any

import aiohttp
import confluent_kafka
from aiokafka.errors import KafkaError

from common.credentials.registry import registry_access
from common.process.tasks import spawn
from demo.load.arrivals import due_times
from demo.load.faults import SwitchError, decline_some, poison, slowed
from demo.load.following import Following
from demo.load.options import Options, parse_options
from demo.load.report import build_report, find_problems
from demo.load.sending import Sent, send_open_loop, session_of_a_load
from demo.pipeline.display import Display
from demo.pipeline.orders import DemoOrder, Scenery
from demo.pipeline.registry import RegistryReader, secured_session
from demo.pipeline.report import write_report
from demo.pipeline.synthetic import make_scenery
from demo.pipeline.topics import publish_catalogue, publish_customers

_PROGRESS_SECONDS = 0.25
_END_SECONDS = 2.0
"""If no valid order is paid within this time, no payment service runs."""
_CANNOT = (SwitchError, aiohttp.ClientError, KafkaError, confluent_kafka.KafkaException)


def main(arguments: Sequence[str]) -> int:
    """Send the load; return 0 if there are no faults, 1 if there are, 2 if it cannot run."""
    options = parse_options(arguments)
    try:
        return asyncio.run(_run(options, Display()))
    except* _CANNOT as failures:
        sys.stderr.write(f"millstream load: {_first(failures)}\n")
    return 2


def _first(failure: BaseException) -> BaseException:
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    return failure


async def _run(options: Options, display: Display) -> int:
    load = spawn(_perform(options, display))
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, load.cancel)
    try:
        return await load
    except asyncio.CancelledError:
        display.say("stopped")
        return 130


async def _perform(options: Options, display: Display) -> int:
    due = due_times(options.profile, options.rate, options.seconds, options.seed)
    scenery = make_scenery(len(due), options.seed)
    orders = decline_some(scenery.orders, options.declined, options.seed)
    display.say(f"{len(orders)} orders in {options.seconds:g} s, {options.profile}")
    sent = Sent()
    context, user = registry_access(options.kafka.registry)
    # The password is the registry's; to the service it goes if nobody can read it on the way.
    is_private = options.orders_url.startswith("https:")
    services = session_of_a_load(context, user if is_private else None)
    async with secured_session(options.kafka) as session, services:
        registry = RegistryReader(options.registry_url, session)
        if options.publishes_catalogue:
            await _publish(options, registry, scenery, orders)

        following = Following(options.kafka, partial(_state_of, registry))
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(following.run())
            await following.started.wait()
            async with slowed(services, options.slow):
                with display.progress(len(orders)) as update:
                    showing = group.create_task(_show(sent, following, update))
                    poisoning = group.create_task(
                        poison(options.kafka, options.poison, options.seconds)
                    )
                    await send_open_loop(options.orders_url, orders, due, sent, services)
                    await poisoning
                    await _wait_judged(sent, following, options.judged_seconds)
                    await _wait_ended(sent, following)
                    showing.cancel()
            reading.cancel()
    return _tell(options, display, sent, following)


async def _state_of(registry: RegistryReader, value: bytes) -> str:
    try:
        return str((await registry.decode(value, "state"))["state"])
    except struct.error as error:
        raise ValueError("too short for an event") from error
    except aiohttp.ClientResponseError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        raise ValueError("of a schema that nobody has registered") from error


async def _publish(
    options: Options, registry: RegistryReader, scenery: Scenery, orders: Sequence[DemoOrder]
) -> None:
    await publish_catalogue(options.kafka, registry, scenery.catalogue)
    customers = Scenery(list(orders), scenery.catalogue).customer_ids()
    try:
        await publish_customers(options.kafka, registry, customers)
    except aiohttp.ClientResponseError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        # A cluster without a customer service may lack this topic.


async def _show(sent: Sent, following: Following, update: Any) -> None:
    """Show how many orders are refused or have a verdict."""
    while True:
        judged = sum(order_id in following.judged_at for order_id in sent.due_at)
        update(judged + sent.posted - len(sent.due_at))
        await asyncio.sleep(_PROGRESS_SECONDS)


async def _wait_judged(sent: Sent, following: Following, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await following.judged_at.wait_all(sent.due_at)
    except TimeoutError:
        return  # The report counts the missing orders.


async def _wait_ended(sent: Sent, following: Following) -> None:
    """Wait for the final states of orders; without a payment service most orders have none."""
    seen = -1
    while seen < len(following.ended_at) < len(sent.due_at):
        seen = len(following.ended_at)
        await asyncio.sleep(_END_SECONDS)


def _tell(options: Options, display: Display, sent: Sent, following: Following) -> int:
    report = build_report(
        sent,
        following,
        offered_per_second=sent.posted / options.seconds,
        seconds=options.seconds,
    )
    display.show_rows("Load", _rows(report))
    if options.report is not None:
        write_report(report, options.report)
    problems = find_problems(sent, following.judged_at, following.judged_as)
    for problem in problems:
        display.say(f"WRONG: {problem}")
    return 1 if problems else 0


def _rows(report: dict[str, Any]) -> list[list[tuple[str, str]]]:
    """Return the sections of the final table."""
    latencies = [
        (f"POST due to {what}, {name}", f"{value:.0f} ms")
        for what, key in (
            ("VALIDATED or FAILED", "latency_ms"),
            ("its final state", "final_latency_ms"),
        )
        for name, value in report[key].items()
        if report["ended"] or key == "latency_ms"
    ]
    return [
        [(name, str(report[name])) for name in ("posted", "refused", "unavailable", "accepted")],
        [(state, str(count)) for state, count in report["states"].items()],
        [
            ("offered/s", f"{report['offered_per_second']:.1f}"),
            ("judged/s", f"{report['judged_per_second']:.1f}"),
            *latencies,
            ("the latest POST was late by", f"{report['latest_post_late_ms']:.0f} ms"),
        ],
    ]
