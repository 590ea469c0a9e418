"""Apache Kafka itself, run from its jars, for the tests that hold ours against it."""

import os
import signal
import socket
import subprocess
import time
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest

from millrace.cluster_layout import free_ports
from tests.lib.side_by_side import one_at_a_time

JAVA = Path(__file__).parents[1] / "interop" / "java"
RESOLVE = JAVA / "resolve.sh"
RUN_TOOLS = JAVA / "RunTools.java"
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
START_SECONDS = 60
QUICK_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""No Java lives long enough in a test to earn back what its second compiler costs: without it a
Spark cluster of five takes two thirds of the processor time."""
QUICK_JAVA = ["java", *QUICK_JAVA_OPTIONS.split()]


def kafka_libs() -> str:
    """Give the folder of the jars; skips the test when there is no Java or no way to get them."""
    with one_at_a_time("kafka-libs"):
        found = subprocess.run([RESOLVE], capture_output=True, text=True, check=False)
    if found.returncode:
        pytest.skip(f"Apache Kafka is not available: {found.stderr.strip()}")
    return found.stdout.strip()


def run_tool(libs: str, main_class: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run one of Kafka's command-line tools."""
    command = [*QUICK_JAVA, "-Xmx512m", "-cp", f"{libs}/*", main_class, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


class Tool(NamedTuple):
    """One of Kafka's tools with its arguments, and what it reads from standard input."""

    main_class: str
    arguments: tuple[str, ...]
    standard_input: bytes = b""


class ToolResult(NamedTuple):
    """What a tool printed and how it ended."""

    status: int
    output: str
    errors: str


def run_tools(libs: str, tools: Iterable[Tool]) -> list[ToolResult]:
    """Run several of Kafka's tools, one after the other in one JVM."""
    lines = [
        "\t".join([one.main_class, *one.arguments, b64encode(one.standard_input).decode()])
        for one in tools
    ]
    java = [*QUICK_JAVA, "-Xmx256m", "-cp", f"{libs}/*"]
    done = subprocess.run(
        [*java, RUN_TOOLS],
        input="\n".join([*lines, ""]),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    results = []
    for line in done.stdout.splitlines():
        status, output, errors = line.split("\t")
        results.append(
            ToolResult(int(status), b64decode(output).decode(), b64decode(errors).decode())
        )
    return results


@contextmanager
def running_node(
    libs: str, folder: Path, settings: Mapping[str, str] = MappingProxyType({})
) -> Iterator[str]:
    """Run one node until the block ends, then stop it cleanly; gives its bootstrap server.

    `settings` are more lines of its file. A second run in the same folder goes on with what the
    first has left there.
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
        + "".join(f"{name}={value}\n" for name, value in settings.items())
    )
    if not (folder / "data").exists():
        formatted = run_tool(
            libs, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(properties)
        )
        assert formatted.returncode == 0, formatted.stderr
    command = [*QUICK_JAVA, "-Xmx512m", "-cp", f"{libs}/*", "kafka.Kafka", str(properties)]
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
