"""The checker on histories made by hand: a good one, and one for each anomaly."""

from collections import Counter
from collections.abc import Callable
from decimal import Decimal

import pytest

from tests.chaos.pipeline.checker import CHECKS, Charge, Facts, Placed, Sold, check


def good() -> Facts:
    """Return facts with one order of each final state: paid, shipped, failed, cancelled if paid."""
    lives = {
        "paid": ["CREATED", "VALIDATED", "PAID"],
        "shipped": ["CREATED", "VALIDATED", "PAID", "SHIPPED"],
        "failed": ["CREATED", "FAILED"],
        "cancelled": ["CREATED", "VALIDATED", "PAID", "CANCELLED"],
    }
    commands = {"shipped": "SHIP", "cancelled": "CANCEL"}
    states = {one: list(enumerate(names, 1)) for one, names in lives.items()}
    told = [
        (one, name)
        for one, names in lives.items()
        for name in names
        if name not in ("CREATED", "VALIDATED")
    ]
    return Facts(
        placed={one: Placed("c", {"apple": 2}, Decimal(3), commands.get(one)) for one in lives},
        states=states,
        verdicts={one: list(CHECKS) for one in lives},
        decisions=dict.fromkeys(lives, 1),
        payments={"paid": ["PAID"], "shipped": ["PAID"], "cancelled": ["PAID", "REFUNDED"]},
        charges={
            "paid": Charge(Decimal(3), False),
            "shipped": Charge(Decimal(3), False),
            "cancelled": Charge(Decimal(3), True),
        },
        notes=Counter(told),
        mails=set(told),
        documents={one: history[-1] for one, history in states.items()},
        stock_before={"apple": 5},
        stock={"apple": 3},
        reserved={"apple": 2},
        products={"apple": Sold(3, 6, Decimal(9))},
        spark={"orders": 4, "states": {"VALIDATED": 3, "FAILED": 1}, "revenue": "9.00"},
    )


def rules_of(facts: Facts) -> set[str]:
    return {anomaly.rule for anomaly in check(facts)}


def test_nothing_is_wrong_with_a_good_end() -> None:
    assert check(good()) == []


def lose(facts: Facts) -> None:
    del facts.states["failed"], facts.documents["failed"]
    facts.notes.pop(("failed", "FAILED"))
    facts.mails.discard(("failed", "FAILED"))


def finish_twice(facts: Facts) -> None:
    facts.states["failed"].append((3, "PAID"))


def place_twice(facts: Facts) -> None:
    del facts.placed["failed"]


def cut(facts: Facts) -> None:
    facts.states["failed"].pop()


def skip_a_version(facts: Facts) -> None:
    facts.states["failed"][1] = (3, "FAILED")


BAD: dict[str, tuple[str, Callable[[Facts], object]]] = {
    "lost": ("lost order", lose),
    "a second final state": ("states", finish_twice),
    "placed twice": ("unasked order", place_twice),
    "no end": ("unfinished", cut),
    "a version is missing": ("versions", skip_a_version),
    "a poisoned record": ("dead letter", lambda f: setattr(f, "dead_letters", 1)),
    "judged twice": ("verdicts", lambda f: f.verdicts["cancelled"].append("FRAUD")),
    "judged by two": ("verdicts", lambda f: f.verdicts["paid"].pop()),
    "decided twice": ("decisions", lambda f: f.decisions.update(paid=2)),
    "not decided": ("decisions", lambda f: f.decisions.pop("paid")),
    "not charged": ("charge", lambda f: f.charges.pop("paid")),
    "charged wrongly": ("charge", lambda f: f.charges.update(paid=Charge(Decimal(4), False))),
    "charged and failed": ("charge", lambda f: f.charges.update(failed=Charge(Decimal(3), False))),
    "not refunded": ("charge", lambda f: f.charges.update(cancelled=Charge(Decimal(3), False))),
    "paid twice": ("payments", lambda f: f.payments["paid"].append("PAID")),
    "a customer's total": ("customer", lambda f: f.charges.pop("shipped")),
    "no mail": ("mail", lambda f: f.mails.discard(("paid", "PAID"))),
    "a second mail": ("mail", lambda f: f.notes.update([("paid", "PAID")])),
    "a mail too many": ("mail", lambda f: f.notes.update([("paid", "FAILED")])),
    "an old document": ("document", lambda f: f.documents.update(paid=(2, "VALIDATED"))),
    "no document": ("document", lambda f: f.documents.pop("paid")),
    "a stray document": ("document", lambda f: f.documents.update(other=(1, "CREATED"))),
    "deducted twice": ("stock", lambda f: f.stock.update(apple=1)),
    "not deducted": ("stock", lambda f: f.stock.update(apple=5)),
    "not released": ("reserved", lambda f: f.reserved.update(apple=4)),
    "a view counts twice": (
        "streams' view",
        lambda f: f.products.update(apple=Sold(4, 8, Decimal(12))),  # type: ignore[union-attr]
    ),
    "a view lacks a product": (
        "streams' view",
        lambda f: f.products.clear(),  # type: ignore[union-attr]
    ),
    "Spark's sum": ("Spark", lambda f: f.spark.update(revenue="9.01")),  # type: ignore[union-attr]
    "oversold": ("oversold", lambda f: f.stock_before.update(apple=3)),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_told(name: str) -> None:
    facts = good()
    rule, spoil = BAD[name]
    spoil(facts)
    assert rule in rules_of(facts)


def test_an_order_cancelled_before_it_was_judged_needs_no_verdict() -> None:
    facts = good()
    facts.states["cancelled"] = [(1, "CREATED"), (2, "CANCELLED")]
    facts.documents["cancelled"] = (2, "CANCELLED")
    facts.verdicts["cancelled"], facts.payments["cancelled"] = ["FRAUD"], []
    facts.notes.pop(("cancelled", "PAID"))
    facts.mails.discard(("cancelled", "PAID"))
    del facts.decisions["cancelled"], facts.charges["cancelled"]
    facts.products = {"apple": Sold(2, 4, Decimal(6))}
    facts.spark = {
        "orders": 4,
        "states": {"VALIDATED": 2, "FAILED": 1, "CANCELLED": 1},
        "revenue": "6.00",
    }
    assert check(facts) == []


def test_a_command_without_an_answer_may_have_its_effect_or_not() -> None:
    facts = good()
    for order_id, command in (("paid", "CANCEL"), ("shipped", "SHIP"), ("cancelled", "CANCEL")):
        placed = facts.placed[order_id]
        facts.placed[order_id] = placed._replace(command=f"{command}, not acknowledged")
    assert not rules_of(facts)
