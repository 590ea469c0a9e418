"""Two instances on a real broker, one killed in mid-stream: the views equal plain Python's."""

import random
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from millstream.testing import LocalBroker
from streams.enrichment import LEVEL_TOPICS
from tests.lib.apache_kafka import kafka_libs, running_node
from tests.lib.pipeline_processes import Pipeline, call
from tests.lib.streams_processes import (
    START,
    Order,
    Streams,
    events_of,
    expected_bursts,
    expected_totals,
    expected_windows,
    make_orders,
    total_of,
)
from tests.lib.waiting import until_passed

pytestmark = [pytest.mark.interop, pytest.mark.slow]

HOUR_S = 3600
# A test waits for it whenever an instance is killed or frozen.
SESSION_MS = "3000"
STORE_SECONDS = 10
SHORT_SESSIONS = {"group.min.session.timeout.ms": SESSION_MS}
TOLD = ("--session-timeout-ms", SESSION_MS, "--grace-seconds", str(72 * HOUR_S))


@pytest.fixture
def broker() -> Iterator[LocalBroker]:
    with LocalBroker(**SHORT_SESSIONS) as started:
        yield started


@pytest.fixture
def pipeline(broker: LocalBroker, tmp_path: Path) -> Iterator[Pipeline]:
    with Pipeline(broker.bootstrap_servers, tmp_path) as started:
        yield started


class Sender:
    """Sends orders' events, and remembers the orders."""

    def __init__(self, pipeline: Pipeline, seed: int) -> None:
        self._pipeline = pipeline
        self._rng = random.Random(seed)
        self._orders = pipeline.writer("orders", "orders/order_event")
        self._decisions = pipeline.writer("order-decisions", "orders/order_decision")
        self.orders: list[Order] = []

    def send(self, count: int) -> None:
        self.send_these(make_orders(self._rng, count, len(self.orders)))

    def send_these(self, orders: list[Order]) -> None:
        self.orders += orders
        self._pipeline.produce(events_of(orders, self._orders, self._decisions))

    def send_again(self, count: int) -> None:
        """Write events that are in the topics already once more, as a producer may."""
        some = self._rng.sample(self.orders, count)
        self._pipeline.produce(events_of(some, self._orders, self._decisions))


def assert_views_are_right(streams: Streams, name: str, orders: list[Order]) -> None:
    """Check every view.

    Positions are committed with the rows' changelog, and others see them a moment before the rows
    are in the instance's own store: it is looked again for so long. What is wrong stays wrong.
    """
    until_passed(lambda: _assert_views(streams, name, orders), STORE_SECONDS)


def _assert_views(streams: Streams, name: str, orders: list[Order]) -> None:
    totals = expected_totals(orders)
    products = streams.get(name, "/v1/products")
    shown = {
        one["product_id"]: (one["orders"], one["units"], Decimal(one["revenue"]))
        for one in products["products"]
    }
    assert shown == totals
    assert Decimal(products["revenue"]) == sum(total_of(order) for order in orders)
    for product_id in totals:
        product = streams.get(name, f"/v1/products/{product_id}")
        assert_windows(product["tumbling"], orders, product_id, HOUR_S, HOUR_S)
        assert_windows(product["hopping"], orders, product_id, 24 * HOUR_S, 6 * HOUR_S)
    latency = streams.get(name, "/v1/latency")
    assert (latency["count"], latency["waiting"]) == (len(orders), 0)
    alerts = streams.get(name, "/v1/alerts")["alerts"]
    assert {one["customer_id"]: set(one["order_ids"]) for one in alerts} == expected_bursts(orders)
    levels = streams.get(name, "/v1/levels")["levels"]
    assert sum(level["orders"] for level in levels) == len(orders)
    for customer_id in sorted({order["customer_id"] for order in orders}):
        own = [order for order in orders if order["customer_id"] == customer_id]
        customer = streams.get(name, f"/v1/customers/{customer_id}")
        assert customer["validated_orders"] == len(own)
        assert Decimal(customer["revenue"]) == sum(total_of(order) for order in own)


def assert_sent_once(pipeline: Pipeline, orders: list[Order]) -> None:
    """Check that every order went to the topic of one level, once."""
    routed = [record.key for topic in LEVEL_TOPICS.values() for record in pipeline.read(topic)]
    assert sorted(routed) == sorted(order["order_id"].encode() for order in orders)


def assert_windows(
    shown: Any, orders: list[Order], product_id: str, size_s: int, advance_s: int
) -> None:
    expected = expected_windows(orders, product_id, size_s, advance_s)
    found = {
        one["start_ms"]: (one["orders"], one["units"], Decimal(one["revenue"]))
        for one in shown["windows"]
    }
    assert shown["late"] == 0
    assert found == expected


def burst(customer_id: str, number: int) -> list[Order]:
    """Return three orders of one customer within 29 s, not in their order."""
    (template,) = make_orders(random.Random(number), 1)
    return [
        {
            **template,
            "order_id": f"burst-{number}-{seconds}",
            "customer_id": customer_id,
            "ordered_at": START + timedelta(hours=number, seconds=seconds),
        }
        for seconds in (20, 0, 29)
    ]


