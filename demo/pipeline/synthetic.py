"""Generate orders; the same seed gives the same orders.

Most orders are valid. Products are chosen by popularity (the k-th product has weight 1/k, Zipf's
law). A small share of the orders is invalid (refused with 422), fraudulent (2000 or more at once),
or for a product that is sold out or unknown. The expected result of each order is known, because
good customers stay far below the fraud limit.
"""

import itertools
import random
from collections.abc import Callable

from demo.pipeline.orders import DemoOrder, Scenery

STOCK = 1_000_000
PRODUCT_COUNT = 200
SOLD_OUT = "sold-out"
_SPENDING_MAX_CENTS = 150_000
_KINDS = {"good": 86, "invalid": 4, "fraudulent": 4, "sold_out": 4, "unknown": 2}
_ADJECTIVES = ("red", "white", "vintage", "small", "large", "wooden", "woollen", "enamel")
_NOUNS = ("lantern", "mug", "cushion", "clock", "tray", "candle", "basket", "apron", "bottle")
Line = tuple[str, int, str]

_COUNTRIES = ("United Kingdom", "France", "Germany", "Spain", "Norway")


def make_scenery(count: int, seed: int) -> Scenery:
    """Return `count` orders and the catalogue of their products."""
    catalogue = {
        f"item-{number:03}": (_description(number), STOCK) for number in range(PRODUCT_COUNT)
    }
    catalogue[SOLD_OUT] = ("the last one went yesterday", 0)
    maker = _OrderMaker(random.Random(seed), max(count // 4, 10))
    return Scenery([maker.make(number) for number in range(count)], catalogue)


def _description(number: int) -> str:
    adjective = _ADJECTIVES[number % len(_ADJECTIVES)]
    return f"{adjective} {_NOUNS[number // len(_ADJECTIVES) % len(_NOUNS)]}"


class _OrderMaker:
    """Generates orders one by one; keeps the sum that each customer has spent."""

    def __init__(self, source: random.Random, customer_count: int) -> None:
        self._source = source
        self._spent_cents = dict.fromkeys(range(customer_count), 0)
        self._prices_cents = [source.randint(95, 1995) for _ in range(PRODUCT_COUNT)]
        self._popularity = list(
            itertools.accumulate(1 / rank for rank in range(1, PRODUCT_COUNT + 1))
        )
        self._makers: dict[str, Callable[[str], DemoOrder]] = {
            "good": self._good,
            "invalid": self._invalid,
            "fraudulent": self._fraudulent,
            "sold_out": self._sold_out,
            "unknown": self._unknown,
        }

    def make(self, number: int) -> DemoOrder:
        (kind,) = self._source.choices(list(_KINDS), list(_KINDS.values()))
        return self._makers[kind](f"{kind}-{number}")

    def _lines(self) -> list[Line]:
        products = self._source.choices(
            range(PRODUCT_COUNT), cum_weights=self._popularity, k=self._source.randint(1, 3)
        )
        return [
            (f"item-{product:03}", self._source.randint(1, 4), _price(self._prices_cents[product]))
            for product in products
        ]

    def _good(self, name: str, *more: Line, expected: str = "VALIDATED") -> DemoOrder:
        lines = [*self._lines(), *more]
        cents = sum(quantity * _cents(price) for _, quantity, price in lines)
        customer = self._source.choice(
            [c for c, spent in self._spent_cents.items() if spent + cents < _SPENDING_MAX_CENTS]
        )
        self._spent_cents[customer] += cents
        country = self._source.choice(_COUNTRIES)
        return DemoOrder(name, f"customer-{customer:04}", country, None, tuple(lines), expected)

    def _invalid(self, name: str) -> DemoOrder:
        product, _, price = self._lines()[0]
        line = self._source.choice([(product, 0, price), (product, 1, "-1.00"), (product, 1, "?")])
        return DemoOrder(name, f"customer-of-{name}", None, None, (line,), "REFUSED")

    def _fraudulent(self, name: str) -> DemoOrder:
        product = self._lines()[0][0]
        lines = ((product, self._source.randint(20, 40), "100.00"),)
        return DemoOrder(name, f"customer-of-{name}", None, None, lines, "FAILED")

    def _sold_out(self, name: str) -> DemoOrder:
        return self._good(name, (SOLD_OUT, 1, "4.95"), expected="FAILED")

    def _unknown(self, name: str) -> DemoOrder:
        return self._good(name, ("no-such-item", 1, "1.00"), expected="FAILED")


def _price(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02}"


def _cents(price: str) -> int:
    return int(price.replace(".", ""))
