"""The life of a payment: the transition table, cell by cell, and what begins and delays one."""

from decimal import Decimal

import pytest

from services.payments.domain import (
    TRANSITIONS,
    Happening,
    Payment,
    Status,
    begin,
    from_row,
    happening_of,
    postpone,
    see,
    to_row,
)
from services.payments.provider import find_objection

ALLOWED = {
    ("DUE", "CHARGED"): "PAID",
    ("DUE", "REFUSED"): "DECLINED",
    ("DUE", "CANCELLED"): "REFUND_DUE",
    ("PAID", "CANCELLED"): "REFUND_DUE",
    ("REFUND_DUE", "GIVEN_BACK"): "REFUNDED",
}
LIMIT = Decimal(100)


def payment(status: str = "DUE", due_ms: int | None = 0) -> Payment:
    return Payment(Status(status), "c", Decimal("5.1000"), due_ms)


@pytest.mark.parametrize("happening", list(Happening))
@pytest.mark.parametrize("status", list(Status))
def test_each_cell_of_the_transition_table(status: Status, happening: Happening) -> None:
    before = payment(status.value)
    after = see(before, happening)
    expected = ALLOWED.get((status.value, happening.value))
    if expected is None:
        assert after is before
    else:
        assert after.status == expected
        assert (after.due_ms is None) == (expected in ("PAID", "DECLINED", "REFUNDED"))


@pytest.mark.parametrize("happening", list(Happening))
def test_only_orders_begin_a_payment(happening: Happening) -> None:
    begun = begin(happening, payment())
    expected = {"VALIDATED": "DUE", "CANCELLED": "REFUND_DUE"}.get(happening.value)
    assert (begun and begun.status) == expected


def test_table_has_no_cell_that_is_not_tested() -> None:
    known = {(before, happening) for before, happening in TRANSITIONS if before is not None}
    assert known == set(ALLOWED)


@pytest.mark.parametrize(
    ("state", "version", "happening"),
    [
        ("CREATED", 1, None),
        ("VALIDATED", 2, "VALIDATED"),
        ("FAILED", 2, None),
        ("CANCELLED", 2, None),
        ("CANCELLED", 3, "CANCELLED"),
        ("CANCELLED", 4, "CANCELLED"),
        ("PAID", 3, None),
        ("FAILED", 3, None),
        ("SHIPPED", 4, None),
    ],
)
def test_what_an_event_of_the_order_means(state: str, version: int, happening: str | None) -> None:
    assert happening_of(state, version) == happening


def test_attempts_in_vain_are_ever_further_apart_and_a_new_errand_begins_at_once() -> None:
    waiting, now_ms, delays = payment(), 1000, []
    for _ in range(12):
        waiting = postpone(waiting, now_ms)
        assert waiting.due_ms is not None
        delays.append(waiting.due_ms - now_ms)
    assert delays[:4] == [200, 400, 800, 1600]
    assert delays[-1] == 30_000
    cancelled = see(waiting, Happening.CANCELLED)
    assert (cancelled.due_ms, cancelled.attempts) == (0, 0)


def test_row_gives_the_payment_back() -> None:
    one = postpone(payment(), 5)
    assert from_row(to_row(one)) == one


@pytest.mark.parametrize(
    ("customer_id", "amount", "code"),
    [
        ("c", "100.0000", None),
        ("c", "100.0001", "LIMIT_EXCEEDED"),
        ("declined-c", "1", "CARD_DECLINED"),
        ("c-declined-", "0", None),
    ],
)
def test_simulated_provider_declines_by_rule(
    customer_id: str, amount: str, code: str | None
) -> None:
    objection = find_objection(customer_id, Decimal(amount), LIMIT)
    assert (objection and objection.code) == code
