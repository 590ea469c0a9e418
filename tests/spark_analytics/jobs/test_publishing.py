"""Messages of topic order-analytics."""

import json

from spark_analytics.jobs.publishing import message_of


def test_row_is_named_by_its_key_and_carries_its_values() -> None:
    key, value = message_of(
        "revenue",
        {
            "grain": "day",
            "window_start_ms": 1_296_518_400_000,
            "state": "VALIDATED",
            "country": "EIRE",
            "orders": 3,
            "revenue_e4": 1_234_567,
            "late_orders": 0,
            "revision": 12,
        },
    )

    assert key == "revenue/day/1296518400000/VALIDATED/EIRE"
    assert json.loads(value) == {
        "view": "revenue",
        "grain": "day",
        "window_start_ms": 1_296_518_400_000,
        "state": "VALIDATED",
        "country": "EIRE",
        "orders": 3,
        "revenue": "123.4567",
        "late_orders": 0,
    }


def test_the_same_row_has_the_same_key_whatever_its_figures() -> None:
    row = {"product_id": "85123A", "orders": 1, "quantity": 6, "revenue_e4": 1, "revision": 1}

    first, _ = message_of("products", row)
    second, _ = message_of("products", {**row, "orders": 2, "revision": 2})

    assert first == second == "products/85123A"
