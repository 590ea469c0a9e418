"""All topologies together under a controlled clock, killed anywhere, on out-of-order input."""

import random
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from millstream.launch import program_environment, programs_folder
from streams import views
from streams.enrichment import LEVEL_TOPICS, level_of
from streams.order_bursts import find_burst
from streams.product_sales import parse_sale
from streams.records import ORDERS_BY_CUSTOMER, SALES_BY_PRODUCT, Origin
from streams.settings import Settings
from streams.testing import CrashError, LocalTable, TopologyDriver
from streams.topology import MalformedRecordError
from streams.validation_latency import count, empty, join_order, merge, percentile_ms, single
from tests.lib.seeds import seeds
from tests.lib.streams_processes import (
    Order,
    expected_bursts,
    expected_totals,
    expected_windows,
    make_orders,
    total_of,
)

README = programs_folder() / "streams" / "README.md"
HOUR_S = 3600
SETTINGS = Settings(grace_seconds=72 * HOUR_S)
AT = datetime(2026, 3, 1, tzinfo=UTC)


def order_event(order: Order, state: str, version: int, created_at: datetime) -> dict[str, Any]:
    return {
        **order,
        "version": version,
        "state": state,
        "reasons": [],
        "correlation_id": "none",
        "created_at": created_at,
        "occurred_at": created_at,
        "country": None,
        "total": total_of(order),
    }


def send_order(driver: TopologyDriver, order: Order, latency_ms: int = 40) -> None:
    """Send the life of an order; it takes `latency_ms`."""
    created_at = datetime.fromtimestamp(driver.now_ms / 1000, UTC)
    event = order_event(order, "CREATED", 1, created_at)
    driver.send("orders", order["order_id"], driver.codec.encode("orders/order_event", event))
    driver.advance(latency_ms)
    decision = {"order_id": order["order_id"], "decision": "VALIDATED", "reasons": []}
    value = driver.codec.encode("orders/order_decision", decision)
    driver.send("order-decisions", order["order_id"], value)
    validated = order_event(order, "VALIDATED", 2, created_at)
    driver.send("orders", order["order_id"], driver.codec.encode("orders/order_event", validated))


def send_customer(driver: TopologyDriver, customer_id: str, level: str | None) -> None:
    customer = {"customer_id": customer_id, "name": "Ada", "email": "a@example.org"}
    customer |= {"country": "UK", "level": level, "updated_at": AT}
    driver.send("customers", customer_id, driver.codec.encode("customers/customer", customer))


def assert_sent_once(driver: TopologyDriver, orders: list[Order]) -> None:
    """Check that each order was sent on once to every topic it belongs to."""
    routed = [record.key for topic in LEVEL_TOPICS.values() for record in driver.records(topic)]
    assert sorted(routed) == sorted(order["order_id"] for order in orders)
    for topic in (ORDERS_BY_CUSTOMER, SALES_BY_PRODUCT):
        sent = [(record.key, record.origin) for record in driver.records(topic)]
        assert len(sent) == len(set(sent))


def assert_right(driver: TopologyDriver, orders: list[Order]) -> None:
    rows = driver.tables["product-sales"].all_rows()
    totals = expected_totals(orders)
    shown = {
        key: (row["total"]["orders"], row["total"]["units"], Decimal(row["total"]["revenue"]))
        for key, row in rows.items()
    }
    assert shown == totals
    for product_id, row in rows.items():
        product = views.show_product(product_id, row)
        for name, size_s, advance_s in (("tumbling", 1, 1), ("hopping", 24, 6)):
            found = {
                one["start_ms"]: (one["orders"], one["units"], Decimal(one["revenue"]))
                for one in product[name]["windows"]
            }
            sizes = (size_s * HOUR_S, advance_s * HOUR_S)
            assert found == expected_windows(orders, product_id, *sizes)
    latency = views.merge_latency(
        [views.local_latency(driver.tables["validation-latency"].all_rows().items())]
    )
    assert (latency["count"], latency["waiting"]) == (len(orders), 0)
    flagged = {
        key: set(row["flagged"])
        for key, row in driver.tables["order-bursts"].all_rows().items()
        if row["flagged"]
    }
    assert flagged == expected_bursts(orders)
    customers = driver.tables["customers"].all_rows()
    for customer_id in {order["customer_id"] for order in orders}:
        own = [order for order in orders if order["customer_id"] == customer_id]
        spending = customers[customer_id]["right"]
        assert (spending["orders"], Decimal(spending["revenue"])) == (
            len(own),
            sum(total_of(order) for order in own),
        )
        assert sum(spending["by_level"].values()) == len(own)


