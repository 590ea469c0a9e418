"""The invariants of every order after any fault; pure, over facts collected at the end.

The shop knows its acknowledgements. The other facts are read from their sources: topics, the
payment provider's books, the mailbox, the search index.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from typing import Any, NamedTuple

CHECKS = ("FRAUD", "INVENTORY", "ORDER_DETAILS")
TOLD = frozenset({"PAID", "SHIPPED", "FAILED", "CANCELLED"})
FOLLOWING = {
    "CREATED": {"VALIDATED", "FAILED", "CANCELLED"},
    "VALIDATED": {"PAID", "FAILED", "CANCELLED"},
    "PAID": {"SHIPPED", "CANCELLED"},
}
"""The successors of each state, on purpose independent of the orders service's own table."""

OrderState = tuple[str, str]
"""An order and one of its states."""


class Placed(NamedTuple):
    """An acknowledged order, with its command: CANCEL or SHIP, or that it is not acknowledged."""

    customer_id: str
    quantities: dict[str, int]
    total: Decimal
    command: str | None = None


class Charge(NamedTuple):
    """One line of the provider's books."""

    amount: Decimal
    is_refunded: bool


class Sold(NamedTuple):
    """The sales of a product."""

    orders: int
    units: int
    revenue: Decimal


@dataclass
class Facts:
    """The final state of all sources; the keys are order ids where a value belongs to an order."""

    placed: dict[str, Placed] = field(default_factory=dict)
    states: dict[str, list[tuple[int, str]]] = field(default_factory=dict)  # version, state
    verdicts: dict[str, list[str]] = field(default_factory=dict)
    decisions: dict[str, int] = field(default_factory=dict)
    payments: dict[str, list[str]] = field(default_factory=dict)
    charges: dict[str, Charge] = field(default_factory=dict)
    notes: Counter[OrderState] = field(default_factory=Counter)  # mails in the topic
    mails: set[OrderState] = field(default_factory=set)  # mails in the mailbox
    documents: dict[str, tuple[int, str]] = field(default_factory=dict)
    stock_before: dict[str, int] = field(default_factory=dict)
    stock: dict[str, int] = field(default_factory=dict)
    reserved: dict[str, int] = field(default_factory=dict)
    dead_letters: int = 0
    products: dict[str, Sold] | None = None  # the streams' view, if they run
    spark: dict[str, Any] | None = None  # Spark's summary, if it runs

    def final(self) -> dict[str, str]:
        """Return the last state of every order."""
        return {order_id: states[-1][1] for order_id, states in self.states.items()}


class Anomaly(NamedTuple):
    """A broken rule, its order, product or customer, and the details."""

    rule: str
    about: str
    detail: str


def check(facts: Facts) -> list[Anomaly]:
    """Return all anomalies."""
    return [
        *_check_lives(facts),
        *_check_judgement(facts),
        *_check_money(facts),
        *_check_mails(facts),
        *_check_search(facts),
        *_check_stock(facts),
        *_check_views(facts),
    ]


def _check_lives(facts: Facts) -> Iterator[Anomaly]:
    if facts.dead_letters:
        yield Anomaly("dead letter", "-", f"{facts.dead_letters} records were set aside")
    for order_id in facts.placed.keys() - facts.states.keys():
        yield Anomaly("lost order", order_id, "acknowledged, and in no topic")
    for order_id in facts.states.keys() - facts.placed.keys():
        yield Anomaly("unasked order", order_id, "nobody placed it")
    for order_id, states in facts.states.items():
        if [version for version, _ in states] != list(range(1, len(states) + 1)):
            yield Anomaly("versions", order_id, f"{states}")
        names = [state for _, state in states]
        steps = pairwise(names)
        if names[0] != "CREATED" or any(b not in FOLLOWING.get(a, ()) for a, b in steps):
            yield Anomaly("states", order_id, " ".join(names))
        placed = facts.placed.get(order_id)
        if placed is not None and names[-1] not in _ends_of(placed):
            yield Anomaly("unfinished", order_id, f"{' '.join(names)}, asked: {placed.command}")


def _ends_of(placed: Placed) -> set[str]:
    """Return the final states that an order may have; an accepted command has its effect."""
    unasked = {"PAID", "FAILED"}
    match placed.command:
        case "SHIP":
            return {"SHIPPED"}
        case "CANCEL":
            return {"CANCELLED", "FAILED"}
        case "CANCEL, not acknowledged":
            return {"CANCELLED", *unasked}
        case "SHIP, not acknowledged":
            return {"SHIPPED", *unasked}
        case _:
            return unasked


def _check_judgement(facts: Facts) -> Iterator[Anomaly]:
    for order_id, state in facts.final().items():
        verdicts = sorted(facts.verdicts.get(order_id, []))
        # An order may be cancelled before all checks, but no check has two verdicts.
        expected = [list(CHECKS)]
        if state == "CANCELLED":
            expected += [[one for one in verdicts if verdicts.count(one) == 1]]
        if verdicts not in expected:
            yield Anomaly("verdicts", order_id, f"{verdicts}")
        count = facts.decisions.get(order_id, 0)
        if count > 1 or (count == 0 and state != "CANCELLED"):
            yield Anomaly("decisions", order_id, f"{count} of them")


