"""The whole demo, Spark and dashboard included: every figure of the dashboard is the oracle's.

And every order ends once: paid or failed, with one mail and one document, whoever was killed.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.oracle import expect as expected_report
from tests.e2e.test_demo import DATA, environment, needs_data, untimed
from tests.lib.browser import CHROMIUM, opened_page, running_chromium
from tests.lib.process_tree import processes_below
from tests.lib.quick_spark import quick_spark
from tests.lib.waiting import until
from tests.spark_analytics.views_oracle import expected_answers

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(shutil.which("java") is None, reason="there is no Java here"),
    needs_data,
]
START_SECONDS = 240


SERVICES = ("orders", "inventory", "aggregator", "payments", "email", "search")


def signal_all(demo: subprocess.Popen[str], program: str, number: signal.Signals) -> None:
    """Send a signal to every process of the demo that runs this program."""
    pids = [
        pid
        for pid, words in processes_below(demo.pid).items()
        if Path(words[0]).name == program or program in words
    ]
    assert pids, program
    for pid in pids:
        os.kill(pid, number)


def dashboard_of(demo_folder: Path) -> str:
    """Return the dashboard's address, empty while it has none."""
    log = demo_folder / "build" / "demo" / "logs" / "dashboard.log"
    found = re.search(r" ready on (\S+)", log.read_text()) if log.exists() else None
    return found[1] if found else ""


@pytest.mark.skipif(CHROMIUM is None, reason="there is no `chromium` on the PATH")
def test_a_month_is_right_to_the_penny_though_brokers_services_and_spark_were_killed(
    tmp_path: Path,
) -> None:
    file = DATA / "2011-02.csv.gz"
    errors: list[str] = []
    with (
        running_chromium() as browser,
        (tmp_path / "output").open("w") as output,
        subprocess.Popen(
            [sys.executable, "-m", "millrace", "demo"],
            cwd=tmp_path,
            env=environment(LITE="0", ONCE="1", ORDERS=str(file), RATE="40", **quick_spark()),
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
        ) as demo,
    ):
        try:
            until(lambda: bool(dashboard_of(tmp_path)), START_SECONDS)
            with opened_page(browser, dashboard_of(tmp_path), errors) as page:
                break_it_and_watch(demo, page)
            assert demo.wait(START_SECONDS) == 0, (tmp_path / "output").read_text()
        finally:
            demo.terminate()
    built = tmp_path / "build" / "demo"
    assert untimed(json.loads((built / "report.json").read_text())) == expected_report(file)
    for name, expected in expected_answers(file).items():
        assert json.loads((built / f"{name}.json").read_text()) == expected, name
    assert errors == []
    # What clients say of brokers that are away is kept out of the demo's own words.
    assert "Unable" not in (tmp_path / "output").read_text()


def break_it_and_watch(demo: subprocess.Popen[str], page: Page) -> None:
    badge, orders = page.get_by_test_id("badge"), page.get_by_test_id("tile-orders")
    patience_ms = START_SECONDS * 1000  # Spark may have to start meanwhile

    def wait_for(state: str) -> None:
        expect(badge).to_have_attribute("data-state", state, timeout=patience_ms)

    wait_for("live")
    expect(orders).to_have_text(re.compile("[1-9]"), timeout=patience_ms)

    signal_all(demo, "broker", signal.SIGSTOP)
    wait_for("stale")
    signal_all(demo, "broker", signal.SIGKILL)
    wait_for("live")

    for service in SERVICES:
        signal_all(demo, f"services.{service}", signal.SIGKILL)

    shown = orders.text_content()
    assert shown is not None
    signal_all(demo, "java", signal.SIGKILL)
    wait_for("stale")
    wait_for("live")
    expect(orders).not_to_have_text(shown, timeout=patience_ms)
