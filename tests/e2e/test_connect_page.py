"""The page of Connect's workers in a real browser, on a cluster of two.

An error in the browser's console fails the test.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from millstream.testing import LocalBroker
from tests.lib.browser import CHROMIUM, cut_tables, opened_page, running_chromium
from tests.lib.connect_worker import ConnectWorker, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

if CHROMIUM is None:
    pytest.skip("no `chromium` on the PATH", allow_module_level=True)

SCREENSHOT = Path("build") / "connect.png"
FAILING = """
from millstream.connect import *

class FailingSource(SourceConnector):
    def task_class(self):
        return FailingTask

class FailingTask(SourceTask):
    def poll(self):
        raise ConnectException("the <b>source</b> is away")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("connect-page")
    (path / "plugins").mkdir()
    (path / "plugins" / "failing_plugins.py").write_text(FAILING)
    (path / "in").write_text("".join(f"line {number}\n" for number in range(1234)))
    return path


@pytest.fixture(scope="module")
def worker(folder: Path) -> Iterator[ConnectWorker]:
    """Give the first of two, which shows what both do."""
    with LocalBroker() as broker:
        told = {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "workers",
            "plugin.path": f"{folder}/plugins",
            "heartbeat.interval.ms": "500",
            "scheduled.rebalance.max.delay.ms": "500",
        }
        for kind in ("config", "offset", "status"):
            told[f"{kind}.storage.topic"] = f"connect-{kind}"
            told[f"{kind}.storage.replication.factor"] = "1"
        with (
            ConnectWorker(folder, told, name="first") as first,
            ConnectWorker(folder, told, name="second") as second,
        ):
            eventually(lambda: first.call("GET", "/health/ready").status == 200)
            eventually(lambda: second.call("GET", "/health/ready").status == 200)
            lines = {"file": f"{folder}/in", "topic": "lines"}
            put(first, "lines", {"connector.class": "FileStreamSource", **lines})
            copy = {"file": f"{folder}/out", "topics": "lines"}
            put(first, "copy", {"connector.class": "FileStreamSink", **copy})
            stays = {"errors.task.restart.max.delay.ms": "0"}
            put(first, "broken", {"connector.class": "FailingSource", **stays})
            both_run = {"connector": "RUNNING", "0": "RUNNING"}
            eventually(lambda: first.states("lines") == first.states("copy") == both_run)
            eventually(lambda: first.states("broken").get("0") == "FAILED")
            yield first


def put(worker: ConnectWorker, name: str, config: dict[str, str]) -> None:
    # While the second worker joins there may be no leader to write it.
    path = f"/connectors/{name}/config"
    eventually(lambda: worker.call("PUT", path, config).status in (200, 201))


@pytest.fixture(scope="module")
def browser(worker: ConnectWorker) -> Iterator[Browser]:
    """Not before the workers run: Playwright's own event loop runs from now on."""
    with running_chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser, worker: ConnectWorker) -> Iterator[Page]:
    errors: list[str] = []
    with opened_page(browser, f"http://{worker.worker_id}/", errors) as page:
        yield page
    assert errors == []


def card(page: Page, name: str) -> Locator:
    return page.locator(f"section[data-connector={name}]")


def cells(page: Page, name: str) -> list[str]:
    return card(page, name).locator("tbody td").all_inner_texts()


def test_connectors_tasks_figures_and_errors_of_all_workers_are_shown(
    page: Page, worker: ConnectWorker
) -> None:
    expect(page.get_by_test_id("summary")).to_have_text(
        f"3 connectors, 3 tasks, 1 failed. Worker {worker.worker_id} of the cluster workers."
    )
    expect(card(page, "copy").locator("tbody td").nth(3)).to_have_text("1,234")
    expect(card(page, "copy").locator("tbody td").nth(4)).to_have_text("0")
    expect(card(page, "lines").locator("tbody td").nth(3)).to_have_text("1,234")
    expect(card(page, "lines").locator("tbody td").nth(2)).to_have_text("0")
    assert len({cells(page, name)[-1] for name in ("lines", "copy", "broken")}) == 2
    expect(page.locator(".badge")).to_have_text("ready")

    expect(card(page, "broken").locator("tbody .state")).to_have_text("FAILED")
    error = card(page, "broken").locator("details")
    expect(error.locator("summary")).to_contain_text(
        re.compile(r"^Task 0 has failed at .*ConnectException: the <b>source</b> is away$")
    )
    expect(error.locator("pre")).to_be_hidden()
    error.locator("summary").click()
    expect(error.locator("pre")).to_contain_text("failing_plugins.py")
    # What is looked at stays open while figures change.
    with page.expect_response("**/page/state"):
        pass
    expect(error.locator("pre")).to_be_visible()
    SCREENSHOT.parent.mkdir(exist_ok=True)
    page.screenshot(path=SCREENSHOT, full_page=True)


