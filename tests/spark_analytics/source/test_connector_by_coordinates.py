"""The official connector named by Maven coordinates, `spark.jars.packages`: no word of code."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from millrace.testing import LocalBroker
from tests.lib.java import QUICK_JAVA_OPTIONS
from tests.lib.spark import create_topic, produce

pytestmark = [pytest.mark.slow, pytest.mark.interop]

ROOT = Path(__file__).parents[3]
JOB = Path(__file__).with_name("count_rows.py")
JOB_SECONDS = 240
ROWS = 1000
# What is not in every repository that has the connector comes as jars.
AS_JARS = {
    "spark-token-provider-kafka": "org.apache.spark:spark-token-provider-kafka-0-10_2.13",
    "kafka-clients": "org.apache.kafka:kafka-clients",
}
NOT_RESOLVED = ("unresolved dependency", "download failed")


def test_a_session_takes_the_connector_by_coordinates(
    kafka_jars: list[str], tmp_path: Path
) -> None:
    if not kafka_jars:
        pytest.skip("the official connector's jars are not in build/spark-jars, nor is mvn here")
    jars = [jar for jar in kafka_jars if any(name in jar for name in AS_JARS)]
    settings = {
        "spark.master": "local[1]",
        "spark.jars.packages": "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
        "spark.jars.excludes": ",".join(AS_JARS.values()),
        "spark.jars": ",".join(jars),
        "spark.jars.ivy": str(tmp_path / "ivy"),
    }
    conf = ";".join(f"{name}={value}" for name, value in settings.items())
    with LocalBroker(num_partitions=3) as broker:
        create_topic(broker.bootstrap_servers, "rows", 3)
        produce(broker.bootstrap_servers, "rows", range(ROWS))
        ran = subprocess.run(
            [sys.executable, JOB, broker.bootstrap_servers, "rows"],
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "MILLRACE_SPARK_CONF": conf,
                "JAVA_TOOL_OPTIONS": QUICK_JAVA_OPTIONS,
            },
            capture_output=True,
            text=True,
            timeout=JOB_SECONDS,
            check=False,
        )
    if any(word in ran.stdout + ran.stderr for word in NOT_RESOLVED):
        pytest.skip("Maven's coordinates do not resolve here")
    assert ran.returncode == 0, ran.stderr[-5000:]
    assert json.loads(ran.stdout.splitlines()[-1]) == {"kafka": ROWS, "millrace": ROWS}
