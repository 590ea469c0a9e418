"""Apache Kafka itself, run from its jars, for the tests that hold ours against it."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import pytest

from millrace.cluster_layout import free_ports
from tests.lib.side_by_side import one_at_a_time

RESOLVE = Path(__file__).parents[1] / "interop" / "java" / "resolve.sh"
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
START_SECONDS = 60


def kafka_libs() -> str:
    """Give the folder of the jars; skips the test when there is no Java or no way to get them."""
    with one_at_a_time("kafka-libs"):
        found = subprocess.run([RESOLVE], capture_output=True, text=True, check=False)
    if found.returncode:
        pytest.skip(f"Apache Kafka is not available: {found.stderr.strip()}")
    return found.stdout.strip()


def run_tool(libs: str, main_class: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run one of Kafka's command-line tools."""
    command = ["java", "-Xmx512m", "-cp", f"{libs}/*", main_class, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@contextmanager
def running_node(libs: str, folder: Path) -> Iterator[str]:
    """Run one node until the block ends, then stop it cleanly; gives its bootstrap server.

    A second run in the same folder goes on with what the first has left there.
    """
    port, controller_port = islice(free_ports(), 2)
    properties = folder / "server.properties"
    properties.write_text(
        f"""process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.quorum.voters=1@127.0.0.1:{controller_port}
log.dirs={folder}/data
offsets.topic.num.partitions=2
transaction.state.log.num.partitions=2
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""
    )
    if not (folder / "data").exists():
        formatted = run_tool(
            libs, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(properties)
        )
        assert formatted.returncode == 0, formatted.stderr
    command = ["java", "-Xmx512m", "-cp", f"{libs}/*", "kafka.Kafka", str(properties)]
    with (folder / "server.log").open("wb") as output:
        server = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        _wait_for(port, server)
        yield f"127.0.0.1:{port}"
    finally:
        os.kill(server.pid, signal.SIGTERM)
        server.wait(60)


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        assert server.poll() is None, "Apache Kafka has stopped"
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise AssertionError("Apache Kafka does not start")
