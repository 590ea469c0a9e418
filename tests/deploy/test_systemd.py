"""Several brokers on one machine, started by the command of the systemd unit."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from millstream.processes.cluster_layout import (
    free_ports,
    initial_controllers,
    node_settings,
    random_cluster_id,
)

UNITS = Path(__file__).parents[2] / "deploy" / "systemd"
BROKER = UNITS / "millstream-broker@.service"
NUMBERS = (1, 2, 3)
SECONDS = 120


def lines_of(key: str) -> list[str]:
    lines = (line.partition("=") for line in BROKER.read_text().splitlines())
    return [value for name, _, value in lines if name == key]


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """Return a folder in which /etc/millstream is; one broker of the machine is a controller."""
    ports = free_ports()
    controllers = {NUMBERS[0]: next(ports)}
    (tmp_path / "etc/millstream").mkdir(parents=True)
    etc = tmp_path / "etc/millstream"
    told = {
        "CLUSTER_ID": random_cluster_id(),
        "INITIAL_CONTROLLERS": initial_controllers(controllers),
    }
    (etc / "cluster.env").write_text("".join(f"{name}={value}\n" for name, value in told.items()))
    for number in NUMBERS:
        settings = node_settings(
            number,
            client_port=next(ports),
            controller_port=controllers.get(number),
            controllers=controllers,
        )
        del settings["node.id"]
        shared = ("controller.listener.names", "controller.quorum.bootstrap.servers")
        common = "".join(f"{name}={settings.pop(name)}\n" for name in shared)
        (etc / "server.properties").write_text(f"broker.rack=machine-a\n{common}")
        text = "".join(
            f"KAFKA_{name.upper().replace('.', '_')}={value}\n" for name, value in settings.items()
        )
        (etc / f"broker-{number}.env").write_text(text)
    return tmp_path


def in_machine(text: str, machine: Path, number: int) -> str:
    for folder in ("/etc/", "/var/lib/"):
        text = text.replace(folder, f"{machine}{folder}")
    return text.replace("%i", str(number))


def started(machine: Path, number: int) -> subprocess.Popen[str]:
    (command,) = lines_of("ExecStart")
    program, *arguments = shlex.split(in_machine(command, machine, number))
    assert program == "/opt/millstream/bin/millstream"
    environment = dict(os.environ)
    for file in lines_of("EnvironmentFile"):
        pairs = Path(in_machine(file, machine, number)).read_text().splitlines()
        environment |= dict(pair.split("=", 1) for pair in pairs)
    return subprocess.Popen(
        [sys.executable, "-m", "millstream", *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


@pytest.fixture
def brokers(machine: Path) -> Iterator[list[subprocess.Popen[str]]]:
    running = [started(machine, number) for number in NUMBERS]
    yield running
    for each in running:
        each.kill()
        each.communicate()


@pytest.mark.slow
@pytest.mark.timeout(SECONDS)
def test_the_brokers_of_a_machine_have_its_rack_and_end_with_status_0(
    machine: Path, brokers: list[subprocess.Popen[str]]
) -> None:
    addresses = []
    for each in brokers:
        assert each.stdout is not None
        line = next(line for line in each.stdout if " ready on " in line)
        addresses.append(line.partition(" ready on ")[2].split()[0])
    client = AdminClient({"bootstrap.servers": addresses[0]})
    nodes = client.describe_cluster().result(timeout=SECONDS).nodes
    assert {(node.id, node.rack) for node in nodes} == {(number, "machine-a") for number in NUMBERS}
    for number in NUMBERS:
        assert (machine / f"var/lib/millstream/broker-{number}/meta.properties").exists()
    assert lines_of("KillSignal") == ["SIGTERM"]
    for each in brokers:
        each.terminate()
    assert [each.wait(timeout=SECONDS) for each in brokers] == [0, 0, 0]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
def test_systemd_takes_the_units(tmp_path: Path) -> None:
    for file in UNITS.iterdir():
        text = file.read_text().replace("/opt/millstream/bin/millstream", sys.executable)
        (tmp_path / file.name.replace("@", "@1")).write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", str(tmp_path / "millstream-broker@1.service")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
