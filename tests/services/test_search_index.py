"""One set of rules for every index: SQLite, and a real Elasticsearch where one is to be had."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from services.search.app import SearchWorker
from services.search.domain import (
    Document,
    IndexAwayError,
    Place,
    Question,
    document_of,
    split_words,
)
from services.search.index import OrderIndex, WrongIndexError, choose_index
from services.search.sqlite_index import SqliteIndex
from tests.lib.order_feed import NOON, Feed, order_event
from tests.lib.pipeline_bus import Bus, fake_events
from tests.lib.pipeline_processes import call

Check = Callable[[OrderIndex], Awaitable[None]]


@pytest.fixture(params=["sqlite", pytest.param("elasticsearch", marks=pytest.mark.slow)])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Give the address of an empty index and its name."""
    if request.param == "sqlite":
        yield str(tmp_path / "orders.sqlite"), ""
        return
    name = f"test-{uuid.uuid4().hex}"
    url = request.getfixturevalue("elasticsearch").url
    yield url, name
    for index in (name, f"{name}-positions"):
        call("DELETE", f"{url}/{index}")


@asynccontextmanager
async def opened(address: tuple[str, str]) -> AsyncIterator[OrderIndex]:
    index = choose_index(*address)
    await index.open()
    try:
        yield index
    finally:
        await index.close()


async def settle(index: OrderIndex) -> None:
    """Let everything that is written be found."""
    if not isinstance(index, SqliteIndex):
        await index._client.indices.refresh(index=index._orders)


def with_index(address: tuple[str, str], check: Check) -> None:
    async def run() -> None:
        async with opened(address) as index:
            await check(index)

    asyncio.run(run())


