"""The orders page in a real browser, and what is behind it, on real services.

An error in the browser's console fails the test.
"""

import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from millstream.testing import LocalBroker
from tests.lib.browser import CHROMIUM, opened_page, running_chromium
from tests.lib.pipeline_processes import JUDGES, SERVICES, Pipeline
from tests.lib.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

if CHROMIUM is None:
    pytest.skip("no `chromium` on the PATH", allow_module_level=True)

SCREENSHOT = Path("build") / "orders.png"
STOCK = {"item-001": 1_000_000, "item-002": 1_000_000, "sold-out": 0}


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    folder = tmp_path_factory.mktemp("orders-page")
    with (
        pytest.MonkeyPatch.context() as patch,
        LocalBroker() as broker,
        Pipeline(broker.bootstrap_servers, folder) as running,
    ):
        patch.setenv("OTEL_TRACES_EXPORTER", "console")
        running.start("email", arguments=("--mailbox", str(folder / "mailbox")))
        running.start("search", arguments=("--index", str(folder / "orders.sqlite")))
        running.start("payments", *(name for name in JUDGES if name != "orders"))
        running.start("orders", arguments=("--search-url", running.urls["search"]))
        running.put_stock(STOCK)
        yield running


@pytest.fixture(scope="module")
def browser(pipeline: Pipeline) -> Iterator[Browser]:
    """Not before the pipeline has its stock: Playwright's own event loop runs from now on."""
    with running_chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser, pipeline: Pipeline) -> Iterator[Page]:
    errors: list[str] = []
    with opened_page(browser, pipeline.urls["orders"], errors) as page:
        yield page
    # Chromium writes down every refusal; the page shows it.
    assert [error for error in errors if "status of 422" not in error] == []


def place(page: Page, customer: str, product: str = "item-001", quantity: str = "2") -> None:
    page.get_by_label("Customer", exact=True).first.fill(customer)
    page.get_by_label("Product, line 1").fill(product)
    page.get_by_label("Quantity, line 1").fill(quantity)
    page.get_by_role("button", name="Place the order").click()


def history(page: Page) -> Locator:
    return page.get_by_test_id("history").locator("tbody tr")


def test_an_order_is_placed_checked_paid_and_shipped_before_ones_eyes(page: Page) -> None:
    place(page, "customer-ships")
    expect(page.get_by_test_id("state")).to_have_text("PAID")
    texts = [re.sub(r"\s+", " ", text) for text in history(page).all_inner_texts()]
    assert [text.split()[-1] for text in texts] == [
        "CREATED",
        "PASS",
        "PASS",
        "PASS",
        "VALIDATED",
        "PAID",
    ]
    assert {"fraud", "inventory"} <= set(" ".join(texts[1:4]).split())
    SCREENSHOT.parent.mkdir(exist_ok=True)
    page.screenshot(path=SCREENSHOT, full_page=True)
    page.get_by_role("button", name="Ship it").click()
    expect(page.get_by_test_id("state")).to_have_text("SHIPPED")
    expect(page.get_by_role("button", name="Ship it")).to_be_disabled()
    expect(page.get_by_role("button", name="Cancel it")).to_be_disabled()
    expect(page.locator("#steps li[data-reached]")).to_have_text(
        ["CREATED", "VALIDATED", "PAID", "SHIPPED"]
    )


def test_an_order_that_fails_says_why_and_who_said_so(page: Page) -> None:
    place(page, "customer-fails", product="sold-out")
    expect(page.get_by_test_id("state")).to_have_text("FAILED")
    row = history(page).filter(has_text="inventory")
    expect(row).to_contain_text("FAIL")
    expect(page.locator("#steps li[data-bad]")).to_have_text("FAILED")


def test_wrong_fields_are_named_and_nothing_is_placed(page: Page) -> None:
    place(page, "", quantity="none")
    errors = page.locator("#place-errors li")
    expect(errors.filter(has_text="customer id")).to_have_count(1)
    expect(errors.filter(has_text="line 1, quantity")).to_have_count(1)
    expect(page.locator("#order")).to_be_hidden()


def test_an_order_is_found_and_opened_from_the_search(page: Page) -> None:
    place(page, "customer-sought")
    expect(page.get_by_test_id("state")).to_have_text("PAID")
    order_id = page.locator("#order-id").inner_text()
    page.goto(page.url.partition("#")[0])
    find = page.get_by_role("search")
    find.get_by_label("Customer").fill("customer-sought")

    def is_found() -> bool:
        with page.expect_response("**/v1/orders?*"):
            find.get_by_role("button", name="Find").click()
        return page.get_by_test_id("found").locator("tbody tr").count() == 1

    until(is_found)  # The index is a moment behind.
    expect(page.get_by_test_id("found-note")).to_have_text("One order.")
    page.get_by_role("link", name=order_id).click()
    expect(page.get_by_test_id("state")).to_have_text("PAID")


def test_an_unknown_order_is_said_to_be_none(browser: Browser, pipeline: Pipeline) -> None:
    errors: list[str] = []
    with opened_page(browser, pipeline.urls["orders"] + "/#no-such-order", errors) as page:
        expect(page.locator("#order-error")).to_have_text("there is no order no-such-order")
    assert all("404" in error for error in errors), errors