def test_views_stay_right_when_an_instance_is_killed_and_comes_back(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    streams = Streams(pipeline, tmp_path, *TOLD)
    streams.begin("one", "two")
    sender = Sender(pipeline, seed=6)
    sender.send(50)
    streams.wait_ready("one", "two")
    streams.wait_shared("one", 2)
    sender.send(75)
    sender.send_these(burst("customer-3", 1))
    pipeline.end("one", kill=True)
    sender.send(75)
    sender.send_again(20)
    streams.wait_caught_up()
    assert_views_are_right(streams, "two", sender.orders)
    streams.begin("one")
    sender.send(50)
    sender.send_these(burst("customer-4", 2))
    streams.wait_ready("one")
    streams.wait_shared("two", 2)
    sender.send(25)
    streams.wait_caught_up()
    for name in ("one", "two"):
        assert_views_are_right(streams, name, sender.orders)
    assert_sent_once(pipeline, sender.orders)
    assert pipeline.end("one").exit_status == 0


def test_an_instance_that_is_frozen_for_longer_than_its_session_writes_no_stale_row(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    streams = Streams(pipeline, tmp_path, *TOLD)
    streams.begin("one", "two")
    sender = Sender(pipeline, seed=9)
    streams.wait_ready("one", "two")
    streams.wait_shared("two", 2)
    sender.send(50)
    sender.send(100)
    pipeline.programs["one"].pause()  # It has just begun with these.
    sender.send(25)
    streams.wait_shared("two", 1)
    streams.wait_caught_up()
    pipeline.programs["one"].resume()
    sender.send(25)
    streams.wait_shared("two", 2)
    streams.wait_caught_up()
    for name in ("one", "two"):
        assert_views_are_right(streams, name, sender.orders)
    assert_sent_once(pipeline, sender.orders)
    # The remaining instance reads every row back from the changelogs.
    pipeline.end("two", kill=True)
    streams.wait_caught_up()
    streams.wait_shared("one", 1)
    assert_views_are_right(streams, "one", sender.orders)


def test_one_alone_outlives_junk_and_its_broker_and_another_cluster_replaces_its_stores(
    broker: LocalBroker, pipeline: Pipeline, tmp_path: Path
) -> None:
    streams = Streams(pipeline, tmp_path, *TOLD)
    streams.begin("one")
    streams.wait_ready("one")
    sender = Sender(pipeline, seed=8)
    pipeline.produce([("orders", "order-0", b"no event"), ("orders", "order-1", b"\0\0\0\0\0")])
    sender.send(60)
    broker.kill()
    broker.start()
    sender.send(60)
    streams.wait_caught_up()
    assert_views_are_right(streams, "one", sender.orders)
    assert_junk_is_set_aside(pipeline)
    assert call("GET", pipeline.urls["one"] + "/v1/products/none").status == 404
    broker.kill()
    assert pipeline.end("one").exit_status == 0, "it ends when told to, also without a broker"
    elsewhere = tmp_path / "other"
    elsewhere.mkdir()
    (tmp_path / "one-data").rename(elsewhere / "one-data")
    assert_stores_are_replaced(elsewhere)


def assert_junk_is_set_aside(pipeline: Pipeline) -> None:
    letters = pipeline.read("orders.dead-letter")
    # Two readers of `orders`: each sets it aside.
    assert [letter.value for letter in letters].count(b"no event") == 2
    reasons = {dict(letter.headers)["dead-letter-reason"].decode() for letter in letters}
    assert "MalformedEventError: magic byte 110, expected 0" in reasons


def assert_stores_are_replaced(folder: Path) -> None:
    """Start an instance with another cluster's stores: it has what the changelogs say."""
    with LocalBroker() as broker, Pipeline(broker.bootstrap_servers, folder) as pipeline:
        streams = Streams(pipeline, folder)
        streams.begin("one")
        streams.wait_ready("one")
        assert streams.get("one", "/v1/products")["count"] == 0
        sender = Sender(pipeline, seed=11)
        sender.send(10)
        streams.wait_caught_up()
        expected = {key: one[0] for key, one in expected_totals(sender.orders).items()}

        def has_these() -> None:
            products = streams.get("one", "/v1/products")["products"]
            assert {one["product_id"]: one["orders"] for one in products} == expected

        until_passed(has_these, STORE_SECONDS)


def test_views_are_right_on_apache_kafka(tmp_path: Path) -> None:
    (tmp_path / "kafka").mkdir()
    with (
        running_node(kafka_libs(), tmp_path / "kafka", SHORT_SESSIONS) as bootstrap_servers,
        Pipeline(bootstrap_servers, tmp_path) as pipeline,
    ):
        streams = Streams(pipeline, tmp_path, *TOLD)
        streams.begin("one", "two")
        sender = Sender(pipeline, seed=12)
        sender.send(60)
        streams.wait_ready("one", "two")
        streams.wait_shared("one", 2)
        sender.send(60)
        pipeline.end("one", kill=True)
        sender.send(60)
        sender.send_again(20)
        streams.wait_caught_up()
        assert_views_are_right(streams, "two", sender.orders)
        assert pipeline.end("two").exit_status == 0