def _check_money(facts: Facts) -> Iterator[Anomaly]:
    final = facts.final()
    for order_id, charge in facts.charges.items():
        if order_id not in final:
            yield Anomaly("charge", order_id, "for no order")
        elif order_id in facts.placed and charge.amount != facts.placed[order_id].total:
            yield Anomaly("charge", order_id, f"{charge.amount} is not what it costs")
    sold: dict[str, Decimal] = defaultdict(Decimal)
    taken: dict[str, Decimal] = defaultdict(Decimal)
    for order_id, state in final.items():
        charge = facts.charges.get(order_id)
        holds = charge is not None and not charge.is_refunded
        if holds != (state in {"PAID", "SHIPPED"}):
            yield Anomaly("charge", order_id, f"{state}, and the provider's books say {charge}")
        first = [one for one in facts.payments.get(order_id, []) if one != "REFUNDED"]
        if len(first) > 1 or (state in {"PAID", "SHIPPED"} and first != ["PAID"]):
            yield Anomaly("payments", order_id, f"{state}: {facts.payments.get(order_id)}")
        if order_id in facts.placed:
            placed = facts.placed[order_id]
            sold[placed.customer_id] += placed.total * (state in {"PAID", "SHIPPED"})
            taken[placed.customer_id] += charge.amount if holds and charge else 0
    for customer_id, total in sold.items():
        if taken[customer_id] != total:
            yield Anomaly("customer", customer_id, f"owes {total}, paid {taken[customer_id]}")


def _check_mails(facts: Facts) -> Iterator[Anomaly]:
    wanted = {
        (order_id, state)
        for order_id, states in facts.states.items()
        for _, state in states
        if state in TOLD
    }
    for one in wanted | facts.notes.keys() | facts.mails:
        found = (facts.notes[one], one in facts.mails)
        if found != ((1, True) if one in wanted else (0, False)):
            yield Anomaly("mail", one[0], f"{one[1]}: {found[0]} noted, in the mailbox: {found[1]}")


def _check_search(facts: Facts) -> Iterator[Anomaly]:
    last = {order_id: states[-1] for order_id, states in facts.states.items()}
    for order_id in last.keys() | facts.documents.keys():
        if facts.documents.get(order_id) != last.get(order_id):
            detail = f"{facts.documents.get(order_id)} is not {last.get(order_id)}"
            yield Anomaly("document", order_id, detail)


def _check_stock(facts: Facts) -> Iterator[Anomaly]:
    shipped: Counter[str] = Counter()
    promised: Counter[str] = Counter()
    for order_id, state in facts.final().items():
        if order_id in facts.placed and state in {"PAID", "VALIDATED", "SHIPPED"}:
            bill = shipped if state == "SHIPPED" else promised
            bill.update(facts.placed[order_id].quantities)
    for product_id, before in facts.stock_before.items():
        stock, reserved = facts.stock.get(product_id), facts.reserved.get(product_id, 0)
        if stock != before - shipped[product_id]:
            yield Anomaly("stock", product_id, f"{stock} is not {before} - {shipped[product_id]}")
        if reserved != promised[product_id]:
            yield Anomaly("reserved", product_id, f"{reserved} is not {promised[product_id]}")
        if before < shipped[product_id] + promised[product_id]:
            sold = shipped[product_id] + promised[product_id]
            yield Anomaly("oversold", product_id, f"{sold} of {before}")


def _check_views(facts: Facts) -> Iterator[Anomaly]:
    """Check the views, which count every VALIDATED order, whatever its final state."""
    sold = {
        order_id: facts.placed[order_id]
        for order_id, states in facts.states.items()
        if order_id in facts.placed and "VALIDATED" in {state for _, state in states}
    }
    if facts.products is not None:
        expected = _sold_by_product(sold.values())
        for product_id in expected.keys() | facts.products.keys():
            found, right = facts.products.get(product_id), expected.get(product_id)
            if found != right:
                yield Anomaly("streams' view", product_id, f"{found} is not {right}")
    if facts.spark is not None:
        others = (state for one, state in facts.final().items() if one not in sold)
        states = Counter(others) + Counter(VALIDATED=len(sold))
        revenue = sum((one.total for one in sold.values()), Decimal())
        summary = {"orders": len(facts.states), "states": dict(states), "revenue": f"{revenue:.2f}"}
        if facts.spark != summary:
            yield Anomaly("Spark", "-", f"{facts.spark} is not {summary}")


def _sold_by_product(orders: Iterable[Placed]) -> dict[str, Sold]:
    sold: dict[str, Sold] = defaultdict(lambda: Sold(0, 0, Decimal()))
    for order in orders:
        share = order.total / sum(order.quantities.values())
        for product_id, units in order.quantities.items():
            before = sold[product_id]
            sold[product_id] = Sold(
                before.orders + 1, before.units + units, before.revenue + units * share
            )
    return dict(sold)
