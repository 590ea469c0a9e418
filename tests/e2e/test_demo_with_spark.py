"""The whole demo, Spark and dashboard included: every figure of the dashboard is the oracle's.

And every order ends once: paid or failed, with one mail and one document, whoever was killed.
"""

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from demo.pipeline.analytics import Analytics
from tests.e2e.oracle import expect as expected_report
from tests.e2e.test_demo import (
    DATA,
    environment,
    needs_data,
    run_demo,
    untimed,
    without_packages,
)
from tests.lib.browser import CHROMIUM, opened_page, running_chromium
from tests.lib.pipeline_processes import call
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
PATIENCE_MS = START_SECONDS * 1000  # Spark may have to start meanwhile.

SERVICES = ("orders", "inventory", "aggregator", "payments", "email", "search")


def signal_all(demo: subprocess.Popen[str], program: str, number: signal.Signals) -> None:
    """Send a signal to every process of the demo that runs this program."""
    below = processes_below(demo.pid)
    pids = [
        pid for pid, words in below.items() if Path(words[0]).name == program or program in words
    ]
    assert pids, (program, below)
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
    expected = expected_report(file)
    output = tmp_path / "output"
    built = tmp_path / "build" / "demo"
    errors: list[str] = []
    with (
        running_chromium() as browser,
        output.open("w") as written,
        subprocess.Popen(
            [sys.executable, "-m", "millstream", "demo"],
            cwd=tmp_path,
            env=environment(LITE="0", ORDERS=str(file), RATE="40", **quick_spark()),
            stdout=written,
            stderr=subprocess.STDOUT,
            text=True,
        ) as demo,
    ):
        try:
            until(lambda: bool(dashboard_of(tmp_path)), START_SECONDS, shown=output.read_text)
            with opened_page(browser, dashboard_of(tmp_path), errors) as page:
                break_it_and_watch(demo, page)
                # The month may be over long before, or go on: it does not end the demo.
                until(
                    lambda: "serving until" in output.read_text(),
                    START_SECONDS,
                    shown=output.read_text,
                )
                write_answers(dashboard_of(tmp_path), expected["accepted"], built)
                place_one_more(output.read_text())
                tile = page.get_by_test_id("tile-orders")
                expect(tile).to_have_text(f"{expected['accepted'] + 1:,}", timeout=PATIENCE_MS)
            demo.send_signal(signal.SIGINT)
            assert demo.wait(START_SECONDS) == 0, output.read_text()
        finally:
            demo.terminate()
    assert untimed(json.loads((built / "report.json").read_text())) == expected
    for name, answer in expected_answers(file).items():
        assert json.loads((built / f"{name}.json").read_text()) == answer, name
    assert errors == []
    # What clients say of brokers that are away is kept out of the demo's own words.
    assert "Unable" not in output.read_text()


def write_answers(dashboard_url: str, accepted: int, folder: Path) -> None:
    """Write what the dashboard says of the month, as the demo does when it is told to end."""

    analytics = Analytics({"dashboard": dashboard_url})
    with ThreadPoolExecutor() as pool:  # This thread has the browser's loop.
        pool.submit(asyncio.run, analytics.wait_until_caught_up(accepted, folder)).result()


def place_one_more(output: str) -> None:
    """Place an order with what was started again."""
    found = re.search(r"^orders +(http\S+)$", output, re.MULTILINE)
    assert found is not None, output
    line = {"product_id": "85123A", "quantity": 1, "unit_price": "2.55"}
    answer = call("POST", f"{found[1]}/v1/orders", {"customer_id": "17850", "lines": [line]})
    assert answer.status == 201, answer


def break_it_and_watch(demo: subprocess.Popen[str], page: Page) -> None:
    badge, orders = page.get_by_test_id("badge"), page.get_by_test_id("tile-orders")

    def wait_for(state: str) -> None:
        expect(badge).to_have_attribute("data-state", state, timeout=PATIENCE_MS)

    wait_for("live")
    expect(orders).to_have_text(re.compile("[1-9]"), timeout=PATIENCE_MS)

    signal_all(demo, "broker", signal.SIGSTOP)
    wait_for("stale")
    signal_all(demo, "broker", signal.SIGKILL)
    wait_for("live")

    for service in SERVICES:
        signal_all(demo, f"services.{service}", signal.SIGKILL)

    signal_all(demo, "java", signal.SIGKILL)
    wait_for("stale")
    wait_for("live")


def test_spark_and_the_dashboard_join_a_pipeline_when_they_have_been_installed(
    tmp_path: Path,
) -> None:
    told = without_packages(tmp_path, f"touch {tmp_path / 'come'}", COUNT="30")
    process, report = run_demo(tmp_path, **told)
    assert process.returncode == 0, process.stdout + process.stderr
    accepted = report["accepted"]
    said = [
        "all ready after",
        "the first order is",
        "POST to final state, p99",
        f"the dashboard shows all {accepted} orders",
    ]
    places = [process.stdout.find(text) for text in said]
    assert -1 not in places, process.stdout
    assert places == sorted(places), process.stdout
    summary = json.loads((tmp_path / "build" / "demo" / "summary.json").read_text())
    assert summary["orders"] == accepted
