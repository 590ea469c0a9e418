"""From the start of the demo to the first live figure in a browser: `python -m bench first-figure`.

A headless Chromium opens the dashboard as soon as it answers. The time ends when the page shows
orders and "live".
"""

import re
import shutil
import time
import urllib.error
import urllib.request

from playwright.sync_api import Page, expect, sync_playwright

from bench.lib.demo_stack import DASHBOARD, DemoStack

SECONDS = 300.0
SOME = re.compile("[1-9][0-9,]*")


def open_when_served(page: Page, url: str) -> None:
    """Open the page as soon as the server answers."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            urllib.request.urlopen(url + "/health/live", timeout=5).close()
        except urllib.error.URLError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            page.goto(url, wait_until="domcontentloaded")
            return


def main(_arguments: list[str]) -> int:
    """Measure once and print the seconds."""
    chromium = shutil.which("chromium")
    if chromium is None:
        print("there is no `chromium` on the PATH")
        return 1
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        with DemoStack() as stack:
            open_when_served(page, stack.url(DASHBOARD))
            opened = time.monotonic() - stack.started_at
            orders = page.get_by_test_id("tile-orders")
            expect(orders).to_have_text(SOME, timeout=SECONDS * 1000)
            badge = page.get_by_test_id("badge")
            expect(badge).to_have_text("live", timeout=SECONDS * 1000)
            seconds = time.monotonic() - stack.started_at
            print(f"page served after {opened:.1f} s, first live figure after {seconds:.1f} s")
        browser.close()
    return 0