def test_everything_can_be_done_with_the_keyboard(page: Page) -> None:
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the orders")).to_be_focused()
    page.get_by_label("Customer", exact=True).first.focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("customer-keys")
    page.keyboard.press("Enter")
    expect(page.locator("#order-title")).to_be_focused()
    expect(page.get_by_test_id("state")).to_have_text("PAID")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Cancel it")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("state")).to_have_text("CANCELLED")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_nothing_is_wider_than_the_screen(page: Page, scheme: str) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    place(page, f"customer-phone-{scheme}")
    expect(page.get_by_test_id("state")).to_have_text("PAID")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    colours = page.evaluate("[getComputedStyle(document.body).backgroundColor]")
    assert colours == (["rgb(18, 22, 28)"] if scheme == "dark" else ["rgb(244, 246, 248)"])
    small = page.evaluate(
        "[...document.querySelectorAll('button:not([hidden]), input, select')]"
        ".filter((one) => one.offsetParent && one.getBoundingClientRect().height < 32)"
        ".map((one) => one.outerHTML)"
    )
    assert small == []


def test_an_order_is_streamed_whoever_holds_it(pipeline: Pipeline) -> None:
    """A second instance takes half of the partitions; each passes on what the other holds."""
    pipeline.start("orders-2")
    body = {
        "customer_id": "customer-streams",
        "lines": [{"product_id": "item-002", "quantity": 1, "unit_price": "1.50"}],
    }
    for number in range(6):
        asked = urllib.request.Request(
            pipeline.urls["orders"] + "/v1/orders",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json", "Idempotency-Key": f"streamed-{number}"},
        )
        with urllib.request.urlopen(asked, timeout=60) as answer:
            order_id = json.load(answer)["id"]
        for instance in ("orders", "orders-2"):
            url = f"{pipeline.urls[instance]}/v1/orders/{order_id}/stream?timeout=5000"
            with urllib.request.urlopen(url, timeout=60) as stream:
                assert stream.headers["Content-Type"].startswith("text/event-stream")
                for line in stream:
                    if line.startswith(b"data: ") and b'"VALIDATED"' in line:
                        break


def spans_of(pipeline: Pipeline, trace_id: str) -> dict[str, dict[str, Any]]:
    """Return the spans of a trace, by id, as the services have told them."""
    spans = [
        json.loads(line.removeprefix("span "))
        for name in SERVICES
        for line in pipeline.log(name).splitlines(keepends=True)
        if line.startswith("span ") and line.endswith("\n") and trace_id in line
    ]
    return {span["context"]["span_id"]: span for span in spans}


def named(span: dict[str, Any]) -> str:
    """Name a span by its service, too."""
    name = str(span["name"])
    return (
        name
        if name == "orders POST"
        else f"{span['resource']['attributes']['service.name']} {name}"
    )


def test_an_order_is_one_trace_from_the_post_to_payment_mail_and_index(pipeline: Pipeline) -> None:
    posted = pipeline.post(
        {
            "customer_id": "customer-traced",
            "lines": [{"product_id": "item-002", "quantity": 1, "unit_price": "1.50"}],
        }
    )
    trace_id = posted.body["correlation_id"]
    wanted = {
        "orders POST",
        "fraud send order-validations",
        "inventory send order-validations",
        "order-details send order-validations",
        "aggregator send order-decisions",
        "orders send orders",
        "payments send payments",
        "email send order-confirmations",
        "search process orders",
    }
    until(lambda: wanted <= set(map(named, spans_of(pipeline, trace_id).values())))
    spans = spans_of(pipeline, trace_id)
    roots = [span["name"] for span in spans.values() if span["parent_id"] is None]
    assert roots == ["orders POST"]
    for span in spans.values():
        assert span["parent_id"] is None or span["parent_id"] in spans, span


def test_the_openapi_document_is_kept_whatever_is_asked(pipeline: Pipeline, tmp_path: Path) -> None:
    """Schemathesis: every field at, below and beyond its bounds; orders made up at random."""
    program = Path(sys.executable).with_name("schemathesis")
    document = pipeline.urls["orders"] + "/openapi.json"
    common = ("--seed", "1", "--max-examples", "20", "--generation-database", "none")
    # Not every text is a name: which are not, 422 says and no schema can. So what the document
    # allows may be refused; what it does not allow never is taken.
    checks = ("--exclude-checks", "positive_data_acceptance")
    # A stream has no end to wait for.
    all_paths = ("--phases", "examples,coverage", "--exclude-path", "/v1/orders/{order_id}/stream")
    posts = ("--phases", "fuzzing", "--include-path", "/v1/orders")
    for what in (all_paths, posts):
        run = subprocess.run(
            [program, "run", document, *common, *checks, *what],
            cwd=tmp_path,  # It leaves a folder.
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert run.returncode == 0, run.stdout[-8000:] + run.stderr


def test_programs_are_not_shown_the_page(pipeline: Pipeline) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(pipeline.urls["orders"] + "/", timeout=60)
    with refused.value as answer:
        assert answer.code == 404
        assert json.load(answer)["detail"].endswith("/openapi.json")
