"""The age of an order when the dashboard shows it: `python -m bench freshness`.

The whole demo runs, Spark and Faust included. Orders are POSTed at a fixed rate, open loop, and a
client follows the dashboard's events as a browser does. The n-th order is shown when a snapshot
arrives that counts n orders; its age is the time from the due time of its POST to the arrival of
that snapshot. The measurement starts after a minute of orders, in which each of Spark's queries has
made its first batches, and once all of these orders are shown.
"""

import argparse
import asyncio
import json
import os
import time

import aiohttp

from bench.lib.demo_stack import DASHBOARD, ORDERS, DemoStack
from bench.lib.order_load import send_orders

RATE = 50.0
SECONDS = 60.0
WARM_UP_SECONDS = 60.0
CAUGHT_UP_SECONDS = 60.0


class Watcher:
    """Follows the dashboard, and keeps the count of shown orders over time."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._changed = asyncio.Condition()
        self.shown: list[tuple[float, int]] = []

    @property
    def orders(self) -> int:
        return self.shown[-1][1] if self.shown else 0

    async def run(self) -> None:
        """Read events until cancelled."""
        timeout = aiohttp.ClientTimeout(total=None)
        async with (
            # A snapshot is one line, longer than the default allows.
            aiohttp.ClientSession(timeout=timeout, read_bufsize=2**22) as session,
            session.get(self._url + "/events") as response,
        ):
            name = ""
            async for line in response.content:
                if line.startswith(b"event: "):
                    name = line[7:].decode().strip()
                elif line.startswith(b"data: ") and name == "snapshot":
                    now = time.monotonic()
                    self.shown.append((now, json.loads(line[6:])["summary"]["orders"]))
                    async with self._changed:
                        self._changed.notify_all()

    async def wait_for(self, orders: int) -> None:
        """Wait until `orders` orders are shown."""
        async with asyncio.timeout(CAUGHT_UP_SECONDS), self._changed:
            await self._changed.wait_for(lambda: self.orders >= orders)


async def measure(stack: DemoStack, rate: float, seconds: float) -> list[float]:
    """Return the age of every order when it was shown, in seconds."""
    watcher = Watcher(stack.url(DASHBOARD))
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(watcher.run())
        # The orders that waited for Spark's start are not measured.
        url = stack.url(ORDERS)
        warm_up = await send_orders(url, rate=rate, seconds=WARM_UP_SECONDS, seed=3)
        before = stack.accepted_orders() + len(warm_up.due_at)
        await watcher.wait_for(before)
        load = await send_orders(url, rate=rate, seconds=seconds, seed=2)
        await watcher.wait_for(before + len(load.due_at))
        watching.cancel()
    ages = []
    shown = iter(watcher.shown)
    at, count = next(shown)
    for number, due_at in enumerate(sorted(load.due_at.values()), before + 1):
        while count < number:
            at, count = next(shown)
        ages.append(at - due_at)
    return sorted(ages)


def main(arguments: list[str]) -> int:
    """Measure and print one row, and the CPU time of each process."""
    parser = argparse.ArgumentParser(prog="python -m bench freshness", description=__doc__)
    parser.add_argument("--rate", type=float, default=RATE, help="orders a second")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--log", action="store_true", help="print the end of the job's log")
    parsed = parser.parse_args(arguments)
    print(f"load average before: {os.getloadavg()[0]:.1f}", flush=True)
    with DemoStack() as stack:
        stack.wait_until_serving()
        before, started = stack.cpu_seconds(), time.monotonic()
        ages = asyncio.run(measure(stack, parsed.rate, parsed.seconds))
        elapsed = time.monotonic() - started
        used = {name: cpu - before.get(name, 0) for name, cpu in stack.cpu_seconds().items()}
        if parsed.log:
            print("\n".join(stack.spark_log().splitlines()[-40:]))
    print(f"load average after: {os.getloadavg()[0]:.1f}")
    for name, seconds in sorted(used.items(), key=lambda entry: -entry[1]):
        print(f"  {name:28} {100 * seconds / elapsed:5.1f} % of a core")
    percentiles = [ages[min(int(len(ages) * share), len(ages) - 1)] for share in (0.5, 0.95, 0.99)]
    print("| orders/s | orders | p50, s | p95, s | p99, s | max, s |")
    print("|---|---|---|---|---|---|")
    figures = " | ".join(f"{age:.2f}" for age in [*percentiles, ages[-1]])
    print(f"| {parsed.rate:g} | {len(ages)} | {figures} |")
    return 0
