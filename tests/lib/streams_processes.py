"""Instances of `streams` as processes, made-up orders for them, and what must come of those."""

import asyncio
import random
import time
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition

from common.credentials.access import KafkaAccess
from common.kafka.topic_creation import ensure_topics
from common.kafka.topics import PARTITION_COUNT
from common.registry.wire import EventWriter
from streams.topics import INPUTS, wanted_topics
from tests.lib.forked import STREAMS
from tests.lib.pipeline_processes import Pipeline, Program, call
from tests.lib.waiting import PATIENCE_SECONDS, until

START = datetime(2026, 3, 1, tzinfo=UTC)
GROUP = "millstream-streams"
_PAUSE_SECONDS = 0.2
Order = dict[str, Any]


class Streams:
    """Instances `one`, `two`, ... beside a pipeline's registry; each has a folder of its own."""

    def __init__(self, pipeline: Pipeline, folder: Path, *arguments: str) -> None:
        self._pipeline = pipeline
        self._folder = folder
        self._arguments = arguments
        # Or a sender that is quicker makes the broker create them as it sees fit.
        topics = wanted_topics(GROUP)
        asyncio.run(
            ensure_topics(KafkaAccess(pipeline.bootstrap_servers), topics, replication_factor=3)
        )

    def begin(self, *names: str) -> None:
        for name in names:
            self._pipeline.programs[name] = Program(
                self._folder / f"{name}.log",
                "streams",
                *("--bootstrap-servers", self._pipeline.bootstrap_servers),
                *("--registry-url", self._pipeline.urls["registry"]),
                *("--data-dir", str(self._folder / f"{name}-data")),
                *("--session-timeout-ms", "6000"),
                *self._arguments,
                server=STREAMS,
            )

    def wait_ready(self, *names: str) -> None:
        for name in names:
            self._pipeline.urls[name] = self._pipeline.programs[name].wait_ready()

    def get(self, name: str, path: str) -> Any:
        """Return a view once it is there; while partitions move there is none."""
        found: list[Any] = []

        def is_there() -> bool:
            answer = call("GET", self._pipeline.urls[name] + path)
            found.append(answer.body)
            return answer.status == 200

        until(is_there, 60)
        return found[-1]

    def wait_shared(self, name: str, count: int) -> None:
        """Wait until this many instances share the work and answer together."""
        until(lambda: len(self.get(name, "/v1/instances")["instances"]) == count, 60)
        self.get(name, "/v1/products")

    def wait_caught_up(self) -> None:
        """Wait until every input is handled to its end, also what the topologies sent."""
        asyncio.run(_wait_caught_up(self._pipeline.bootstrap_servers))


async def _wait_caught_up(bootstrap_servers: str) -> None:
    """Look again and again, through one connection."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap_servers, group_id=GROUP, enable_auto_commit=False
    )
    await consumer.start()
    deadline = time.monotonic() + PATIENCE_SECONDS
    try:
        while lags := await _lags(consumer):
            assert time.monotonic() < deadline, lags
            await asyncio.sleep(_PAUSE_SECONDS)
    finally:
        await consumer.stop()


async def _lags(consumer: AIOKafkaConsumer) -> dict[TopicPartition, int]:
    """Return how many records the group has not yet committed, where there are any.

    A partition never begun counts.
    """
    wanted = [TopicPartition(t, n) for t in INPUTS for n in range(PARTITION_COUNT)]
    # Positions first: what is sent on meanwhile then shows as lag.
    committed = {one: await consumer.committed(one) for one in wanted}
    ends = await consumer.end_offsets(wanted)
    lags = {
        one: ends[one] - at if (at := committed[one]) is not None else ends[one] + 1
        for one in wanted
    }
    return {one: behind for one, behind in lags.items() if behind}


def make_orders(rng: random.Random, count: int, first: int = 0) -> list[Order]:
    """Return orders whose event times are out of order by hours."""
    return [
        {
            "order_id": f"order-{number}",
            "customer_id": f"customer-{rng.randrange(12)}",
            "ordered_at": START
            + timedelta(minutes=number)
            + timedelta(seconds=rng.randrange(-5 * 3600, 5 * 3600)),
            "lines": [
                {
                    "product_id": f"product-{rng.randrange(8)}",
                    "quantity": rng.randrange(1, 9),
                    "unit_price": Decimal(rng.randrange(1, 9999)) / 100,
                }
                for _ in range(rng.randrange(1, 5))
            ],
        }
        for number in range(first, first + count)
    ]


def total_of(order: Order) -> Decimal:
    return sum((one["quantity"] * one["unit_price"] for one in order["lines"]), Decimal())


def events_of(
    orders: Iterable[Order], order_writer: EventWriter, decision_writer: EventWriter
) -> list[tuple[str, str, bytes]]:
    """Return the records of these orders' lives: created, decided, validated."""
    records = []
    for order in orders:
        now = datetime.now(UTC)
        event = {
            **order,
            "version": 1,
            "state": "CREATED",
            "reasons": [],
            "correlation_id": "none",
            "created_at": now,
            "occurred_at": now,
            "country": None,
            "total": total_of(order),
        }
        decision = {"order_id": order["order_id"], "decision": "VALIDATED", "reasons": []}
        validated = {**event, "version": 2, "state": "VALIDATED"}
        records += [
            ("orders", order["order_id"], order_writer.encode(event)),
            ("order-decisions", order["order_id"], decision_writer.encode(decision)),
            ("orders", order["order_id"], order_writer.encode(validated)),
        ]
    return records


# -- oracles, by the slowest way that cannot be wrong


def expected_totals(orders: Iterable[Order]) -> dict[str, tuple[int, int, Decimal]]:
    """Return (orders, units, revenue) by product."""
    totals: dict[str, tuple[int, int, Decimal]] = {}
    for order in orders:
        for product_id in {line["product_id"] for line in order["lines"]}:
            lines = [line for line in order["lines"] if line["product_id"] == product_id]
            before = totals.get(product_id, (0, 0, Decimal()))
            totals[product_id] = (
                before[0] + 1,
                before[1] + sum(line["quantity"] for line in lines),
                before[2] + sum(line["quantity"] * line["unit_price"] for line in lines),
            )
    return totals


def expected_windows(
    orders: list[Order], product_id: str, size_s: int, advance_s: int
) -> dict[int, tuple[int, int, Decimal]]:
    """Return (orders, units, revenue) of a product by the start of each window."""
    found: dict[int, list[Order]] = defaultdict(list)
    for order in orders:
        at_ms = round(order["ordered_at"].timestamp() * 1000)
        start = at_ms // (advance_s * 1000) * advance_s * 1000
        while start + size_s * 1000 > at_ms:
            found[start].append(order)
            start -= advance_s * 1000
    windows = {start: expected_totals(some).get(product_id) for start, some in found.items()}
    return {start: value for start, value in windows.items() if value is not None}


def expected_bursts(orders: list[Order]) -> dict[str, set[str]]:
    """Return by customer the orders that belong to three within less than 30 s."""
    flagged: dict[str, set[str]] = defaultdict(set)
    for first in orders:
        near = [
            other
            for other in orders
            if other["customer_id"] == first["customer_id"]
            and timedelta() <= other["ordered_at"] - first["ordered_at"] < timedelta(seconds=30)
        ]
        if len(near) > 2:
            flagged[first["customer_id"]] |= {one["order_id"] for one in near}
    return dict(flagged)
