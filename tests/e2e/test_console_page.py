"""The console in a real browser, on a real broker with hostile names and values.

An error in the browser's console fails the test.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from confluent_kafka import Consumer, Producer
from playwright.sync_api import Browser, Page, expect

from millstream.testing import LocalBroker
from tests.lib.browser import CHROMIUM, opened_page, running_chromium
from tests.lib.canned_answers import canned_answers
from tests.lib.local_console import LocalConsole

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

if CHROMIUM is None:
    pytest.skip("no `chromium` on the PATH", allow_module_level=True)

SCREENSHOTS = Path("build") / "console"
HOSTILE = "<img src=x onerror=document.title='broken-in'>"
GROUP = f"group/1 {HOSTILE}"
EXACT = 9_007_199_254_740_993
PHONE = 360


@pytest.fixture(scope="module")
def broker() -> Iterator[LocalBroker]:
    with LocalBroker(num_partitions=3) as running:
        producer = Producer({"bootstrap.servers": running.bootstrap_servers})
        for index in range(200):
            producer.produce(
                "orders",
                key=f"{HOSTILE}{index}",
                value=json.dumps({"id": EXACT + index, "html": HOSTILE, "long": "x" * 300}),
                headers={HOSTILE: HOSTILE.encode()},
                timestamp=1_700_000_000_000 + 1000 * index,
            )
        producer.produce("orders", value=bytes(range(256)))
        producer.flush()
        consumer = Consumer(
            {
                "bootstrap.servers": running.bootstrap_servers,
                "group.id": GROUP,
                "client.id": HOSTILE,
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe(["orders"])
        assert consumer.consume(5, 30)
        consumer.commit(asynchronous=False)
        yield running
        consumer.close()


SCHEMA = {
    "type": "record",
    "name": "Order",
    "doc": HOSTILE,
    "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": "string", "doc": HOSTILE}],
}
SUBJECT = f"orders/{HOSTILE}"
VERSION = {"id": 1, "version": 1, "subject": SUBJECT, "schema": json.dumps(SCHEMA)}
REGISTRY = {
    "/subjects": [SUBJECT],
    f"/subjects/{SUBJECT}/versions": [1],
    f"/subjects/{SUBJECT}/versions/1": VERSION,
    f"/subjects/{SUBJECT}/versions/latest": VERSION,
    "/schemas/ids/1": {"schema": json.dumps(SCHEMA)},
}
CONNECTOR = {
    "info": {"config": {"name": HOSTILE, "topics": HOSTILE, "db.password": "do-not-show"}},
    "status": {
        "name": HOSTILE,
        "type": "sink",
        "connector": {"state": "FAILED", "worker_id": HOSTILE, "trace": HOSTILE},
        "tasks": [{"id": 0, "state": "FAILED", "worker_id": HOSTILE, "trace": HOSTILE}],
    },
}


@pytest.fixture(scope="module")
def console(broker: LocalBroker) -> Iterator[LocalConsole]:
    """Its registry and its Connect worker answer what a stranger might have named."""
    with (
        canned_answers(REGISTRY) as registry,
        canned_answers({"/connectors": {HOSTILE: CONNECTOR}}) as connect,
        LocalConsole(
            *(broker.bootstrap_servers, "--schema-registry", registry, "--connect", connect)
        ) as running,
    ):
        yield running


@pytest.fixture(scope="module")
def browser(console: LocalConsole) -> Iterator[Browser]:
    """Not before the programs run: Playwright's own event loop runs from now on."""
    with running_chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser, console: LocalConsole) -> Iterator[Page]:
    errors: list[str] = []
    with opened_page(browser, console.url, errors) as page:
        yield page
    assert errors == []


def show(page: Page, console: LocalConsole, path: str) -> None:
    page.goto(console.url + path, wait_until="domcontentloaded")
    expect(page.locator("#view > *").first).to_be_attached()
    expect(page.locator("#refusal")).to_have_text("")


GROUP_PATH = f"/groups/{quote(GROUP, safe='')}"
SUBJECT_PATH = f"/schemas/{quote(SUBJECT, safe='')}"
VIEWS = (
    ("topics", "/"),
    ("live", "/live"),
    ("live-followed", "/live?q=199&minutes=9000"),
    ("topic", "/topics/orders"),
    ("partitions", "/topics/orders/partitions"),
    ("settings", "/topics/orders/settings"),
    ("records", "/topics/orders/records"),
    ("search", "/topics/orders/records?mode=search&q=199"),
    ("watch", "/topics/orders/records?mode=tail"),
    ("record", "/topics/orders/records/0/1"),
    ("explained", "/topics/orders/explain?partition=0&offset=1"),
    ("write", "/topics/orders/write"),
    ("follow", "/follow?q=199&minutes=9000"),
    ("groups", "/groups"),
    ("explained-group", f"{GROUP_PATH}/explain"),
    ("group", GROUP_PATH),
    ("reset", f"{GROUP_PATH}/reset?to=earliest"),
    ("brokers", "/brokers"),
    ("broker", "/brokers/1"),
    ("quorum", "/quorum"),
    ("transactions", "/transactions"),
    ("explained-cluster", "/explain"),
    ("explained-transaction", "/transactions/none/explain"),
    ("explained-producer", "/producers/7/explain"),
    ("rules", "/acls/may"),
    ("users", "/users"),
    ("quotas", "/quotas"),
    ("metrics", "/client-metrics"),
    ("schemas", "/schemas"),
    ("schema", SUBJECT_PATH),
    ("connectors", "/connectors"),
)


