"""The page in a real browser. An error in its console fails the test."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web
from playwright.sync_api import Browser, Page, expect

from common.process import clock
from spark_analytics.dashboard.app import FEED_KEY, STOPPING_KEY, build_dashboard
from spark_analytics.serving.writer import BatchResult, ServingWriter
from tests.lib.browser import CHROMIUM, cut_tables, opened_page, running_chromium
from tests.lib.served_orders import NOW_MS, batch_of, make_store, order_row, revenue_rows
from tests.lib.waiting import PATIENCE_SECONDS

pytestmark = [pytest.mark.slow, pytest.mark.interop]

if CHROMIUM is None:
    pytest.skip("no `chromium` on the PATH", allow_module_level=True)
SCREENSHOT = Path("build") / "dashboard.png"


class Dashboard:
    """The dashboard in a thread of its own, on a port that stays the same over restarts."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._port = 0
        self.start()

    def start(self) -> None:
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        assert self._started.wait(PATIENCE_SECONDS)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        app = build_dashboard(self._store)
        self._stopping = app[STOPPING_KEY]
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", self._port).start()
        self._port = runner.addresses[0][1]
        async with asyncio.TaskGroup() as group:
            following = group.create_task(app[FEED_KEY].run())
            self._started.set()
            await self._stopping.wait()
            following.cancel()
        await runner.cleanup()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def stop(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_chromium() as browser:
        yield browser


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ServingWriter]:
    writer = make_store(tmp_path / "serving.sqlite")
    writer.set_properties(heartbeat_ms=clock.timestamp_ms() + 600_000)
    yield writer
    writer.close()


@pytest.fixture
def dashboard(store: ServingWriter, tmp_path: Path) -> Iterator[Dashboard]:
    dashboard = Dashboard(tmp_path / "serving.sqlite")
    yield dashboard
    dashboard.stop()


@pytest.fixture
def errors() -> list[str]:
    return []


@pytest.fixture
def page(browser: Browser, dashboard: Dashboard, errors: list[str]) -> Iterator[Page]:
    with opened_page(browser, dashboard.url, errors) as page:
        yield page


ROWS = """(testId) => Object.fromEntries(
    [...document.querySelectorAll(`[data-testid="${testId}"] tbody tr`)].map((row) =>
        [row.dataset.key, [...row.querySelectorAll("td")].map((cell) => cell.textContent.trim())]))
"""
ROOM_BELOW = """(cards) => cards.map((card) => card.getBoundingClientRect().bottom
    - card.lastElementChild.getBoundingClientRect().bottom)"""
PAGE_WIDTH = "() => document.documentElement.scrollWidth"
DRAWN = "(width) => [...document.querySelectorAll('.chart .main-svg')].every(" + (
    "(drawing) => drawing.getBoundingClientRect().width <= width)"
)


def rows_of(page: Page, test_id: str) -> dict[str, list[str]]:
    """Return the rows of a table as they are at one instant."""
    rows: dict[str, list[str]] = page.evaluate(ROWS, test_id)
    return rows


def wait_for_charts(page: Page) -> None:
    """Return when both charts are drawn; every table is filled before them."""
    expect(page.locator("#series-chart .main-svg").first).to_be_visible()
    expect(page.locator("#latency-chart .barlayer .point")).to_have_count(18)


def test_page_shows_the_figures_and_no_console_error(page: Page, errors: list[str]) -> None:
    expect(page.get_by_test_id("badge")).to_have_text("live")
    expect(page.get_by_test_id("tile-orders")).to_have_text("140")
    expect(page.get_by_test_id("tile-validated")).to_have_text("120")
    expect(page.get_by_test_id("tile-failed")).to_have_text("20")
    expect(page.get_by_test_id("tile-revenue")).to_have_text("1,482.31")
    wait_for_charts(page)

    assert rows_of(page, "table-checks")["FRAUD"] == ["120", "20", "0"]
    assert rows_of(page, "table-check-latency")["FRAUD"] == ["22 ms", "24 ms", "24 ms", "140"]
    series = rows_of(page, "table-series")
    assert (series["2011-02-01"][-1], series["2011-02-02"][-1]) == ("yes", "no")
    assert rows_of(page, "table-failures")["FRAUD SESSION_TOTAL"][:2] == ["SESSION_TOTAL", "20"]
    assert rows_of(page, "table-funnel")["validated"][0] == "120"
    assert set(rows_of(page, "table-countries")) == {"United Kingdom", "Germany", "France", "EIRE"}
    assert rows_of(page, "table-segments")["champions"][0] == "2"
    # No card has more room than is in it.
    rooms = page.locator(".cards section").evaluate_all(ROOM_BELOW)
    assert len(rooms) == 8
    assert max(rooms) < 40, rooms
    # Text is text: a product's description is never taken for markup.
    assert page.get_by_test_id("table-products").locator("b").count() == 0
    SCREENSHOT.parent.mkdir(exist_ok=True)
    page.screenshot(path=SCREENSHOT, full_page=True)
    assert errors == []


def test_new_orders_come_without_a_reload(
    page: Page, store: ServingWriter, errors: list[str]
) -> None:
    expect(page.get_by_test_id("tile-orders")).to_have_text("140")

    store.commit(batch_of(140, 150, batch_id=1), timestamp_ms=clock.timestamp_ms())

    expect(page.get_by_test_id("tile-orders")).to_have_text("150")
    assert errors == []


