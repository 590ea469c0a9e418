"""The start of a node; a node that cannot start reports the reason and the remedy."""

import socket
import subprocess
from itertools import islice
from pathlib import Path

import confluent_kafka.admin
import pytest

from millstream.launch import program_command, program_environment
from millstream.processes.cluster_layout import free_ports
from millstream.testing import LocalBroker
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

CLUSTER, OTHER = "MkU3OEVBNTcwNTJENDM2Qk", "AAAAAAAAAAAAAAAAAAAAAA"
ENDS_SECONDS = 60


def program(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        program_command("broker", *arguments),
        env=program_environment() | variables,
        capture_output=True,
        text=True,
        timeout=ENDS_SECONDS,
        stdin=subprocess.DEVNULL,
    )


def refusal(folder: Path, *overrides: str, **variables: str) -> str:
    """Start a node that cannot start; gives the last line that it wrote."""
    settings = (f"log.dirs={folder}", *overrides)
    arguments = [part for setting in settings for part in ("--override", setting)]
    done = program("start", *arguments, **variables)
    assert done.returncode in {1, 2}, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()[-1]


@pytest.fixture
def ports() -> list[int]:
    return list(islice(free_ports(), 2))


@pytest.fixture
def formatted(tmp_path: Path, ports: list[int]) -> Path:
    properties = tmp_path / "server.properties"
    properties.write_text(
        f"process.roles=broker,controller\nnode.id=1\nlog.dirs={tmp_path}/data\n"
        f"listeners=PLAINTEXT://127.0.0.1:{ports[0]},CONTROLLER://127.0.0.1:{ports[1]}\n"
        f"controller.quorum.voters=1@127.0.0.1:{ports[1]}\n"
    )
    done = program("storage", "format", "--cluster-id", CLUSTER, "--config", str(properties))
    assert done.returncode == 0, done.stderr
    return properties


def test_a_controller_that_is_not_formatted_is_told_how(tmp_path: Path, ports: list[int]) -> None:
    said = refusal(
        tmp_path / "data",
        "process.roles=broker,controller",
        f"listeners=PLAINTEXT://127.0.0.1:{ports[0]},CONTROLLER://127.0.0.1:{ports[1]}",
        f"controller.quorum.bootstrap.servers=127.0.0.1:{ports[1]}",
    )
    assert "data is not formatted" in said
    assert "millstream storage format --standalone" in said


def test_another_clusters_id_is_told_with_both(formatted: Path) -> None:
    done = program("start", str(formatted), CLUSTER_ID=OTHER)
    assert done.returncode == 2
    said = done.stderr.splitlines()[-1]
    assert f"cluster.id={CLUSTER} and this node has {OTHER}: start it with the other" in said


def test_another_node_id_is_told_with_both(formatted: Path, ports: list[int]) -> None:
    voters = f"controller.quorum.voters=7@127.0.0.1:{ports[1]}"
    done = program("start", str(formatted), "--override", "node.id=7", "--override", voters)
    assert done.returncode == 2
    assert "node.id=1 and this node has 7: start it with the other" in done.stderr.splitlines()[-1]


def test_an_address_in_use_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = refusal(tmp_path, f"listeners=PLAINTEXT://127.0.0.1:{port}")
        assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in said
        said = refusal(
            tmp_path, "listeners=PLAINTEXT://127.0.0.1:0", f"http.listener=127.0.0.1:{port}"
        )
        assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in said


def test_the_start_line_tells_what_a_node_is_and_where() -> None:
    with LocalBroker() as broker:
        (line,) = [each for each in broker.log().splitlines() if " starting node_id=" in each]
        assert "node_id=1 roles=broker,controller cluster_id=" in line
        assert f"log_dirs={broker.data_folder}" in line
        assert f"listeners=PLAINTEXT://{broker.bootstrap_servers}" in line
        assert f"metrics={broker.http_url}/metrics" in line


def test_dynamic_settings_are_told_only_when_somebody_set_one() -> None:
    with LocalBroker() as broker:
        assert "dynamic settings applied" not in broker.log()
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        resource = confluent_kafka.admin.ConfigResource(
            confluent_kafka.admin.ConfigResource.Type.BROKER,
            "1",
            incremental_configs=[
                confluent_kafka.admin.ConfigEntry(
                    "max.connections",
                    "77",
                    incremental_operation=confluent_kafka.admin.AlterConfigOpType.SET,
                )
            ],
        )
        admin.incremental_alter_configs([resource])[resource].result(30)
        until(lambda: "dynamic settings applied: max.connections" in broker.log())
        broker.stop()
        broker.start()
        assert broker.log().count("dynamic settings applied: max.connections") == 2
