"""`millstream demo` as its users run it: made-up orders, real orders, a broker of one's own."""

import csv
import gzip
import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from contextlib import closing
from datetime import datetime, timedelta
from itertools import takewhile
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from demo.pipeline.services import SERVICES
from millstream.testing import LocalBroker
from mirror.dedicated.whole_topic import whole_topic
from tests.e2e.oracle import expect
from tests.lib.local_console import ConsoleCalls, streamed
from tests.lib.pipeline_processes import call
from tests.lib.process_tree import processes_below
from tests.lib.running_program import running
from tests.lib.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(280)]

DEMO = [sys.executable, "-m", "millstream", "demo"]
ROOT = Path(__file__).parents[2]
DATA = Path(
    os.environ.get("MILLSTREAM_RETAIL_DATA", ROOT.parent / "shared" / "data" / "online-retail")
)
needs_data = pytest.mark.skipif(
    not DATA.is_dir(), reason="MILLSTREAM_RETAIL_DATA names no folder with the Online Retail files"
)
REAL_ORDERS = DATA / "2010-12.csv.gz"
HEADER = (
    "InvoiceNo",
    "StockCode",
    "Description",
    "Quantity",
    "InvoiceDate",
    "UnitPrice",
    "CustomerID",
    "Country",
)
TIMED = {"seconds", "orders_per_second", "latency_ms", "final_latency_ms"}
REPORTED = [
    "posted",
    "refused",
    "accepted",
    "states",
    "checks",
    "final_states",
    "payments",
    "mails",
    "documents",
    "revenue_validated",
    "seconds",
    "orders_per_second",
    "latency_ms",
    "final_latency_ms",
]
KNOWN = {
    "posted": 2000,
    "refused": 610,
    "accepted": 1390,
    "states": {"FAILED": 142, "VALIDATED": 1248},
    "checks": {
        "FRAUD": {"PASS": 1340, "FAIL": 50, "ERROR": 0},
        "INVENTORY": {"PASS": 1297, "FAIL": 93, "ERROR": 0},
        "ORDER_DETAILS": {"PASS": 1297, "FAIL": 93, "ERROR": 0},
    },
    "final_states": {"FAILED": 142, "PAID": 1248},
    "mails": 1390,
}


def environment(**more: str) -> dict[str, str]:
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, "LITE": "1", **more}


