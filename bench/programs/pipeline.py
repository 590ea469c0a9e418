"""The order pipeline end to end, on our cluster and on Apache Kafka's: `python -m bench pipeline`.

Three nodes, three replicas, exactly once; the demo without Spark (registry and eight services) runs
on them, and the load shares the CPUs with all. The clusters run in turn, a new one for every round:

- at a fixed rate, open loop: the latency from the due time of a POST until a stock read_committed
  consumer reads the order as VALIDATED or FAILED, the same for PAID or FAILED, and the CPU time of
  an order;
- with a fixed count of orders in flight, closed loop: orders a second;
- the memory of all processes but the load (PSS).
"""

import argparse
import asyncio
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from bench.lib.demo_stack import ORDERS, DemoStack
from bench.lib.node_clusters import NodeCluster, makers
from bench.lib.order_load import follow, send_in_flight, send_orders
from bench.lib.results import Results
from bench.lib.servers import find_kafka
from demo.load.following import Following
from demo.load.sending import Sent
from demo.pipeline.report import percentile
from demo.pipeline.synthetic import make_scenery

RATE = 100.0
IN_FLIGHT = 800
"""Enough orders that no service is idle: a batch contains all waiting records."""
SECONDS = 20.0
WARM_UP_SECONDS = 5.0
MEGABYTE = 1_000_000
_DECIDED_SECONDS = 60.0
_MOST_PER_SECOND = 1_000


@dataclass(frozen=True, slots=True)
class Found:
    """The results of one load."""

    judged_ms: list[float]
    """The time until each order was VALIDATED or FAILED, ascending."""
    ended_ms: list[float]
    """The time until each order was PAID or FAILED, ascending."""
    orders_per_second: float
    cpu_ms: Mapping[str, float]
    """The CPU time of an order, by process."""
    unavailable: int
    """The count of refused orders (503): the cluster is too slow for the producer's limit."""


class Bench:
    """The pipeline on one cluster, and the consumer of its decisions."""

    def __init__(self, cluster: NodeCluster, stack: DemoStack, following: Following) -> None:
        self._cluster = cluster
        self._stack = stack
        self._following = following
        self.url = stack.url(ORDERS)

    async def at_rate(self, rate: float, seconds: float, seed: int) -> Found:
        """Send orders at a fixed rate."""
        before, begin = self._cpu(), time.monotonic()
        load = await send_orders(self.url, rate=rate, seconds=seconds, seed=seed)
        return await self._found(load, before, begin)

    async def in_flight(self, count: int, seconds: float, seed: int) -> Found:
        """Keep `count` orders in flight."""
        # The orders are generated before, which takes seconds of CPU time.
        orders = iter(make_scenery(int(_MOST_PER_SECOND * seconds), seed).orders)
        before, begin = self._cpu(), time.monotonic()
        load = await send_in_flight(
            self.url, orders, in_flight=count, seconds=seconds, following=self._following
        )
        return await self._found(load, before, begin)

    async def _found(self, load: Sent, before: Mapping[str, float], begin: float) -> Found:
        judged_at, ended_at = self._following.judged_at, self._following.ended_at
        async with asyncio.timeout(_DECIDED_SECONDS):
            await judged_at.wait_all(load.due_at)
            await ended_at.wait_all(load.due_at)
        judged_ms, ended_ms = (
            sorted(1000 * (seen_at[key] - due_at) for key, due_at in load.due_at.items())
            for seen_at in (judged_at, ended_at)
        )
        seconds = max(judged_at[key] for key in load.due_at) - begin
        after = self._cpu()
        cpu_ms = {
            name: 1000 * (after[name] - before.get(name, 0.0)) / len(judged_ms) for name in after
        }
        return Found(judged_ms, ended_ms, len(judged_ms) / seconds, cpu_ms, load.unavailable)

    def _cpu(self) -> Mapping[str, float]:
        times = time.process_time()
        return {
            **self._stack.cpu_seconds(),
            "brokers": self._cluster.cpu_seconds(),
            "the load": times,
        }

    def memory_bytes(self) -> int:
        """Return the memory of brokers, registry and services, without the demo's own process."""
        used = Counter(self._stack.memory_bytes())
        del used["demo"]
        return sum(used.values()) + self._cluster.resident_bytes()