def test_badge_tells_stale_from_live(page: Page, store: ServingWriter, errors: list[str]) -> None:
    expect(page.get_by_test_id("badge")).to_have_attribute("data-state", "live")

    store.set_properties(heartbeat_ms=clock.timestamp_ms() - 60_000)
    expect(page.get_by_test_id("badge")).to_have_attribute("data-state", "stale")

    store.set_properties(heartbeat_ms=clock.timestamp_ms() + 600_000)
    expect(page.get_by_test_id("badge")).to_have_attribute("data-state", "live")
    assert errors == []


def test_page_reconnects_by_itself(page: Page, dashboard: Dashboard) -> None:
    expect(page.get_by_test_id("badge")).to_have_attribute("data-state", "live")

    dashboard.stop()
    expect(page.get_by_test_id("badge")).to_have_attribute("data-state", "reconnecting")

    dashboard.start()
    expect(page.get_by_test_id("badge")).to_have_attribute("data-state", "live")


def test_range_is_chosen_by_keyboard_and_kept(page: Page, errors: list[str]) -> None:
    rows = page.get_by_test_id("table-series").locator("tbody tr")
    chosen = page.locator("input[name=range]:checked")
    # Six days of February: the shortest range that has nine orders in ten.
    expect(chosen).to_have_value("month")
    expect(rows).to_have_count(31)
    page.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(rows.last).to_be_visible()
    expect(rows.last).to_have_attribute("data-key", "2011-02-06")

    chosen.focus()
    page.keyboard.press("ArrowLeft")
    expect(rows.last).to_have_attribute("data-key", "2011-02-06 19:00")
    expect(rows).to_have_count(24)
    page.reload(wait_until="domcontentloaded")

    expect(chosen).to_have_value("day")
    expect(page.get_by_test_id("series-span")).to_have_text(
        "5 Feb 2011, 20:00 to 6 Feb 2011, 20:00, by the hour"
    )
    assert errors == []


def test_order_of_years_later_leaves_the_days_before_their_width(
    page: Page, store: ServingWriter, errors: list[str]
) -> None:
    wait_for_charts(page)
    late = order_row(500, is_valid=True) | {"ordered_ms": NOW_MS, "total_e4": 1_234_567_891_200}
    rows = [row | {"orders": 20} for row in revenue_rows([late])]
    store.commit(
        BatchResult("query", 1, views={"funnel": [late], "revenue": rows}),
        timestamp_ms=clock.timestamp_ms(),
    )

    # In no shorter range are nine in ten.
    expect(page.locator("input[name=range]:checked")).to_have_value("everything")
    expect(page.get_by_test_id("series-span")).to_contain_text("hours without orders are left out")
    bars = page.locator("#series-chart .barlayer .point path")
    expect(bars).to_have_count(141)
    widths = bars.evaluate_all("(bars) => bars.map((bar) => bar.getBoundingClientRect().width)")
    assert min(widths) > 3, widths
    # What it brought is a number of fourteen characters, on one line within its tile.
    tile = page.get_by_test_id("tile-revenue")
    expect(tile).to_have_text("123,458,271.43")
    assert tile.evaluate("(tile) => tile.scrollWidth <= tile.clientWidth")
    assert tile.evaluate("(tile) => tile.getClientRects().length") == 1
    assert errors == []


def test_phone_has_no_sideways_scrolling(page: Page, errors: list[str]) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    page.reload(wait_until="domcontentloaded")
    wait_for_charts(page)

    assert page.evaluate(PAGE_WIDTH) <= 360
    assert cut_tables(page) == []
    assert errors == []


def test_page_turned_narrow_is_never_wider_than_the_screen(page: Page, errors: list[str]) -> None:
    wait_for_charts(page)
    page.set_viewport_size({"width": 360, "height": 740})
    # The charts follow some time later; how wide they are meanwhile is nobody's business.
    assert page.evaluate(PAGE_WIDTH) <= 360

    page.wait_for_function(DRAWN, arg=360)
    assert page.evaluate(PAGE_WIDTH) <= 360
    assert errors == []


def test_chart_of_any_width_does_not_widen_the_page(page: Page) -> None:
    wait_for_charts(page)
    widths = page.evaluate(
        """() => [...document.querySelectorAll(".chart > *")].map((drawing) => {
            drawing.style.width = "9000px";
            return [drawing.getBoundingClientRect().width, document.documentElement.scrollWidth];
        })"""
    )
    assert widths
    assert all(drawing == 9000 and page_width <= 1280 for drawing, page_width in widths), widths


def test_dark_theme_and_print_draw_with_their_own_colours(page: Page, errors: list[str]) -> None:
    wait_for_charts(page)
    body = page.locator("body")
    colour = "(body) => getComputedStyle(body).backgroundColor"
    light = body.evaluate(colour)

    page.emulate_media(color_scheme="dark")
    expect(body).not_to_have_css("background-color", light)
    dark = body.evaluate(colour)
    page.screenshot(path=SCREENSHOT.with_stem("dashboard-dark"), full_page=True)
    page.emulate_media(media="print")
    expect(body).not_to_have_css("background-color", dark)
    printed = body.evaluate(colour)

    assert len({light, dark, printed}) == 3
    assert page.pdf()[:4] == b"%PDF"
    assert errors == []