@pytest.mark.parametrize("batch_records", [1, 4])
@pytest.mark.parametrize("seed", range(5))
def test_out_of_order_orders_give_the_oracles_figures(seed: int, batch_records: int) -> None:
    driver = TopologyDriver(SETTINGS, batch_records=batch_records)
    orders = make_orders(random.Random(seed), 60)
    for number, order in enumerate(orders):
        send_order(driver, order)
        if number % batch_records == 0:
            driver.run()
    driver.run()
    assert_right(driver, orders)


@pytest.mark.parametrize("loses_positions", [False, True])
@pytest.mark.parametrize("batch_records", [1, 2, 30])
@pytest.mark.parametrize("seed", seeds(20, fast=2))
def test_crashes_anywhere_change_no_figure_and_send_nothing_twice(
    seed: int, batch_records: int, loses_positions: bool
) -> None:
    rng = random.Random(seed)
    driver = TopologyDriver(SETTINGS, batch_records=batch_records)
    driver.loses_positions = loses_positions
    orders = make_orders(rng, 12)
    for order in orders:
        send_order(driver, order)
    for _ in range(15):
        driver.crash_after = rng.randrange(12 * batch_records)
        try:
            driver.run()
        except CrashError:
            continue
    driver.recover()
    assert_right(driver, orders)
    assert_sent_once(driver, orders)


def test_event_written_twice_counts_once() -> None:
    driver = TopologyDriver(SETTINGS)
    orders = make_orders(random.Random(1), 10)
    for order in [*orders, *orders[::2]]:
        send_order(driver, order)
        driver.run()
    assert_right(driver, orders)


def test_orders_are_routed_by_the_level_their_customer_has() -> None:
    driver = TopologyDriver(SETTINGS)
    (order,) = make_orders(random.Random(1), 1)
    order["lines"] = [{"product_id": "p", "quantity": 1, "unit_price": Decimal(600)}]
    for number in range(2):
        send_order(driver, {**order, "order_id": f"o{number}"})
        driver.run()
    send_customer(driver, order["customer_id"], "PLATINUM")
    driver.run()
    send_order(driver, {**order, "order_id": "o2"})
    driver.run()
    routed = {
        level: [record.key for record in driver.records(topic)]
        for level, topic in LEVEL_TOPICS.items()
    }
    assert routed == {"BRONZE": ["o0"], "SILVER": ["o1"], "GOLD": [], "PLATINUM": ["o2"]}


@pytest.mark.parametrize(
    ("spent", "level"),
    [("499.99", "BRONZE"), ("500", "SILVER"), ("2000", "GOLD"), ("10000", "PLATINUM")],
)
def test_level_follows_from_what_was_spent(spent: str, level: str) -> None:
    assert level_of(None, {"revenue": spent}) == level
    assert level_of({"level": "GOLD"}, {"revenue": spent}) == "GOLD"


def test_customer_written_before_there_were_levels_has_none() -> None:
    driver = TopologyDriver(SETTINGS)
    customer = {"customer_id": "c", "name": "Ada", "email": "a@example.org", "updated_at": AT}
    driver.send("customers", "c", driver.codec.encode("customers/customer", customer, version=1))
    driver.run()
    row = driver.tables["customers"].all_rows()["c"]
    assert (row["left"]["level"], row["joined"]) == (None, "BRONZE")


def test_burst_is_three_orders_within_less_than_thirty_seconds() -> None:
    def moments(*seconds: int) -> list[list[object]]:
        return [[second * 1000, str(second), False] for second in seconds]

    assert find_burst(moments(0, 15, 30)) == []
    assert find_burst(moments(0, 1, 29, 58, 90)) == [0, 1, 2]
    assert find_burst(moments(0, 0, 0)) == [0, 1, 2]


