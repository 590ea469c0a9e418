"""The rules of the order details check, one by one."""

from decimal import Decimal
from typing import Any

from services.order_details.domain import find_breaches


def order(**changes: Any) -> dict[str, Any]:
    lines = [{"product_id": "p", "quantity": 2, "unit_price": Decimal("1.5000")}]
    return {"customer_id": "c", "lines": lines, "total": Decimal("3.0000"), **changes}


def line(**changes: Any) -> dict[str, Any]:
    return {"product_id": "p", "quantity": 1, "unit_price": Decimal(1), **changes}


def codes(found: dict[str, Any]) -> list[str]:
    return [code for code, _ in find_breaches(found, lambda product_id: product_id == "p")]


def test_good_order_breaks_nothing() -> None:
    assert codes(order()) == []


def test_customer_must_be_present() -> None:
    assert codes(order(customer_id="")) == ["NO_CUSTOMER"]


def test_there_must_be_a_line() -> None:
    assert codes(order(lines=[], total=Decimal(0))) == ["NO_LINES"]


def test_products_must_be_known_and_each_is_named_once() -> None:
    lines = [line(product_id="M"), line(product_id="M"), line(product_id="POST")]
    breaches = find_breaches(order(lines=lines, total=Decimal(3)), lambda _: False)
    assert [reason for _, reason in breaches] == ["unknown product M", "unknown product POST"]


def test_quantity_must_be_positive() -> None:
    assert codes(order(lines=[line(quantity=0)], total=Decimal(0))) == ["BAD_QUANTITY"]


def test_price_must_not_be_negative() -> None:
    found = order(lines=[line(unit_price=Decimal(-1))], total=Decimal(-1))
    assert codes(found) == ["BAD_PRICE"]
    assert codes(order(lines=[line(unit_price=Decimal(0))], total=Decimal(0))) == []


def test_total_must_be_that_of_the_lines() -> None:
    assert codes(order(total=Decimal("2.9999"))) == ["WRONG_TOTAL"]
