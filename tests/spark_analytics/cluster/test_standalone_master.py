"""A standalone master and two workers on this machine: the source runs on executors."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from itertools import islice
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from millrace.cluster_layout import free_ports
from millrace.testing import LocalBroker
from spark_analytics.java import JavaNotFoundError
from spark_analytics.session import session_environment
from tests.lib.quick_spark import quick_spark
from tests.lib.spark import ROOT, create_topic, produce

# Five JVMs on whatever the machine has left.
pytestmark = [pytest.mark.slow, pytest.mark.interop, pytest.mark.timeout(500)]
JOB = Path(__file__).parent / "count_by_partition.py"
READY_SECONDS = 150
JOB_SECONDS = 300


def state_of(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/", timeout=5) as answer:
            return json.load(answer)
    except OSError:
        return {}


@pytest.fixture
def master(tmp_path):
    """The master's URL, once two workers have joined it."""
    try:
        variables = session_environment({"spark.master": "spark://127.0.0.1:1"}, os.environ)
    except JavaNotFoundError as error:
        pytest.skip(str(error))
    quick = quick_spark()
    environment = {**os.environ, **variables, **quick, "SPARK_DAEMON_MEMORY": "192m"}
    spark_class = Path(quick["SPARK_HOME"], "bin", "spark-class")
    ports = free_ports()
    port, page = islice(ports, 2)
    url = f"spark://127.0.0.1:{port}"
    here = ["--host", "127.0.0.1"]
    commands = [["master.Master", *here, "--port", str(port), "--webui-port", str(page)]]
    for number in range(2):
        folder = str(tmp_path / f"worker-{number}")
        size = ["--cores", "1", "--memory", "640m", "--webui-port", str(next(ports))]
        commands.append(["worker.Worker", *here, *size, "-d", folder, url])
    processes = []
    log = (tmp_path / "spark.log").open("w")
    try:
        for kind, *arguments in commands:
            command = [spark_class, f"org.apache.spark.deploy.{kind}", *arguments]
            processes.append(
                subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
            )
        deadline = time.monotonic() + READY_SECONDS
        while state_of(page).get("aliveworkers") != 2:
            assert time.monotonic() < deadline, (tmp_path / "spark.log").read_text()
            time.sleep(0.3)
        yield url
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(60)
        log.close()


def test_executors_read_every_row_once(master, tmp_path):
    with LocalBroker() as broker:
        create_topic(broker.bootstrap_servers, "rows", 4)
        produce(broker.bootstrap_servers, "rows", range(4000))
        ran = subprocess.run(
            [sys.executable, JOB, broker.bootstrap_servers, "rows", tmp_path / "checkpoint"],
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                **quick_spark(),
                "MILLRACE_SPARK_CONF": f"spark.master={master};spark.executor.cores=1"
                ";spark.executor.memory=512m;spark.driver.memory=512m",
            },
            capture_output=True,
            text=True,
            timeout=JOB_SECONDS,
            check=False,
        )
    assert ran.returncode == 0, ran.stderr[-5000:]
    answer = json.loads(ran.stdout.splitlines()[-1])
    assert answer["master"] == master
    assert answer["executors"] == 2
    assert answer["rows"] == answer["streamed"] == 4000
    assert answer["sum"] == sum(range(4000))