def test_burst_alert_names_each_order_once() -> None:
    driver = TopologyDriver(SETTINGS)
    (order,) = make_orders(random.Random(1), 1)
    for seconds in (20, 0, 10, 25):
        at = AT + timedelta(seconds=seconds)
        send_order(driver, {**order, "order_id": f"o{seconds}", "ordered_at": at})
        driver.run()
    assert len(driver.records("order-alerts")) == 2
    row = driver.tables["order-bursts"].all_rows()[order["customer_id"]]
    assert row["flagged"] == ["o0", "o10", "o20", "o25"]


def test_latency_is_measured_by_the_controlled_clock() -> None:
    driver = TopologyDriver(SETTINGS, now_ms=1_000_000)
    for number, latency_ms in enumerate((7, 40, 900)):
        (order,) = make_orders(random.Random(number), 1, number)
        send_order(driver, order, latency_ms)
        driver.run()
    rows = driver.tables["validation-latency"].all_rows()
    shown = views.merge_latency([views.local_latency(rows.items())])
    assert (shown["p50_ms"], shown["max_ms"]) == (50, 900)
    assert shown["mean_ms"] == round((7 + 40 + 900) / 3, 1)


def test_repeated_decision_is_no_second_latency() -> None:
    row, latencies = join_order(None, "right", 50)
    assert latencies == []
    row, latencies = join_order(row, "left", 10)
    assert latencies == [40]
    assert join_order(row, "right", 90) == (row, [])


def test_histogram_keeps_the_last_minutes_only() -> None:
    row = None
    for minute in range(70):
        origin = Origin("orders-0", minute)
        row = count(row, [5], minute * 60_000, origin)
    assert row is not None
    assert (len(row["minutes"]), row["total"]["count"]) == (60, 70)
    assert count(row, [5], 0, Origin("orders-0", 69)) is None


def test_percentiles_are_upper_bounds_of_their_buckets() -> None:
    histogram = empty()
    for latency_ms in (1, 2, 3, 120_000):
        histogram = merge(histogram, single(latency_ms))
    assert percentile_ms(empty(), 0.5) is None
    assert percentile_ms(histogram, 0.5) == 5
    assert percentile_ms(histogram, 0.99) == 120_000


@pytest.mark.parametrize("value", [b"", b"[]", b"{}", b'{"ordered_at_ms": "x"}', b"\xff"])
def test_what_is_no_sale_is_refused(value: bytes) -> None:
    with pytest.raises(MalformedRecordError):
        parse_sale(value)


def test_topologies_know_neither_kafka_nor_faust() -> None:
    code = (
        "import sys, streams.testing; "
        "print(*{'aiohttp', 'aiokafka', 'asyncio', 'faust'} & sys.modules.keys())"
    )
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(
        command, env=program_environment(), capture_output=True, check=True, text=True
    )
    assert done.stdout.split() == []


def test_a_key_on_two_partitions_is_not_shown_as_one_row():
    table = LocalTable("counts")
    table.rows[0]["a"] = {"orders": 1}
    table.rows[1]["b"] = {"orders": 2}
    assert table.all_rows() == {"a": {"orders": 1}, "b": {"orders": 2}}
    table.rows[1]["a"] = {"orders": 3}
    with pytest.raises(AssertionError, match="lies on another partition too"):
        table.all_rows()


def test_the_topology_that_the_readme_adds_keeps_the_largest_order_of_each_customer() -> None:
    page = r"`streams/largest_order.py`\n\n```python\n(.*?)\n```\n"
    found = re.search(page, README.read_text(), re.DOTALL)
    assert found is not None
    added: dict[str, Any] = {}
    exec(found[1], added)
    driver = TopologyDriver(SETTINGS)
    largest = LocalTable("largest-order")
    added["add_agents"](driver, largest)
    orders = make_orders(random.Random(1), 40)
    for order in orders:
        send_order(driver, order)
    driver.run()
    wanted: dict[str, Decimal] = {}
    for order in orders:
        before = wanted.get(order["customer_id"], Decimal(0))
        wanted[order["customer_id"]] = max(before, total_of(order))
    kept = {key: Decimal(row["total"]) for key, row in largest.all_rows().items()}
    assert kept == wanted
