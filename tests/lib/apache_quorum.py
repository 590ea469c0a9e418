"""A node of Apache Kafka in a dynamic quorum."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.lib.apache_kafka import run_tool
from tests.lib.dynamic_quorum import CLUSTER_ID, DynamicQuorum
from tests.lib.java import java


@contextmanager
def apache_node(libs: str, nodes: DynamicQuorum, node_id: int, *flags: str) -> Iterator[None]:
    """Format a configured folder with Apache Kafka's tool, and run Apache Kafka on it."""
    properties = str(nodes.home(node_id) / "server.properties")
    done = run_tool(
        *(libs, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", properties, *flags)
    )
    assert done.returncode == 0, done.stderr
    with (nodes.home(node_id) / "apache.log").open("wb") as output:
        command = [*java(libs, "-Xmx384m"), "kafka.Kafka", properties]
        server = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        yield
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
