"""Apache Kafka itself, run from its jars, for the tests that hold ours against it."""

import os
import shutil
import signal
import socket
import subprocess
import time
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import NamedTuple

import pytest

from millstream.processes.cluster_layout import free_ports
from tests.lib.java import JAVA, is_archived, java, java_program, made_for, make_archive
from tests.lib.side_by_side import one_at_a_time

RESOLVE = JAVA / "resolve.sh"
RUN_TOOLS = JAVA / "RunTools.java"
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
START_SECONDS = 180
TOOLS = "org.apache.kafka.tools"
WARMING_UP = (
    ("TopicCommand", "--create --topic t --partitions 2", b""),
    ("TopicCommand", "--describe", b""),
    ("ConsoleProducer", "--topic t", b"a record\n"),
    ("consumer.ConsoleConsumer", "--topic t --from-beginning --max-messages 1 --group g", b""),
    ("consumer.group.ConsumerGroupCommand", "--describe --group g", b""),
    ("TransactionsCommand", "list", b""),
)
"""Tools that load what the others load too; what they read."""


def kafka_libs() -> str:
    """Give the folder of the jars; skips the test when there is no Java or no way to get them."""
    with one_at_a_time("kafka-libs"):
        found = subprocess.run([RESOLVE], capture_output=True, text=True, check=False)
        if found.returncode:
            pytest.skip(f"Apache Kafka is not available: {found.stderr.strip()}")
        libs = found.stdout.strip()
        if not is_archived(libs):
            _archive_classes(libs)
    return libs


def run_tool(libs: str, main_class: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run one of Kafka's command-line tools."""
    command = [*java(libs, "-Xmx512m"), main_class, *arguments]
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


def run_tools(libs: str, tools: Iterable[Tool], *options: str) -> list[ToolResult]:
    """Run several of Kafka's tools, one after the other in one JVM; `options` are Java's own."""
    lines = [
        "\t".join([one.main_class, *one.arguments, b64encode(one.standard_input).decode()])
        for one in tools
    ]
    done = subprocess.run(
        java_program(libs, RUN_TOOLS, "-Xmx256m", *options),
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
    libs: str,
    folder: Path,
    settings: Mapping[str, str] = MappingProxyType({}),
    *options: str,
    is_dynamic: bool = False,
) -> Iterator[str]:
    """Run one node until the block ends, then stop it cleanly; gives its bootstrap server.

    `settings` are more lines of its file, `options` Java's own. A second run in the same folder
    goes on with what the first has left there. With `is_dynamic` the folder is formatted with
    kraft.version 1, so that the voter is in the log.
    """
    port, controller_port = islice(free_ports(), 2)
    properties = folder / "server.properties"
    properties.write_text(
        _properties(folder, port, controller_port, is_dynamic=is_dynamic)
        + "".join(f"{name}={value}\n" for name, value in settings.items())
    )
    if not (folder / "data").exists():
        # Formatting is a program of its own, and what it writes is the same for all these nodes.
        shutil.copytree(formatted_folder(libs, is_dynamic=is_dynamic), folder / "data")
    command = [*java(libs, "-Xmx512m", *options), "kafka.Kafka", str(properties)]
    with (folder / "server.log").open("wb") as output:
        server = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        wait_for_port(port, server)
        yield f"127.0.0.1:{port}"
    finally:
        os.kill(server.pid, signal.SIGTERM)
        server.wait(60)


def _properties(folder: Path, port: int, controller_port: int, *, is_dynamic: bool = False) -> str:
    quorum = f"controller.quorum.voters=1@127.0.0.1:{controller_port}"
    if is_dynamic:
        quorum = f"controller.quorum.bootstrap.servers=127.0.0.1:{controller_port}"
    return f"""process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
{quorum}
log.dirs={folder}/data
offsets.topic.num.partitions=2
transaction.state.log.num.partitions=2
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=2
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
"""


def formatted_folder(libs: str, *, is_dynamic: bool = False) -> Path:
    """Give a folder that Kafka has formatted, which is done once."""
    formatted = made_for(libs) / ("formatted-standalone" if is_dynamic else "formatted")
    with one_at_a_time("kafka-formatted"):
        if not formatted.exists():
            formatted.parent.mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory(dir=formatted.parent) as part:
                properties = Path(part) / "server.properties"
                properties.write_text(_properties(Path(part), 9092, 9093, is_dynamic=is_dynamic))
                line = f"format -t {CLUSTER_ID} -c {properties}"
                line += " --standalone" if is_dynamic else ""
                done = run_tool(libs, "kafka.tools.StorageTool", *line.split())
                assert done.returncode == 0, done.stderr
                (Path(part) / "data").rename(formatted)
    return formatted


def _archive_classes(libs: str) -> None:
    """Have a node and tools list the classes that they load, and archive those."""
    with TemporaryDirectory() as name:
        lists = [Path(name) / "node.classes", Path(name) / "tools.classes"]
        of_node, of_tools = (f"-XX:DumpLoadedClassList={each}" for each in lists)
        with running_node(libs, Path(name), MappingProxyType({}), of_node) as bootstrap:
            tools = [
                Tool(f"{TOOLS}.{tool}", (f"--bootstrap-server={bootstrap}", *line.split()), read)
                for tool, line, read in WARMING_UP
            ]
            for tool, result in zip(tools, run_tools(libs, tools, of_tools), strict=True):
                assert result.status == 0, (tool, result)
        make_archive(libs, lists)


def wait_for_port(
    port: int, server: subprocess.Popen[bytes], seconds: float = START_SECONDS
) -> None:
    """Wait until a node takes connections."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert server.poll() is None, "Apache Kafka has stopped"
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise AssertionError("Apache Kafka does not start")
