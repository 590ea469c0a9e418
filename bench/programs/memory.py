"""The memory of the demo's processes: `python -m bench memory [--lite]`.

The whole demo runs; orders are POSTed for a while, and the memory of every process is sampled.
Memory is proportional (PSS): pages that n processes share count 1/n in each, so the sum is the
memory that the machine provides. Processes of a kind are added up; the table shows the sample with
the greatest total.
"""

import argparse
import asyncio
import threading
from collections.abc import Mapping

from bench.lib.demo_stack import ORDERS, DemoStack
from bench.lib.order_load import send_orders

RATE = 50.0
SECONDS = 60.0
LOOK_SECONDS = 2.0
MEGABYTE = 1_000_000


def measure(stack: DemoStack, rate: float, seconds: float) -> Mapping[str, int]:
    """Send orders and return the memory by kind of process, in the sample with the greatest sum."""
    looks = [stack.memory_bytes()]
    is_over = threading.Event()

    def look() -> None:
        while not is_over.wait(LOOK_SECONDS):
            looks.append(stack.memory_bytes())

    looking = threading.Thread(target=look)
    looking.start()
    try:
        asyncio.run(send_orders(stack.url(ORDERS), rate=rate, seconds=seconds, seed=3))
    finally:
        is_over.set()
        looking.join()
    return max(looks, key=lambda found: sum(found.values()))


def main(arguments: list[str]) -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench memory", description=__doc__)
    parser.add_argument("--lite", action="store_true", help="without Spark, streams and dashboard")
    parser.add_argument("--rate", type=float, default=RATE, help="orders a second")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parsed = parser.parse_args(arguments)
    with DemoStack(lite=parsed.lite) as stack:
        stack.wait_until_serving()
        found = measure(stack, parsed.rate, parsed.seconds)
    print("| process | MB |")
    print("|---|---|")
    for name, size in sorted(found.items(), key=lambda entry: -entry[1]):
        print(f"| {name} | {size / MEGABYTE:,.0f} |")
    print(f"| **together** | **{sum(found.values()) / MEGABYTE:,.0f}** |")
    return 0