def test_a_connector_is_paused_resumed_and_restarted(page: Page, worker: ConnectWorker) -> None:
    lines = card(page, "lines")
    expect(lines.get_by_role("button", name="Resume lines")).to_be_disabled()
    lines.get_by_role("button", name="Pause lines").click()
    expect(lines.locator("tbody .state")).to_have_text("PAUSED")
    expect(lines.get_by_role("button", name="Pause lines")).to_be_disabled()
    lines.get_by_role("button", name="Resume lines").click()
    expect(lines.locator("tbody .state")).to_have_text("RUNNING")
    with page.expect_response("**/restart?includeTasks=true") as asked:
        lines.get_by_role("button", name="Restart lines").click()
    assert asked.value.status == 202
    # The page may still show how it stood before: the worker itself is asked.
    both_run = {"connector": "RUNNING", "0": "RUNNING"}
    eventually(lambda: worker.states("lines") == both_run)
    expect(lines.locator("tbody .state")).to_have_text("RUNNING")


def test_everything_can_be_done_with_the_keyboard(page: Page) -> None:
    expect(card(page, "broken")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the connectors")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Pause broken")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Resume broken")).to_be_enabled()
    page.get_by_role("button", name="Resume broken").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Pause broken")).to_be_enabled()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_nothing_is_wider_than_the_screen(page: Page, scheme: str) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    expect(card(page, "broken").locator("summary")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert cut_tables(page) == []
    colours = page.evaluate("[getComputedStyle(document.body).backgroundColor]")
    assert colours == (["rgb(18, 22, 28)"] if scheme == "dark" else ["rgb(244, 246, 248)"])
    small = page.evaluate(
        "[...document.querySelectorAll('button, summary')]"
        ".filter((one) => one.getBoundingClientRect().height < 32).map((one) => one.outerHTML)"
    )
    assert small == []


def test_a_connector_comes_and_goes_before_ones_eyes(page: Page, worker: ConnectWorker) -> None:
    name = "a/<i>odd</i> name"
    body = {"name": name, "config": {"connector.class": "FileStreamSource", "topic": "odd"}}
    assert worker.call("POST", "/connectors", {**body, "initial_state": "STOPPED"}).status == 201
    odd = page.locator("section[data-connector]").filter(has_text=name)
    expect(odd.locator(".state").first).to_have_text("STOPPED")
    expect(odd.get_by_role("button", name="Restart")).to_be_disabled()
    odd.get_by_role("button", name="Resume").click()
    expect(odd.locator(".state").first).to_have_text("RUNNING")
    assert worker.call("DELETE", "/connectors/a%2F%3Ci%3Eodd%3C%2Fi%3E%20name").status == 204
    expect(odd).to_have_count(0)


def test_programs_are_answered_as_kafkas_worker_answers_them(worker: ConnectWorker) -> None:
    for accept in ("application/json", "*/*", ""):
        shown = worker.call("GET", "/", headers={"Accept": accept})
        assert set(shown.body) == {"version", "commit", "kafka_cluster_id"}
    page = worker.call("GET", "/", headers={"Accept": "text/html,*/*"})
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "script-src 'self'" in page.headers["Content-Security-Policy"]
    assert worker.call("GET", "/page/secrets").status == 404
    state = worker.call("GET", "/page/state").body
    assert {each["name"]: len(each["tasks"]) for each in state["connectors"]}["copy"] == 1
    assert "secret" not in json.dumps(state)
    metrics = worker.call("GET", "/metrics").body
    assert "kafka_connect_sink_task_record_lag" in metrics
