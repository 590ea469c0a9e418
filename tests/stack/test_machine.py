"""What the brokers of a machine have for themselves, and what is refused before one is started."""

from pathlib import Path

import pytest

from broker.config.broker_config import BrokerConfig
from broker.log.meta_properties import InconsistentLogDirectory
from common.kafka.errors import KafkaError
from millstream.cli.commands import main
from millstream.processes.cluster_layout import free_ports
from stack.cluster_start import brokers_of, parser
from stack.machine import QUORUM, bound_endpoints, configs_of_brokers, whole_cluster

DATA = Path("/data")
GIVEN = {
    "node.id": "4",
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "listeners": "PLAINTEXT://:9092,SSL://[::1]:9192,CONTROLLER://machine-b:9393",
    "advertised.listeners": "PLAINTEXT://b.example:19092,CONTROLLER://machine-b:9393",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "http.listener": "127.0.0.1:9644",
    QUORUM: "machine-a:9393,machine-b:9393",
}


def configs(count: int = 3, **changes: str) -> list[BrokerConfig]:
    settings = {**GIVEN, **{name.replace("_", "."): value for name, value in changes.items()}}
    return configs_of_brokers(settings, count, DATA, "machine-b")


def refusal(count: int = 3, **changes: str) -> str:
    with pytest.raises(KafkaError) as refused:
        configs(count, **changes)
    return refused.value.message


def ports(config: BrokerConfig) -> list[int]:
    return [each.port for each in bound_endpoints(config)]


def test_the_nth_broker_has_the_next_id_ports_and_folder() -> None:
    found = configs(log_dirs="")  # A variable can be emptied, but not taken back.
    assert [each.node_id for each in found] == [4, 5, 6]
    assert [each.log_dirs for each in found] == [(f"/data/broker-{each}",) for each in (4, 5, 6)]
    assert [ports(each) for each in found] == [
        [9092, 9192, 9393, 9644], [9093, 9193, 9645], [9094, 9194, 9646],
    ]  # fmt: skip
    advertised = [[(at.host, at.port) for at in each.advertised_listeners] for each in found]
    assert advertised[2] == [("b.example", 19094), ("::1", 9194)]


def test_only_the_first_is_a_controller() -> None:
    assert [each.is_controller for each in configs()] == [True, False, False]
    no_controller = {"process_roles": "broker", "listeners": "PLAINTEXT://machine-b:9092"}
    found = configs(**no_controller, advertised_listeners="")
    assert [each.is_controller for each in found] == [False, False, False]


def test_the_rack_is_the_machine_unless_it_is_named() -> None:
    assert {each.rack for each in configs()} == {"machine-b"}
    assert {each.rack for each in configs(broker_rack="cellar")} == {"cellar"}


def test_without_other_controllers_all_ask_the_first() -> None:
    found = configs(**{QUORUM: ""})
    assert {each.bootstrap_servers for each in found} == {(("machine-b", 9393),)}


def test_a_free_port_stays_one() -> None:
    found = configs(listeners="PLAINTEXT://127.0.0.1:0,CONTROLLER://machine-b:9393")
    assert [ports(each) for each in found] == [[0, 9393, 9644], [0, 9645], [0, 9646]]


@pytest.mark.parametrize("brokers", [1, 3, 256])
def test_a_whole_cluster_needs_no_file(brokers: int) -> None:
    found = configs_of_brokers(whole_cluster(brokers), brokers, DATA, "laptop")
    assert [each.node_id for each in found] == list(range(1, brokers + 1))
    assert found[0].listeners[0].port == 9092
    assert found[-1].replication_factor == min(3, brokers)


def test_listeners_that_would_overlap_are_refused() -> None:
    said = refusal(listeners="A://:9092,B://127.0.0.1:9093", process_roles="broker",
                   listener_security_protocol_map="A:PLAINTEXT,B:PLAINTEXT",
                   inter_broker_listener_name="B", advertised_listeners="A://x:1092")  # fmt: skip
    assert "B of broker 4 and A of broker 5 would both have port 9093" in said
    assert "leave room between them" in said


