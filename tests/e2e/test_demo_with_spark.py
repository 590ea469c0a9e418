"""The whole demo, Spark and dashboard included: every figure of the dashboard is the oracle's."""

import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.e2e.test_demo import DATA, needs_data, run_demo
from tests.spark_analytics.views_oracle import expected_answers

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(find_spec("pyspark") is None, reason="PySpark is not installed"),
    pytest.mark.skipif(shutil.which("java") is None, reason="there is no Java here"),
]


@needs_data
def test_real_orders_reach_the_dashboard_to_the_penny(tmp_path: Path) -> None:
    file = DATA / "2011-02.csv.gz"
    process, _ = run_demo(tmp_path, LITE="0", ONCE="1", ORDERS=str(file))
    assert process.returncode == 0, process.stdout + process.stderr
    for name, expected in expected_answers(file).items():
        answer = json.loads((tmp_path / "build" / "demo" / f"{name}.json").read_text())
        assert answer == expected, name
    job_log = (tmp_path / "build" / "demo" / "logs" / "spark.log").read_text()
    assert "batch committed" in job_log
    assert "results are not published" not in job_log
