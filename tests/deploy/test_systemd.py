"""Two machines with several brokers each, started by the command of the systemd unit."""

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from millstream.processes.cluster_layout import (
    free_ports,
    initial_controllers,
    random_cluster_id,
    replication_settings,
)
from tests.lib.process_tree import processes_below
from tests.lib.waiting import until

UNIT = Path(__file__).parents[2] / "deploy" / "systemd" / "millstream.service"
SECONDS = 240
RECORDS = 100


def value_of(key: str) -> str:
    lines = (line.partition("=") for line in UNIT.read_text().splitlines())
    (value,) = [value for name, _, value in lines if name == key]
    return value


class Machine:
    """A folder for the machine's /etc and /var/lib, and the process of the unit."""

    def __init__(self, folder: Path, variables: dict[str, str], settings: dict[str, str]) -> None:
        self._folder = folder
        (folder / "etc/millstream").mkdir(parents=True)
        self._write("cluster.env", variables)
        self._write("server.properties", settings)
        command = value_of("ExecStart").replace("${BROKERS}", variables["BROKERS"])
        program, *arguments = shlex.split(self._here(command))
        assert program == "/opt/millstream/bin/millstream"
        pairs = Path(self._here(value_of("EnvironmentFile"))).read_text().splitlines()
        with (folder / "journal").open("w") as journal:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "millstream", *arguments],
                env=os.environ | dict(pair.split("=", 1) for pair in pairs),
                stdout=subprocess.PIPE,
                stderr=journal,
                text=True,
            )

    def _here(self, text: str) -> str:
        return text.replace("/etc/", f"{self._folder}/etc/").replace(
            "/var/lib/", f"{self._folder}/var/lib/"
        )

    def _write(self, name: str, content: dict[str, str]) -> None:
        text = "".join(f"{name}={value}\n" for name, value in content.items())
        (self._folder / "etc/millstream" / name).write_text(text)

    def addresses(self) -> str:
        """Wait until its brokers serve, and return where."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("millstream cluster ready on "), self.journal()
        return line.partition(" ready on ")[2].strip()

    def broker(self, node_id: int) -> int:
        """Return the process id of a broker."""
        override = f"--override=node.id={node_id}"
        found = processes_below(self.process.pid)
        (pid,) = [pid for pid, words in found.items() if override in words]
        return pid

    def journal(self) -> str:
        return (self._folder / "journal").read_text()

    def stop(self) -> None:
        """Stop it as systemd does."""
        assert value_of("KillSignal") == "SIGTERM"
        self.process.terminate()
        assert self.process.wait(timeout=SECONDS) == 0, self.journal()


@contextmanager
def running(folder: Path, variables: dict[str, str], settings: dict[str, str]) -> Iterator[Machine]:
    machine = Machine(folder, variables, settings)
    try:
        yield machine
    finally:
        machine.process.kill()  # Its brokers die with it.
        machine.process.communicate()


def replicas_of(client: AdminClient, topic: str) -> list[tuple[set[str], int]]:
    """Return the racks of each partition's replicas, and how many are in sync."""
    found = client.describe_topics(TopicCollection([topic]))[topic].result(timeout=SECONDS)
    return [({each.rack for each in one.replicas}, len(one.isr)) for one in found.partitions]


@pytest.mark.slow
@pytest.mark.timeout(SECONDS)
def test_the_brokers_of_two_machines_are_one_cluster(tmp_path: Path) -> None:
    port = next(free_ports())
    shared = {
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{port}",
        "http.listener": "127.0.0.1:0",
        **replication_settings(2),
    }
    variables = {
        "BROKERS": "2",
        "CLUSTER_ID": random_cluster_id(),
        "INITIAL_CONTROLLERS": initial_controllers({1: port}),
    }
    of_a = {
        "node.id": "1",
        "process.roles": "broker,controller",
        "listeners": f"PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:{port}",
    }
    of_b = {
        "node.id": "11",
        "process.roles": "broker",
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "broker.rack": "machine-b",
    }
    with ExitStack() as stack:
        b = stack.enter_context(running(tmp_path / "b", variables, shared | of_b))
        a = stack.enter_context(running(tmp_path / "a", variables, shared | of_a))
        servers = {"bootstrap.servers": f"{a.addresses()},{b.addresses()}"}
        client = AdminClient(servers)
        nodes = client.describe_cluster().result(timeout=SECONDS).nodes
        racks = {1: socket.gethostname(), 2: socket.gethostname(), 11: "machine-b", 12: "machine-b"}
        assert {node.id: node.rack for node in nodes} == racks
        (created,) = client.create_topics([NewTopic("orders", 4)]).values()
        created.result()

        def all_in_sync() -> bool:
            replicas = replicas_of(client, "orders")
            return replicas == [({socket.gethostname(), "machine-b"}, 2)] * 4

        until(all_in_sync, SECONDS / 2)
        producer = Producer({**servers, "acks": "all"})
        for number in range(RECORDS):
            producer.produce("orders", str(number), partition=number % 4)
        assert producer.flush(SECONDS) == 0

        os.kill(a.broker(2), signal.SIGKILL)
        ready = "broker-2 | millstream broker 2 ready on "
        until(lambda: a.journal().count(ready) == 2, SECONDS / 2)
        assert "broker-2 | ended with status -9, started again\n" in a.journal()
        until(all_in_sync, SECONDS / 2)
        consumer = Consumer({**servers, "group.id": "none"})
        consumer.assign([TopicPartition("orders", number, 0) for number in range(4)])
        found = [each.value() for each in consumer.consume(RECORDS, timeout=SECONDS)]
        consumer.close()
        assert {str(number).encode() for number in range(RECORDS)} == set(found)
        b.stop()
        a.stop()
        for machine in (a, b):
            assert machine.process.stdout is not None
            assert machine.process.stdout.read() == "", "one line is enough"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    text = UNIT.read_text().replace("/opt/millstream/bin/millstream", sys.executable)
    (tmp_path / UNIT.name).write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", str(tmp_path / UNIT.name)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
