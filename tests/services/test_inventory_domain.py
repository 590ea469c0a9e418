"""The ledger: whole orders or nothing, never oversold, the same answer again."""

from collections import Counter

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from services.inventory import domain
from services.inventory.domain import Entry, Ledger, entry_from_row, entry_to_row


def ledger_with(**stock: int) -> Ledger:
    ledger = Ledger()
    for product_id, quantity in stock.items():
        ledger.put_stock(product_id, quantity)
    return ledger


def decide(ledger: Ledger, order_id: str, *lines: tuple[str, int]) -> Entry:
    entry = ledger.judge(order_id, lines)
    ledger.put_entry(order_id, entry)
    return entry


def test_order_takes_what_is_there_and_the_next_finds_the_rest() -> None:
    ledger = ledger_with(apple=3)
    assert decide(ledger, "a", ("apple", 2)).is_open
    assert decide(ledger, "b", ("apple", 2)).code == "OUT_OF_STOCK"
    assert decide(ledger, "c", ("apple", 1)).is_open


def test_one_line_that_is_short_leaves_all_lines_unreserved() -> None:
    ledger = ledger_with(apple=3, pear=0)
    entry = decide(ledger, "a", ("apple", 3), ("pear", 1))
    assert entry.reason == "out of stock: pear"
    assert ledger.available("apple") == 3


def test_lines_of_one_product_count_together() -> None:
    ledger = ledger_with(apple=3)
    assert decide(ledger, "a", ("apple", 2), ("apple", 2)).code == "OUT_OF_STOCK"


def test_unknown_product_fails_with_its_name() -> None:
    entry = decide(ledger_with(apple=1), "a", ("apple", 1), ("M", 1), ("POST", 2))
    assert (entry.code, entry.reason) == ("UNKNOWN_PRODUCT", "unknown product M, POST")


def test_release_gives_the_goods_back_once() -> None:
    ledger = ledger_with(apple=1)
    decide(ledger, "a", ("apple", 1))
    released = ledger.release("a")
    assert released is not None
    ledger.put_entry("a", released)
    assert ledger.available("apple") == 1
    assert ledger.release("a") is None
    assert ledger.release("never seen") is None


def test_order_that_comes_again_after_its_release_reserves_nothing() -> None:
    ledger = ledger_with(apple=1)
    first = decide(ledger, "a", ("apple", 1))
    released = ledger.release("a")
    assert released is not None
    ledger.put_entry("a", released)
    again = ledger.judge("a", [("apple", 1)])
    assert again.code == first.code is None
    assert ledger.available("apple") == 1


def test_shipping_takes_what_was_promised_out_of_the_stock_once() -> None:
    ledger = ledger_with(apple=5, pear=1)
    decide(ledger, "a", ("apple", 2), ("pear", 1))
    ledger.put_stock("pear", None)  # no longer kept
    shipped = ledger.ship("a")
    assert shipped is not None
    entry, levels = shipped
    assert levels == {"apple": 3}
    ledger.put_entry("a", entry)
    ledger.put_stock("apple", 3)
    assert ledger.available("apple") == 3
    assert ledger.ship("a") is ledger.release("a") is ledger.ship("never seen") is None


def test_closed_entries_are_bounded(monkeypatch) -> None:
    monkeypatch.setattr(domain, "CLOSED_ENTRIES_KEPT", 2)
    ledger = ledger_with()
    for order_id in "abcd":
        decide(ledger, order_id, ("none", 1))
    assert ledger.surplus() == ["a", "b"]


class LedgerHistories(RuleBasedStateMachine):
    """Any history of orders, repeats, releases, shipments and restarts from the changelog."""

    STOCK = 7

    def __init__(self) -> None:
        super().__init__()
        self.ledger = ledger_with(apple=self.STOCK, pear=self.STOCK)
        self.rows: dict[str, dict] = {}
        self.verdicts: dict[str, str | None] = {}
        self.levels = {"apple": self.STOCK, "pear": self.STOCK}
        self.shipped: Counter[str] = Counter()

    def put(self, order_id: str, entry: Entry) -> None:
        self.ledger.put_entry(order_id, entry)
        self.rows[order_id] = entry_to_row(entry)

    @rule(
        order_id=st.integers(0, 9).map(str),
        lines=st.lists(
            st.tuples(st.sampled_from(["apple", "pear", "plum"]), st.integers(1, 5)), min_size=1
        ),
    )
    def order(self, order_id: str, lines: list[tuple[str, int]]) -> None:
        entry = self.ledger.judge(order_id, lines)
        assert self.verdicts.setdefault(order_id, entry.code) == entry.code
        self.put(order_id, entry)

    @rule(order_id=st.integers(0, 9).map(str))
    def release(self, order_id: str) -> None:
        entry = self.ledger.release(order_id)
        if entry is not None:
            self.put(order_id, entry)

    @rule(order_id=st.integers(0, 9).map(str))
    def ship(self, order_id: str) -> None:
        shipped = self.ledger.ship(order_id)
        if shipped is not None:
            self.shipped.update(self.ledger.entries[order_id].quantities)
            self.levels |= shipped[1]
            for product_id, quantity in shipped[1].items():
                self.ledger.put_stock(product_id, quantity)
            self.put(order_id, shipped[0])

    @rule()
    def restart(self) -> None:
        restored = ledger_with(**self.levels)
        for order_id, row in self.rows.items():
            restored.put_entry(order_id, entry_from_row(row))
        assert restored.entries == self.ledger.entries
        assert +restored.reserved == +self.ledger.reserved
        self.ledger = restored

    @invariant()
    def never_oversold(self) -> None:
        promised = Counter()
        for entry in self.ledger.entries.values():
            if entry.is_open:
                promised.update(entry.quantities)
        assert +self.ledger.reserved == +promised
        assert self.ledger.stock == {p: self.STOCK - self.shipped[p] for p in ("apple", "pear")}
        assert all(self.ledger.available(product_id) >= 0 for product_id in self.ledger.stock)


TestLedgerHistories = LedgerHistories.TestCase