async def measure(bench: Bench, following: Following, options: argparse.Namespace) -> list[Found]:
    """Warm up, then measure at a fixed rate and with a fixed count in flight."""
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(following.run())
        await following.started.wait()
        await bench.at_rate(options.rate / 2, options.warm_up, seed=4)
        found = [await bench.at_rate(options.rate, options.seconds, seed=5)]
        if options.in_flight:
            found.append(await bench.in_flight(options.in_flight, options.seconds, seed=6))
        reading.cancel()
    return found


def tell(cluster: NodeCluster, found: list[Found], memory: int, rate: float) -> None:
    """Print one round."""
    for one, name in zip(found, (f"{rate:g}/s", "in flight"), strict=False):
        print(
            f"  {cluster.name} {name}: {len(one.judged_ms)} orders, {one.orders_per_second:.0f}/s, "
            f"{_told(one.judged_ms)}, {one.unavailable} not taken; "
            f"PAID or FAILED: {_told(one.ended_ms)}",
            flush=True,
        )
        cpu = sorted(one.cpu_ms.items(), key=lambda entry: -entry[1])
        print("    CPU, ms an order: " + ", ".join(f"{n} {ms:.2f}" for n, ms in cpu if ms > 0.005))
    print(f"    memory {memory / MEGABYTE:.0f} MB", flush=True)


def _told(ms: list[float]) -> str:
    return (
        f"p50 {percentile(ms, 0.5):.0f} ms, p99 {percentile(ms, 0.99):.0f} ms, max {ms[-1]:.0f} ms"
    )


def main(arguments: list[str]) -> int:
    """Measure in turn, and print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m bench pipeline",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--rate", type=float, default=RATE)
    parser.add_argument("--in-flight", type=int, default=IN_FLIGHT)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--warm-up", type=float, default=WARM_UP_SECONDS)
    parser.add_argument("--ours-only", action="store_true")
    options = parser.parse_args(arguments)
    libraries = None if options.ours_only else find_kafka()
    systems = {"millstream"} if options.ours_only else {"millstream", "kafka"}
    results = Results()
    for _ in range(options.rounds):
        for make in makers(libraries, 3, systems):
            with make() as cluster, DemoStack(lite=True, bootstrap=cluster.bootstrap) as stack:
                stack.wait_until_serving()
                following = follow(cluster.bootstrap)
                bench = Bench(cluster, stack, following)
                found = asyncio.run(measure(bench, following, options))
                memory = bench.memory_bytes()
            tell(cluster, found, memory, options.rate)
            add(results, cluster.name, found, memory, options.rate)
    print("\n".join(results.rows()))
    return 0


def add(results: Results, name: str, found: list[Found], memory: int, rate: float) -> None:
    """Add the results of one round to the table."""
    paced, *pressed = found
    for share in (0.5, 0.99):
        cell = f"{rate:g} orders/s: p{share * 100:g}, ms"
        results.add(cell, name, percentile(paced.judged_ms, share), lower_is_better=True)
        cell = f"{rate:g} orders/s, PAID or FAILED: p{share * 100:g}, ms"
        results.add(cell, name, percentile(paced.ended_ms, share), lower_is_better=True)
    for cell, one in zip((f"{rate:g} orders/s", "pressed"), found, strict=False):
        cost = sum(one.cpu_ms.values())
        results.add(f"{cell}: CPU, ms an order", name, cost, lower_is_better=True)
        results.add(f"{cell}: not taken (503)", name, one.unavailable, lower_is_better=True)
    for one in pressed:
        results.add("orders/s", name, one.orders_per_second)
    results.add("memory, MB", name, memory / MEGABYTE, lower_is_better=True)
