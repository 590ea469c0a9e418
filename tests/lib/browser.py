"""Debian's Chromium, headless, and pages whose console messages are collected."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from tests.lib.waiting import PATIENCE_SECONDS

CHROMIUM = shutil.which("chromium")
_PATIENCE_MS = PATIENCE_SECONDS * 1000

# A page changes with a delay, so tests wait for everything, also on a busy machine.
expect.set_options(timeout=_PATIENCE_MS)


@contextmanager
def running_chromium() -> Iterator[Browser]:
    """Run the browser until the block ends."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-dev-shm-usage"],
            timeout=2 * _PATIENCE_MS,
        )
        yield browser
        browser.close()


@contextmanager
def opened_page(browser: Browser, url: str, errors: list[str]) -> Iterator[Page]:
    """Open a page until the block ends; the list gets the errors in its console."""

    def listen(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            errors.append(message.text)

    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(_PATIENCE_MS)
    page = context.new_page()
    page.on("console", listen)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(url, wait_until="domcontentloaded")
    yield page
    context.close()


def cut_tables(page: Page) -> list[str]:
    """Return the tables of which a part can be seen only after sideways scrolling."""
    found: list[str] = page.evaluate(
        "[...document.querySelectorAll('table')]"
        ".filter((one) => one.checkVisibility() && one.scrollWidth > one.parentElement.clientWidth)"
        ".map((one) => `${one.scrollWidth} > ${one.parentElement.clientWidth}: ${one.innerText}`)"
    )
    return found