def run_demo(folder: Path, **options: str) -> tuple[subprocess.CompletedProcess[str], Any]:
    """Run the demo in a folder; return the process and the report."""
    process = subprocess.run(
        DEMO,
        cwd=folder,
        env=environment(**options),
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    report = folder / "build" / "demo" / "report.json"
    return process, json.loads(report.read_text()) if report.exists() else None


def untimed(report: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in report.items() if name not in TIMED}


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def write_invoices(path: Path, seed: int, count: int) -> None:
    """Write a file of the Online Retail shape with all that real data brings."""
    source = random.Random(seed)
    at = datetime.fromisoformat("2011-03-01 08:00:00")
    with gzip.open(path, "wt", encoding="utf-8", newline="") as text:
        writer = csv.writer(text)
        writer.writerow(HEADER)
        for number in range(count):
            at += timedelta(minutes=source.choice([0, 1, 20, 59]))
            customer = source.choice(["", *(f"{17000 + n}.0" for n in range(8))])
            for _ in range(source.randint(1, 6)):
                writer.writerow(
                    [
                        f"{source.choice(['', '', '', 'C'])}{540000 + number}",
                        source.choice(["POST", "M", *["85123A", "71053", "22423", "10002"] * 6]),
                        'HEART, "LARGE"',
                        source.choice([-1, 0, *range(1, 40)]),
                        at + timedelta(minutes=source.choice([0, 0, 1])),
                        source.choice(["0.0", "-1.5", *["2.55", "0.001", "12.75", "99.9"] * 6]),
                        customer,
                        source.choice(["United Kingdom", "France", ""]),
                    ]
                )


def test_second_run_on_the_same_kafka_starts_clean(tmp_path: Path) -> None:
    """Made-up orders first, then real ones if they are there: what each gives is the oracle's."""
    write_invoices(tmp_path / "invoices.csv.gz", seed=6, count=120)
    made_up = tmp_path / "invoices.csv.gz"
    real = REAL_ORDERS if REAL_ORDERS.is_file() else made_up
    with LocalBroker() as broker:
        for file in (made_up, real):
            process, report = run_demo(
                tmp_path,
                ONCE="1",
                ORDERS=str(file),
                LIMIT="100",
                BOOTSTRAP=broker.bootstrap_servers,
            )
            assert process.returncode == 0, process.stdout + process.stderr
            assert untimed(report) == expect(file, 100)
        assert "deleted, to start clean: " in process.stdout


def broker_pid(demo_pid: int, node_id: int) -> int | None:
    """Find the process of a broker among the demo's children."""
    below = processes_below(demo_pid)
    return next((pid for pid, words in below.items() if f"node.id={node_id}" in words), None)


def program_pid(demo_pid: int, name: str) -> int:
    """Find the process of a service or of the registry among the demo's children."""
    modules = {f"services.{name}", f"schemas.{name}"}
    below = processes_below(demo_pid)
    return next(pid for pid, words in below.items() if modules & set(words))


def assert_opens_as_a_page(url: str) -> None:
    """Ask as a browser does; what is for programs (the OpenAPI document) is JSON for them too."""
    request = urllib.request.Request(url, headers={"Accept": "text/html"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        kind, body = answer.headers["Content-Type"], answer.read().decode()
    assert answer.status == 200
    if url.endswith(".json"):
        assert json.loads(body)["openapi"]
    else:
        assert kind.startswith("text/html"), (url, kind)
        assert "<h1" in body, url


def kill_some(process: subprocess.Popen[str]) -> None:
    """End services and brokers, which are started again."""
    for service in ("fraud", "payments", "registry"):
        os.kill(program_pid(process.pid, service), signal.SIGKILL)
    for node_id, ending in ((2, signal.SIGKILL), (3, signal.SIGTERM)):
        found = broker_pid(process.pid, node_id)
        assert found is not None
        os.kill(found, ending)
        until(
            lambda: (
                process.poll() is not None or broker_pid(process.pid, node_id) not in (None, found)  # noqa: B023
            ),
            60,
        )


def follow_an_order_while_a_broker_is_down(urls: dict[str, str]) -> None:
    """Kill a broker by its switch in the console, and follow an order to its mail and the index."""
    console = ConsoleCalls(urls["console"])
    switch = "/api/stack/parts/broker-2"

    def turn(action: str, state: str) -> None:
        assert console.change("POST", f"{switch}/{action}", {}).status == 202
        until(lambda: console.get("/api/stack").body["parts"]["broker-2"]["state"] == state, 60)

    turn("kill", "stopped")
    line = {"product_id": "item-001", "quantity": 1, "unit_price": "2.55"}
    order = {"customer_id": "customer-0001", "lines": [line]}
    placed = call("POST", f"{urls['orders']}/v1/orders", order)
    topics, readers = set(), set()
    with closing(streamed(console.url, f"/api/follow?q={placed.body['id']}")) as events:
        for name, told in events:
            if name == "row":
                topics.add(told["topic"])
            elif name == "read" and told["topic"] == "orders":
                readers.add(told["group"])
            if "order-confirmations" in topics and {"email", "search"} <= readers:
                break
    turn("start", "ready")


def have_a_schema_judged(registry: str) -> None:
    """Register a schema that nobody has registered: the registry starts a process that judges it.

    The process ends when it has been idle for a while, and so may not be there without this.
    """
    answer = call("POST", f"{registry}/subjects/unused-value/versions", {"schema": '"bytes"'})
    assert answer.status == 200, answer


def assert_is_whole(report: dict[str, Any], count: int) -> None:
    assert list(report) == REPORTED
    assert report["posted"] == count
    assert report["refused"] + report["accepted"] == count
    assert sum(report["states"].values()) == report["accepted"]
    assert list(report["latency_ms"]) == ["p50", "p99", "max"]
    assert report["mails"] == report["documents"] == report["accepted"]
    assert sum(report["final_states"].values()) == report["accepted"]


def test_orders_come_out_right_though_much_is_killed_and_an_interrupted_demo_leaves_no_child(
    tmp_path: Path,
) -> None:
    with running(DEMO, cwd=tmp_path, env=environment(COUNT="150", RATE="25")) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("all ready"):
                break
        kill_some(process)
        shown = "".join(takewhile(lambda line: "serving until" not in line, process.stdout))
        assert process.poll() is None, shown
        urls = dict(re.findall(r"^([\w-]+) +(http://\S+)$", shown, re.MULTILINE))
        assert call("GET", urls["orders"] + "/health/ready").status == 200
        assert set(urls) >= {"broker-1", "orders", "registry", "payments", "search", "openapi"}
        for url in urls.values():
            assert_opens_as_a_page(url)
        more = re.search(r"^more orders: (.+)$", shown, re.MULTILINE)
        assert more is not None, shown
        # As it is printed, where it is printed.
        command = [*shlex.split(more[1]), "--rate", "5", "--seconds", "1"]
        subprocess.run(command, cwd=tmp_path, env=environment(), check=True, timeout=60)
        have_a_schema_judged(urls["registry"])
        follow_an_order_while_a_broker_is_down(urls)
        pids = list(processes_below(process.pid))
        # Three brokers, the registry and its process that judges schemas, the console, and the two
        # processes that all but the judge were forked from.
        assert len(pids) == 8 + len(SERVICES), processes_below(process.pid)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        assert not any(is_alive(pid) for pid in pids)
    assert_is_whole(json.loads((tmp_path / "build" / "demo" / "report.json").read_text()), 150)
    assert "WRONG" not in shown
    assert "POST to verdict, p99" in shown
    assert "POST to final state, p99" in shown
    assert "because of" in shown
    assert not list((tmp_path / "build" / "demo").glob("data-*"))


def test_a_second_cluster_has_what_the_pipeline_wrote_and_no_child_outlives_a_killed_demo(
    tmp_path: Path,
) -> None:
    told = environment(MIRROR="1", COUNT="40", RATE="0")
    with running(DEMO, cwd=tmp_path, env=told) as process:
        assert process.stdout is not None
        shown = "".join(takewhile(lambda line: "serving until" not in line, process.stdout))
        assert "Mirror" in shown, shown
        urls = dict(re.findall(r"^(\w+) +(\S+)$", shown, re.MULTILINE))
        asked = Request(urls["mirror"] + "/", headers={"Accept": "text/html"})
        with urlopen(asked, timeout=20) as answer:
            page = answer.read().decode()
        assert re.search(r"shop-&gt;standby</dt><dd>\d+ topics, replication-offset-lag", page)
        (second,) = re.findall(r"second cluster\D+([\d.]+:\d+)", shown)
        source = values_of(urls["kafka"], "orders")
        assert source
        assert values_of(second, "shop.orders") == source
        have_a_schema_judged(urls["registry"])
        pids = list(processes_below(process.pid))
        # The one broker of the second cluster and the mirror besides.
        assert len(pids) == 10 + len(SERVICES), processes_below(process.pid)
    until(lambda: not any(is_alive(pid) for pid in pids))
    report = json.loads((tmp_path / "build" / "demo" / "report.json").read_text())["mirror"]
    assert report["topics"] >= 10
    assert report["offsets"] > len(source)
    assert "replication-offset-lag after the last order" in shown


def values_of(servers: str, topic: str) -> list[list[bytes | None]]:
    """Read what is committed of a topic, by partition."""
    found: dict[int, list[bytes | None]] = {}
    for message in whole_topic({"bootstrap.servers": servers, "group.id": "x"}, topic):
        found.setdefault(message.partition(), []).append(message.value())
    return [values for _, values in sorted(found.items())]


def without_packages(folder: Path, install_command: str, **more: str) -> dict[str, str]:
    """Return the environment of a demo that finds no Faust before the file `come` is there."""
    hidden = folder / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(f"""
import importlib.util, os
find = importlib.util.find_spec
def find_spec(name, package=None):
    hides = name == "faust" and not os.path.exists({str(folder / "come")!r})
    return None if hides else find(name, package)
importlib.util.find_spec = find_spec
""")
    told = environment(LITE="", INSTALL_COMMAND=install_command, ONCE="1", **more)
    return {**told, "PYTHONPATH": os.pathsep.join([str(hidden), told["PYTHONPATH"]])}


def test_the_pipeline_goes_on_if_spark_cannot_be_installed(tmp_path: Path) -> None:
    command = shlex.join(["bash", "-c", "echo 'ERROR: No route to host'; exit 1"])
    told = without_packages(tmp_path, command, COUNT="20", JAVA_HOME="/somewhere")
    process, report = run_demo(tmp_path, **told)
    assert process.returncode == 0, process.stdout + process.stderr
    assert "cannot be installed: No route to host" in process.stdout
    assert "the first order is " in process.stdout
    assert_is_whole(report, 20)


def test_orders_that_cannot_be_read_end_the_demo_with_a_word(tmp_path: Path) -> None:
    (tmp_path / "wrong.csv").write_text("a,b\n1,2\n")
    process, _ = run_demo(tmp_path, ONCE="1", ORDERS="wrong.csv")
    assert process.returncode == 1
    assert "columns missing" in process.stderr
    assert "Traceback" not in process.stderr
    process, _ = run_demo(tmp_path, ONCE="1", ORDERS="missing.csv")
    assert process.returncode == 2
    assert "missing.csv does not exist" in process.stderr


@needs_data
def test_the_oracle_knows_what_becomes_of_the_first_two_thousand_real_orders() -> None:
    """That the demo gives what the oracle says is shown above, and for a month with Spark."""
    expected = expect(REAL_ORDERS, 2000)
    assert {name: expected[name] for name in KNOWN} == KNOWN