@pytest.mark.parametrize(("name", "path"), VIEWS)
def test_a_view_shows_on_a_desktop_a_phone_and_in_the_dark(
    page: Page, console: LocalConsole, name: str, path: str
) -> None:
    show(page, console, path)
    is_title = path.startswith((GROUP_PATH, SUBJECT_PATH))
    assert "broken-in" not in page.title() or is_title
    assert page.locator("#view img").count() == 0
    expect(page.locator("body")).not_to_contain_text("[object")
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png")
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": PHONE, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE
    page.screenshot(path=SCREENSHOTS / f"{name}-phone-dark.png")


def test_records_keep_their_digits_and_a_page_goes_on(page: Page, console: LocalConsole) -> None:
    show(page, console, "/topics/orders/records")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(50)
    expect(rows.nth(1)).to_contain_text(str(EXACT + 199))
    expect(rows.nth(1)).to_contain_text(HOSTILE)
    page.get_by_role("button", name="More").click()
    expect(rows).to_have_count(100)
    rows.nth(1).get_by_role("link").click()
    expect(page.locator("pre").nth(1)).to_contain_text(f'"id": {EXACT + 199}')


def test_names_of_connectors_and_words_in_schemas_are_texts(
    page: Page, console: LocalConsole
) -> None:
    show(page, console, "/connectors")
    expect(page.get_by_role("heading", level=2).nth(1)).to_have_text(HOSTILE)
    expect(page.locator("#view")).not_to_contain_text("do-not-show")
    show(page, console, SUBJECT_PATH)
    expect(page.locator("pre.whole").first).to_contain_text(HOSTILE)
    assert page.locator("#view img").count() == 0


def test_a_record_is_written_from_the_skeleton_of_a_schema(
    page: Page, console: LocalConsole
) -> None:
    show(page, console, "/topics/orders/write")
    page.get_by_label("Subject of the value's schema").fill(SUBJECT)
    page.get_by_role("button", name="Fill the value in with the fields of its schema").click()
    value = page.get_by_label("Value", exact=True)
    expect(value).to_have_value(re.compile('"note": ""'))
    value.fill(f'{{"id": {EXACT}, "note": "by hand"}}')
    page.get_by_role("button", name="Write", exact=True).click()
    expect(page.locator("pre").nth(1)).to_contain_text(f'"id": {EXACT}')


def test_a_search_ends_and_says_what_it_read(page: Page, console: LocalConsole) -> None:
    show(page, console, "/topics/orders/records")
    page.get_by_label("Look for").fill(f"id >= {EXACT + 190}")
    page.get_by_label("How", exact=True).select_option("path")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("status").filter(has_text="Done")).to_contain_text("found 10")
    expect(page.locator("tbody tr")).to_have_count(10)


def test_what_arrives_is_seen(page: Page, console: LocalConsole, broker: LocalBroker) -> None:
    show(page, console, "/topics/orders/records?mode=tail&q=just+arrived")
    # Of a process of its own: librdkafka's threads and Playwright's loop do not meet here.
    program = (
        "import sys, time\nfrom confluent_kafka import Producer\n"
        "p = Producer({'bootstrap.servers': sys.argv[1]})\n"
        "for _ in range(50):\n    p.produce('orders', value='just arrived'); p.flush()\n"
        "    time.sleep(0.1)\n"
    )
    sender = subprocess.Popen([sys.executable, "-c", program, broker.bootstrap_servers])
    try:
        expect(page.locator("tbody tr").first).to_contain_text("just arrived")
    finally:
        sender.kill()
        sender.wait()


def test_a_topic_is_created_changed_and_deleted_by_keyboard(
    page: Page, console: LocalConsole
) -> None:
    show(page, console, "/topics")
    page.get_by_text("A new topic").click()
    page.get_by_label("Name", exact=True).fill("by-hand")
    page.get_by_label("Settings, one NAME=VALUE a line").fill("retention.ms=1000")
    page.get_by_label("Name", exact=True).press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("by-hand")
    page.get_by_role("link", name="Settings").click()
    expect(page.locator("tbody tr").first).to_contain_text("retention.ms")
    page.get_by_role("link", name="About").click()
    page.get_by_text("Delete this topic").click()
    page.get_by_label("Type the name").fill("by-hand")
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Topics")
    expect(page.locator("tbody")).not_to_contain_text("by-hand")
