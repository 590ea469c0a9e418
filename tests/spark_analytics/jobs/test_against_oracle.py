"""Real orders through the pipeline and the official connector: every figure is the oracle's.

With the project's own source: tests/e2e/test_demo_with_spark.py.
"""

import json
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from millstream.testing import LocalBroker
from tests.lib.pipeline_processes import Program
from tests.lib.quick_spark import quick_spark
from tests.lib.waiting import until
from tests.spark_analytics.views_oracle import expected_answers

pytestmark = [pytest.mark.slow, pytest.mark.interop, pytest.mark.e2e, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[3]
DATA = Path(
    os.environ.get("MILLSTREAM_RETAIL_DATA", ROOT.parent / "shared" / "data" / "online-retail")
)
MONTH = DATA / "2011-02.csv.gz"
LIMIT = 60
WAIT_SECONDS = 240

if not MONTH.is_file():
    pytest.skip("MILLSTREAM_RETAIL_DATA names no folder with the files", allow_module_level=True)
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("no Java", allow_module_level=True)


class Analytics:
    """A registry, the job and the dashboard as processes over one broker."""

    def __init__(self, broker: LocalBroker, folder: Path) -> None:
        self._broker = broker
        self._folder = folder
        self._store = str(folder / "serving.sqlite")
        self.registry = self._start("schemas.registry")
        self._registry_url = self.registry.wait_ready()
        self.dashboard = self._start("spark_analytics.dashboard", "--store", self._store)
        self.url = self.dashboard.wait_ready()
        self.job: Program | None = None

    def _start(self, module: str, *arguments: str) -> Program:
        where = ("--bootstrap-servers", self._broker.bootstrap_servers)
        if module == "spark_analytics.dashboard":
            where = ()
        log_file = self._folder / f"{module}.log"
        return Program(log_file, module, *where, "--http-port", "0", *arguments)

    def start_job(self, *arguments: str) -> Program:
        where = ("--registry-url", self._registry_url, "--store", self._store)
        self.job = self._start("spark_analytics.jobs", *where, *arguments)
        return self.job

    def get(self, name: str) -> Any:
        try:
            with urllib.request.urlopen(f"{self.url}/api/{name}", timeout=60) as response:
                return json.loads(response.read())
        except urllib.error.HTTPError as error:
            error.close()
            return {}

    def joined(self) -> int:
        """Return of how many orders the join of the streams has every check."""
        latencies = self.get("snapshot").get("check_latency", [])
        return min((row["orders"] for row in latencies), default=0)

    def close(self) -> None:
        for program in (self.job, self.dashboard, self.registry):
            if program is not None:
                program.end(kill=True)


@pytest.fixture
def broker() -> Iterator[LocalBroker]:
    with LocalBroker() as broker:
        yield broker


@pytest.fixture
def analytics(
    broker: LocalBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Analytics]:
    for name, value in quick_spark().items():
        monkeypatch.setenv(name, value)
    analytics = Analytics(broker, tmp_path)
    yield analytics
    analytics.close()


def replay(broker: LocalBroker, folder: Path) -> None:
    """Send the orders; when this returns they are all in their final state."""
    environment = {
        "ONCE": "1",
        "LITE": "1",
        "ORDERS": str(MONTH),
        "LIMIT": str(LIMIT),
        "BOOTSTRAP": broker.bootstrap_servers,
        "PYTHONPATH": str(ROOT),
    }
    demo = subprocess.run(
        [sys.executable, "-P", "-m", "millstream", "demo"],
        env=os.environ | environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert demo.returncode == 0, demo.stdout + demo.stderr


def test_figures_are_the_oracles_through_the_official_connector(
    broker: LocalBroker, analytics: Analytics, tmp_path: Path, kafka_jars: list[str]
) -> None:
    if not kafka_jars:
        pytest.skip("the official connector's jars are not in build/spark-jars, nor is mvn here")
    jars = f"spark.jars={','.join(kafka_jars)}"
    # Each micro-batch costs a second of processor, whatever is in it.
    more = ("--trigger-ms", "2000", "--stateful-trigger-ms", "4000")
    job = analytics.start_job("--source-format", "kafka", "--spark-conf", jars, *more)
    expected = expected_answers(MONTH, LIMIT)
    replay(broker, tmp_path)

    until(lambda: analytics.get("summary") == expected["summary"], WAIT_SECONDS)
    assert {name: analytics.get(name) for name in expected} == expected
    until(lambda: analytics.joined() == expected["summary"]["orders"], WAIT_SECONDS)
    job.wait_ready()
    job.end()
    assert job.exit_status == 0