def document(number: int, state: str = "CREATED", version: int = 1, **changes: Any) -> Document:
    at = NOON + timedelta(minutes=number // 2)
    order_id = f"order-{number:02}"
    return document_of(order_event(order_id, state, version, ordered_at=at, **changes))


async def ids(index: OrderIndex, **asked: Any) -> list[str]:
    found = await index.find(Question(**{"limit": 100, **asked}))
    return [one.place.order_id.removeprefix("order-") for one in found]


async def put(index: OrderIndex, *documents: Document, **positions: int) -> None:
    by_partition: Mapping[int, int] = {int(name[1:]): at for name, at in positions.items()}
    await index.put(documents, by_partition)
    await settle(index)


def test_newest_version_wins_in_whatever_order_they_come(address: tuple[str, str]) -> None:
    async def check(index: OrderIndex) -> None:
        await put(index, document(1, "VALIDATED", 2))
        await put(index, document(1, "CREATED", 1))
        assert await ids(index, state="VALIDATED") == ["01"]
        assert await ids(index, state="CREATED") == []
        await put(index, document(1, "PAID", 3), document(2))
        (second, first) = await index.find(Question())
        assert (first.summary["state"], first.summary["version"]) == ("PAID", 3)
        assert second.summary == document(2).summary
        assert await index.count() == 2

    with_index(address, check)


def test_orders_are_found_by_customer_state_and_words_together(address: tuple[str, str]) -> None:
    reasons = [{"check": "INVENTORY", "code": "OUT_OF_STOCK", "detail": "out of stock: äpfel"}]

    async def check(index: OrderIndex) -> None:
        await put(
            index,
            document(1, customer_id="ann", country="Norway"),
            document(2, "FAILED", 2, customer_id="ann", reasons=reasons),
            document(3, "FAILED", 2, customer_id="ann b", reasons=reasons),
        )
        assert await ids(index, customer_id="ann") == ["02", "01"]
        assert await ids(index, customer_id="ANN") == []
        assert await ids(index, state="FAILED") == ["03", "02"]
        assert await ids(index, state="FAILED", customer_id="ann") == ["02"]
        for text, found in {
            "norw": ["01"],
            "APFEL": ["03", "02"],
            "out stock ann": ["03", "02"],
            "stock norway": [],
            "orway": [],
            "order-02": ["02"],
            'NOT "x': [],
        }.items():
            assert await ids(index, words=tuple(split_words(text))) == found, text

    with_index(address, check)


def test_word_that_an_order_lost_finds_it_no_more(address: tuple[str, str]) -> None:
    reasons = [{"check": "X", "code": "X", "detail": "regret"}]

    async def check(index: OrderIndex) -> None:
        await put(index, document(1, "FAILED", 2, reasons=reasons))
        assert await ids(index, words=("regret",)) == ["01"]
        await put(index, document(1, "PAID", 3))
        assert await ids(index, words=("regret",)) == []

    with_index(address, check)


def test_pages_part_the_orders_without_gap_or_overlap(address: tuple[str, str]) -> None:
    async def check(index: OrderIndex) -> None:
        await put(index, *[document(number) for number in range(25)])
        seen: list[str] = []
        behind: Place | None = None
        while True:
            found = await index.find(Question(limit=4, behind=behind))
            seen += [one.place.order_id for one in found[:4]]
            if len(found) <= 4:
                break
            behind = found[3].place
            # What changes or comes in on top meanwhile moves nothing.
            await put(index, document(len(seen), "PAID", 50), document(90 + len(seen)))
        assert seen == [f"order-{number:02}" for number in reversed(range(25))]

    with_index(address, check)


def test_positions_go_forward_only_and_outlive_the_index_being_closed(
    address: tuple[str, str],
) -> None:
    async def check() -> None:
        async with opened(address) as index:
            assert await index.positions() == {}
            await put(index, document(1), p0=5, p3=1)
            await put(index, p0=4, p3=2)
        async with opened(address) as index:
            assert await index.positions() == {0: 5, 3: 2}
            assert await index.count() == 1

    asyncio.run(check())


def test_worker_goes_on_where_its_index_is_and_fills_a_new_one(
    address: tuple[str, str], tmp_path: Path
) -> None:
    async def check(index: OrderIndex) -> None:
        bus, events = Bus(), fake_events()
        feed = Feed(bus, events, SearchWorker(index, events))
        await feed.start()
        for number in range(8):
            await feed.see(f"o-{number}", "CREATED", 1)
        await feed.write("o-1", "PAID", 3)
        await feed.write("o-1", "VALIDATED", 2)
        await feed.step()
        # What a worker that was killed had not written is read by the next one.
        again = Feed(bus, events, SearchWorker(index, events))
        again.instance.group = feed.instance.group
        await feed.write("o-2", "CANCELLED", 2)
        await again.start()
        await again.step()
        await settle(index)
        found = {one.summary["id"]: one.summary["state"] for one in await index.find(Question())}
        assert found == {
            **{f"o-{number}": "CREATED" for number in range(8)},
            "o-1": "PAID",
            "o-2": "CANCELLED",
        }
        empty = SqliteIndex(tmp_path / "another.sqlite")
        third = Feed(bus, events, SearchWorker(empty, events))
        third.instance.group = feed.instance.group
        await third.start()
        await third.step()
        assert await empty.count() == 8
        await empty.close()

    with_index(address, check)


def test_two_instances_may_write_one_file(tmp_path: Path) -> None:
    async def check() -> None:
        place = (str(tmp_path / "shared.sqlite"), "x")
        async with opened(place) as one, opened(place) as other:
            await asyncio.gather(
                *[one.put([document(n)], {0: n}) for n in range(20)],
                *[other.put([document(n, "PAID", 3)], {1: n}) for n in range(10, 30)],
            )
            assert await one.count() == 30
            assert len(await ids(other, state="PAID")) == 20

    asyncio.run(check())


def test_file_that_is_no_index_is_away_in_words(tmp_path: Path) -> None:
    (tmp_path / "orders.sqlite").write_bytes(b"no database" * 100)
    with pytest.raises(IndexAwayError, match="not a database"):
        asyncio.run(choose_index(str(tmp_path / "orders.sqlite"), "x").open())


def test_elasticsearch_that_is_not_there_is_away_in_words() -> None:
    async def check() -> None:
        index = choose_index("http://127.0.0.1:9", "x")
        with pytest.raises(IndexAwayError):
            await index.open()
        with pytest.raises(IndexAwayError):
            await index.find(Question())
        await index.close()

    asyncio.run(check())


def test_what_is_neither_file_nor_elasticsearch_is_refused() -> None:
    with pytest.raises(WrongIndexError, match="neither"):
        choose_index("redis://x", "x")
