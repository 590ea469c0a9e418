"""A standalone master with two executors on this machine: the sources run on them.

The official connector is named by Maven coordinates, `spark.jars.packages`: no word of code.
"""

import json
import os
import subprocess
import sys
import urllib.request
from itertools import islice
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from millstream.processes.cluster_layout import free_ports
from millstream.testing import LocalBroker
from spark_analytics.java import JavaNotFoundError
from spark_analytics.session import session_environment
from tests.lib.quick_spark import quick_spark
from tests.lib.spark import INTERPRETED, ROOT, create_topic, produce
from tests.lib.waiting import until

# Five JVMs, the driver too, on whatever the machine has left.
pytestmark = [pytest.mark.slow, pytest.mark.interop, pytest.mark.timeout(500)]
JOB = Path(__file__).parent / "count_by_partition.py"
READY_SECONDS = 150
JOB_SECONDS = 300
ROWS = 4000
# What is not in every repository that has the connector comes as jars.
AS_JARS = {
    "spark-token-provider-kafka": "org.apache.spark:spark-token-provider-kafka-0-10_2.13",
    "kafka-clients": "org.apache.kafka:kafka-clients",
}
NOT_RESOLVED = ("unresolved dependency", "download failed")


def state_of(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/", timeout=5) as answer:
            # Spark's server is there before all its pages are: until then the first answers for all
            # that are not, as a page for people.
            return json.load(answer) if answer.headers.get_content_subtype() == "json" else {}
    except OSError:
        return {}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def master(folder):
    """The master's URL, once its worker has joined it."""
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
    size = ["--cores", "2", "--memory", "1280m", "--webui-port", str(next(ports))]
    commands.append(["worker.Worker", *here, *size, "-d", str(folder / "worker"), url])
    processes = []
    log = (folder / "spark.log").open("w")
    try:
        for kind, *arguments in commands:
            command = [spark_class, f"org.apache.spark.deploy.{kind}", *arguments]
            processes.append(
                subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
            )
        until(
            lambda: state_of(page).get("aliveworkers") == 1,
            READY_SECONDS,
            shown=(folder / "spark.log").read_text,
        )
        yield url
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(60)
        log.close()


@pytest.fixture(scope="module")
def answer(master, folder, kafka_jars):
    """What the job said; it has counted by the official connector too, if that can be had."""
    with LocalBroker() as broker:
        create_topic(broker.bootstrap_servers, "rows", 4)
        produce(broker.bootstrap_servers, "rows", range(ROWS))
        where = [broker.bootstrap_servers, "rows", str(folder / "checkpoint")]
        settings = {
            "spark.master": master,
            "spark.executor.cores": "1",
            "spark.executor.memory": "512m",
            "spark.driver.memory": "512m",
            **INTERPRETED,
        }
        if kafka_jars:
            ran = run([*where, "kafka"], {**settings, **by_coordinates(kafka_jars, folder)}, folder)
        if not kafka_jars or any(word in ran.stdout + ran.stderr for word in NOT_RESOLVED):
            ran = run(where, settings, folder)
    assert ran.returncode == 0, ran.stderr[-5000:]
    return json.loads(ran.stdout.splitlines()[-1])


def by_coordinates(kafka_jars, folder):
    # Not in `spark.jars`: executors would be sent those alone, and not what the coordinates name.
    jars = ":".join(jar for jar in kafka_jars if any(name in jar for name in AS_JARS))
    return {
        "spark.jars.packages": "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
        "spark.jars.excludes": ",".join(AS_JARS.values()),
        "spark.driver.extraClassPath": jars,
        "spark.executor.extraClassPath": jars,
        "spark.jars.ivy": str(folder / "ivy"),
    }


def run(arguments, settings, folder):
    conf = ";".join(f"{name}={value}" for name, value in settings.items())
    environment = {**quick_spark(), "PYTHONPATH": str(ROOT), "MILLSTREAM_SPARK_CONF": conf}
    return subprocess.run(
        [sys.executable, JOB, *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=JOB_SECONDS,
        check=False,
    )


def test_executors_read_every_row_once(master, answer):
    assert answer["master"] == master
    assert answer["executors"] == 2
    assert answer["rows"] == answer["streamed"] == ROWS
    assert answer["sum"] == sum(range(ROWS))


def test_a_session_takes_the_connector_by_coordinates(kafka_jars, answer):
    if not kafka_jars:
        pytest.skip("the official connector's jars are not in build/spark-jars, nor is mvn here")
    if not answer["by_format"]:
        pytest.skip("Maven's coordinates do not resolve here")
    assert answer["by_format"] == {"kafka": ROWS}
