"""The effect of a broker failure on a customer of the demo: `python -m bench outage`.

The demo without Spark runs on its own three brokers, and restarts them after a failure. Orders are
POSTed at a fixed rate, open loop, and a stock read_committed consumer follows their decisions. Each
round kills another broker with -9. The table has, for a round without a fault and for each round
with one: the longest time between two decisions; the longest time from the due time of a POST to
its decision; and the count of refused POSTs.
"""

import argparse
import asyncio
import os
import signal
import statistics
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from bench.lib.demo_stack import ORDERS, DemoStack
from bench.lib.order_load import follow
from demo.load.arrivals import due_times
from demo.load.following import Following
from demo.load.sending import Sent, send_open_loop, session_of_a_load
from demo.pipeline.brokers import NODE_IDS
from demo.pipeline.synthetic import make_scenery

RATE = 50.0
BEFORE_SECONDS, AFTER_SECONDS = 5.0, 10.0
_DECIDED_SECONDS = 60.0


class Found(NamedTuple):
    """The results of one round, in milliseconds."""

    gap_ms: float
    latency_ms: float
    not_taken: int


async def play(stack: DemoStack, following: Following, node_id: int | None, seed: int) -> Found:
    """Send orders, and kill a broker meanwhile if `node_id` is given."""
    due = due_times("constant", RATE, BEFORE_SECONDS + AFTER_SECONDS, seed)
    sent, orders = Sent(), make_scenery(len(due), seed).orders
    async with session_of_a_load() as session, asyncio.TaskGroup() as group:
        group.create_task(send_open_loop(stack.url(ORDERS), orders, due, sent, session))
        await asyncio.sleep(BEFORE_SECONDS)
        if node_id is not None:
            os.kill(stack.broker_pid(node_id), signal.SIGKILL)
    async with asyncio.timeout(_DECIDED_SECONDS):
        await following.judged_at.wait_all(sent.due_at)
    seen = sorted(following.judged_at[key] for key in sent.due_at)
    return Found(
        1000 * max(after - before for before, after in pairwise(seen)),
        1000 * max(following.judged_at[key] - due_at for key, due_at in sent.due_at.items()),
        sent.unavailable + sum(sent.failed.values()),
    )


async def measure(stack: DemoStack, rounds: int) -> list[Found]:
    """Warm up, measure a round without a fault, then kill one broker a round."""
    following = follow(stack.bootstrap)
    found = []
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(following.run())
        await following.started.wait()
        await play(stack, following, None, seed=0)
        for number, node_id in enumerate(_victims(rounds)):
            found.append(await play(stack, following, node_id, seed=number + 1))
            name = "nobody dies" if node_id is None else f"broker {node_id} dies"
            gap_ms, latency_ms, not_taken = found[-1]
            print(
                f"{name}: {gap_ms:.0f} ms without a decision, {latency_ms:.0f} ms the longest, "
                f"{not_taken} not taken",
                flush=True,
            )
        reading.cancel()
    return found


def _victims(rounds: int) -> Iterator[int | None]:
    yield None
    for number in range(rounds):
        yield NODE_IDS[number % len(NODE_IDS)]


def main(arguments: list[str]) -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench outage", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args(arguments)
    with DemoStack(lite=True) as stack:
        stack.wait_until_serving()
        calm, *rest = asyncio.run(measure(stack, options.rounds))
    print(
        f"| {options.rounds} rounds, {RATE:g} orders/s | calm | median | worst |\n|---|---|---|---|"
    )
    for name, values in (
        ("without a decision, ms", [each.gap_ms for each in (calm, *rest)]),
        ("POST due to decision, the longest, ms", [each.latency_ms for each in (calm, *rest)]),
        ("POSTs not taken", [each.not_taken for each in (calm, *rest)]),
    ):
        median = statistics.median(values[1:])
        print(f"| {name} | {values[0]:.0f} | {median:.0f} | {max(values[1:]):.0f} |")
    return 0