def test_addresses_for_clients_that_would_overlap_are_refused() -> None:
    said = refusal(advertised_listeners="PLAINTEXT://x:9192,SSL://x:9193")
    assert "SSL of broker 4 and PLAINTEXT of broker 5 would both have port 9193" in said


def test_listeners_of_different_hosts_do_not_overlap() -> None:
    listeners = "PLAINTEXT://10.0.0.1:9092,SSL://10.0.0.2:9092,CONTROLLER://machine-b:9393"
    assert ports(configs(listeners=listeners)[1]) == [9093, 9093, 9645]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"log_dirs": "/elsewhere"}, "log.dirs: leave it out"),
        ({"metadata_log_dir": "/fast"}, "metadata.log.dir: leave it out"),
        ({"http_listener": "127.0.0.1:65534"}, "port 65536 is out of range"),
        (
            {"process_roles": "controller", "listeners": "CONTROLLER://m:9393"},
            "process.roles: the first broker may be a controller too, not only that",
        ),
        (
            {QUORUM: "", "listeners": "PLAINTEXT://m:9092", "advertised_listeners": ""},
            "listeners: add CONTROLLER://host:port",
        ),
        ({QUORUM: "", "listeners": "PLAINTEXT://m:1,CONTROLLER://m:0"}, "add CONTROLLER://host:port"),
        (
            {QUORUM: "", "process_roles": "broker", "listeners": "PLAINTEXT://m:9092",
             "advertised_listeners": ""},
            "there is no controller to follow",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(changes: dict[str, str], said: str) -> None:
    assert said in refusal(**changes)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lisseners=x", "unknown setting 'lisseners'; did you mean 'listeners'?"),
        ("log.dirs=/a", "log.dirs: leave it out"),
        (f"{QUORUM}=a:1\nlisteners=A://127.0.0.1:0,CONTROLLER://127.0.0.1:0\n"
         "listener.security.protocol.map=A:PLAINTEXT,CONTROLLER:PLAINTEXT",
         "data/broker-1 is not formatted"),
    ],
)  # fmt: skip
def test_a_wrong_setting_ends_the_command_before_anything_is_started(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "server.properties"
    file.write_text(text)
    data = tmp_path / "data"
    assert main(["cluster", "start", str(file), "--brokers", "2", "--dir", str(data)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("millstream cluster start: ")
    assert said in error
    assert not data.exists()


def formatted(folder: Path, *arguments: str) -> tuple[set[str], str]:
    """Format two brokers; return the ids of their clusters, and all arguments."""
    listeners = f"PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:{next(free_ports())}"
    overrides = ["--override", "http.listener=", "--override", f"listeners={listeners}"]
    options = ["--dir", str(folder), "--brokers", "2", *overrides, *arguments]
    brokers = brokers_of(parser().parse_args(options))
    files = folder.glob("broker-*/meta.properties")
    ids = {line for file in files for line in file.read_text().split() if "cluster.id" in line}
    return ids, " ".join(word for each in brokers for word in each.arguments)


def test_a_whole_cluster_is_formatted_once(tmp_path: Path) -> None:
    first, _ = formatted(tmp_path)
    again, _ = formatted(tmp_path, "--brokers", "3")
    assert len(again) == 1
    assert first == again
    assert (tmp_path / "broker-3" / "meta.properties").exists()


def test_the_other_brokers_do_without_one_whose_disk_is_broken(tmp_path: Path) -> None:
    (tmp_path / "broker-2").write_text("no folder")
    ids, arguments = formatted(tmp_path)
    assert len(ids) == 1
    assert "--override=node.id=2" in arguments


def test_brokers_of_another_cluster_are_refused(tmp_path: Path) -> None:
    formatted(tmp_path)
    (tmp_path / "cluster.env").unlink()
    with pytest.raises(InconsistentLogDirectory, match=r"start it with the other cluster\.id"):
        formatted(tmp_path)


def test_a_secret_of_the_file_is_no_argument(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("delegation.token.secret.key=sesame\n")
    _, arguments = formatted(tmp_path / "data", str(file))
    assert str(file) in arguments
    assert "--override=node.id=2" in arguments
    assert "sesame" not in arguments
