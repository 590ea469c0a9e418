"""A broker of a stack is killed by its switch in the browser, and the page says what happens.

An order is followed beside it.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Page, expect

from tests.lib.browser import CHROMIUM, opened_page, running_chromium
from tests.lib.local_console import ConsoleCalls
from tests.lib.stack_command import Command

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

if CHROMIUM is None:
    pytest.skip("no `chromium` on the PATH", allow_module_level=True)

SCREENSHOT = Path("build") / "console" / "live-killed.png"
ORDER = "order-77"


class Live(NamedTuple):
    """The live view, and calls to the console that it is of."""

    page: Page
    calls: ConsoleCalls


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    command = Command(tmp_path / "home")
    stack = command.up("--ephemeral", "--brokers", "3", "--only", "broker,console")
    url = stack["addresses"]["console"]
    calls = ConsoleCalls(url)
    body = {"name": "orders", "partitions": 6, "replicas": 3}
    assert calls.change("POST", "/api/topics", body).status == 201
    errors: list[str] = []
    try:
        with running_chromium() as browser, opened_page(browser, url, errors) as opened:
            yield Live(opened, calls)
    finally:
        command("down")
    assert errors == []


def test_a_broker_is_killed_while_an_order_is_followed_on_the_same_page(live: Live) -> None:
    page, calls = live

    def write(state: str) -> None:
        """As the pipeline does: a state of the order, which a group reads."""
        body = {
            "key": {"kind": "text", "text": ORDER},
            "value": {"kind": "json", "text": f'{{"id": "{ORDER}", "state": "{state}"}}'},
        }
        made = calls.change("POST", "/api/topics/orders/records", body)
        assert made.status == 201, made
        offsets = {f"orders:{made.body['partition']}": str(int(made.body["offset"]) + 1)}
        read = calls.change("POST", "/api/groups/search/offsets", {"offsets": offsets})
        assert read.status == 200, read

    rows = page.get_by_role("region", name="Brokers").locator("tbody tr")
    expect(rows.filter(has_text="ready")).to_have_count(3)
    page.get_by_label("Text in keys, values or headers").fill(ORDER)
    page.get_by_role("button", name="Follow").click()
    expect(page.get_by_text("No record has it yet")).to_be_visible()
    page.get_by_role("button", name="Kill broker-2").click()
    happened = page.get_by_role("log", name="What has happened")
    expect(happened).to_contain_text("Broker 2 is gone from the cluster")
    expect(happened).to_contain_text("that broker 2 led")
    expect(happened).to_contain_text("Broker 2 is out of sync")
    for state in ("CREATED", "PAID"):
        write(state)
        expect(happened).to_contain_text(f"The topic orders has a record of it: {state}.")
    expect(happened).to_contain_text("The group search has read orders")
    followed = page.get_by_role("region", name="Records").locator("tbody tr")
    expect(followed).to_have_count(2)
    expect(followed.last).to_contain_text("search")
    SCREENSHOT.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOT, full_page=True)
    page.get_by_role("button", name="Start broker-2").click()
    expect(happened).to_contain_text("Broker 2 is in sync again")
    page.get_by_role("button", name="Pause broker-3").click()
    expect(happened).to_contain_text("The process broker-3 was paused")
    page.get_by_role("button", name="Start broker-3").click()
    expect(page.get_by_role("button", name="Pause broker-3")).to_be_visible()
