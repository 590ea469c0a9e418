"""A broker of a stack is killed by its switch in the browser, and the page says what happens."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.lib.browser import CHROMIUM, opened_page, running_chromium
from tests.lib.local_console import ConsoleCalls
from tests.lib.stack_command import Command

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

if CHROMIUM is None:
    pytest.skip("no `chromium` on the PATH", allow_module_level=True)

SCREENSHOT = Path("build") / "console" / "live-killed.png"


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    command = Command(tmp_path / "home")
    stack = command.up("--ephemeral", "--brokers", "3", "--only", "broker,console")
    url = stack["addresses"]["console"]
    body = {"name": "orders", "partitions": 6, "replicas": 3}
    assert ConsoleCalls(url).change("POST", "/api/topics", body).status == 201
    errors: list[str] = []
    try:
        with running_chromium() as browser, opened_page(browser, url, errors) as opened:
            yield opened
    finally:
        command("down")
    assert errors == []


def test_a_broker_is_killed_and_started_again_by_its_buttons(page: Page) -> None:
    rows = page.locator("tbody tr")
    expect(rows.filter(has_text="ready")).to_have_count(3)
    page.get_by_role("button", name="Kill broker-2").click()
    happened = page.get_by_role("log", name="What has happened")
    expect(happened).to_contain_text("Broker 2 is gone from the cluster")
    expect(happened).to_contain_text("that broker 2 led")
    expect(happened).to_contain_text("Broker 2 is out of sync")
    SCREENSHOT.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOT, full_page=True)
    page.get_by_role("button", name="Start broker-2").click()
    expect(happened).to_contain_text("Broker 2 is in sync again")
    page.get_by_role("button", name="Pause broker-3").click()
    expect(happened).to_contain_text("The process broker-3 was paused")
    page.get_by_role("button", name="Start broker-3").click()
    expect(page.get_by_role("button", name="Pause broker-3")).to_be_visible()
