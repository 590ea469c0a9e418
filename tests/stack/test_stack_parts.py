"""What `millstream up` decides before anything starts: ports, seeds, names, options."""

import json
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from millstream.processes.switchboard import write_whole
from stack.options import up_options
from stack.place import Place, place_of
from stack.plan import (
    PlanError,
    addresses,
    make_plan,
    moved_ports,
    refuse_other_options,
    remember_cluster,
    variables,
)
from stack.ports import holder, is_free, listening_inodes, wanted_ports
from stack.seeds import SeedError, checked, read_seeds, together
from stack.shown import ENDED, READY, STARTING, STOPPED, part_state, table


def test_everybody_knows_the_ports() -> None:
    parts = ("broker", "registry", "rest-proxy", "connect", "console")
    assert wanted_ports(parts, 2, 0) == {
        "broker-1": 9092,
        "broker-2": 9093,
        "registry": 8081,
        "rest-proxy": 8082,
        "connect": 8083,
        "console": 8080,
    }
    assert wanted_ports(("broker", "console"), 1, 100) == {"broker-1": 9192, "console": 8180}


@pytest.mark.parametrize("offset", [60_000, -9000])
def test_ports_that_there_are_not_are_refused(offset: int) -> None:
    with pytest.raises(ValueError, match="no port"):
        wanted_ports(("broker", "console"), 1, offset)


def test_who_has_a_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert not is_free(port)
        assert f"process {os.getpid()} (" in holder(port)
    assert is_free(port)
    assert holder(port) == ""


def test_listening_sockets_are_found_in_linux_s_table() -> None:
    rows = [("2384", "0A", 4711), ("2384", "01", 4712), ("2385", "0A", 4713)]
    table_text = (
        "  sl  local_address rem_address   st tx_queue tr tm->when retrnsmt uid timeout inode"
    )
    for port, state, inode in rows:
        table_text += f"\n 0: 0100007F:{port} 00000000:0000 {state} 0:0 00:0 0 0 0 {inode} 1 0"
    assert listening_inodes(table_text, 9092) == {"4711"}


def test_seeds_in_every_form() -> None:
    schema = {"type": "record", "name": "F", "fields": []}
    seeds = checked(
        {
            "topics": [
                "lines",
                "orders:3:1:compact",
                {
                    "name": "fruit",
                    "partitions": 2,
                    "config": {"retention.ms": 5, "unclean.leader.election.enable": True},
                    "value": {"type": "avro", "schema": schema},
                    "records": [{"key": "a", "value": {}, "headers": {"h": "x"}, "partition": 1}],
                },
                {"name": "plain", "records": [{"key": 1, "value": "v"}, {"key": "k"}]},
            ],
            "schemas": [{"subject": "s", "schema": '"string"'}],
        }
    )
    lines, orders, fruit, plain = seeds["topics"]
    assert (lines["partitions"], orders["partitions"], orders["replicas"]) == (None, 3, 1)
    assert orders["config"] == {"cleanup.policy": "compact"}
    assert fruit["config"] == {"retention.ms": "5", "unclean.leader.election.enable": "true"}
    text = '{"type": "record", "name": "F", "fields": []}'
    assert fruit["records"] == [
        {
            "key": {"type": "STRING", "data": "a"},
            "value": {"type": "AVRO", "schema": text, "data": {}},
            "partition_id": 1,
            "headers": [{"name": "h", "value": "eA=="}],
        }
    ]
    assert plain["records"][0] == {
        "key": {"type": "JSON", "data": 1},
        "value": {"type": "JSON", "data": "v"},
    }
    assert seeds["schemas"] == [{"subject": "s", "type": "AVRO", "schema": '"string"'}]
    assert checked(None) == {"topics": [], "schemas": []}
    assert checked(["a"])["topics"][0]["name"] == "a"


@pytest.mark.parametrize(
    ("told", "place"),
    [
        (5, "a list of topics"),
        ({"topic": []}, "topic"),
        ({"topics": 5}, "topics must be a list"),
        ([5], r"topics\[0\]"),
        ([{"name": 5}], r"topics\[0\].name"),
        ([{"name": "a", "partitions": 0}], "partitions"),
        ([{"name": "a", "partitions": True}], "partitions"),
        ([{"name": "a", "partition": 1}], "partition"),
        (["a:many"], "many"),
        (["a:1:1:compact:x"], "name:partitions"),
        ([{"name": "a", "value": {"type": "XML"}}], "type"),
        ([{"name": "a", "value": "AVRO"}], "AVRO has a schema"),
        ([{"name": "a", "records": [5]}], r"records\[0\]"),
        ([{"name": "a", "records": [{"v": 1}]}], "'v'"),
        (["a", "a"], "twice"),
        ({"schemas": [{"subject": "s"}]}, "subject and schema"),
    ],
)
def test_seeds_that_are_wrong_name_the_place(told: Any, place: str) -> None:
    with pytest.raises(SeedError, match=place):
        checked(told)


def test_a_topic_is_in_one_of_two_files(tmp_path: Path) -> None:
    file = tmp_path / "topics.yaml"
    file.write_text("- a:1\n- b\n")
    assert [each["name"] for each in read_seeds(file)["topics"]] == ["a", "b"]
    with pytest.raises(SeedError, match="twice"):
        together(read_seeds(file), read_seeds(file))
    file.write_bytes(b"\xff")
    with pytest.raises(SeedError, match=r"topics\.yaml"):
        read_seeds(file)
    file.write_text("a: [")
    with pytest.raises(SeedError, match=r"topics\.yaml"):
        read_seeds(file)
    file.write_text("!!python/object/apply:os.system ['true']")
    with pytest.raises(SeedError, match=r"topics\.yaml"):
        read_seeds(file)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--only", "registry"],
        ["--only", "broker,kitchen"],
        ["--brokers", "0"],
        ["--data", "x", "--ephemeral"],
        ["--any-port", "--offset-ports", "10"],
        ["--wait", "-1"],
        ["--seed", "/nowhere.yaml"],
        ["--brokrs", "3"],
    ],
)
def test_options_that_mean_nothing_end_the_command(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        up_options(arguments)
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "millstream up: error" in said
    if arguments[0] == "--brokrs":
        assert "did you mean --brokers?" in said


def test_a_data_folder_below_a_folder_that_is_gone_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(SystemExit):
        up_options(["--data", "x"])
    assert "--data x: the current directory does not exist" in capsys.readouterr().err
    assert up_options(["--data", str(tmp_path)]).data_folder == tmp_path


def test_a_running_stack_that_lacks_what_is_asked_for_is_no_success(tmp_path: Path) -> None:
    seeds = tmp_path / "seeds.yaml"
    seeds.write_text("topics: [lines:2]")
    same = ["--brokers", "3", "--only", "broker,registry", "--topics", str(seeds)]
    plan = json.loads(json.dumps(planned(tmp_path, *same)))
    for arguments in ([], same, ["--only", "broker"], ["--any-port"]):
        refuse_other_options(up_options(arguments), plan)
    other = tmp_path / "other.yaml"
    other.write_text("topics: [lines:3]")
    for arguments, flag in (
        (["--brokers", "2"], "--brokers"),
        (["--brokers", "1"], "--brokers"),
        (["--only", "broker,connect"], "--only"),
        (["--only", "broker,registry,rest-proxy,connect,console"], "--only"),
        (["--data", str(tmp_path / "elsewhere")], "--data"),
        (["--ephemeral"], "--ephemeral"),
        (["--seed", str(other)], "--topics or --seed"),
    ):
        with pytest.raises(PlanError, match=f"without this: {flag}\n"):
            refuse_other_options(up_options(arguments), plan)


def test_a_stack_has_a_folder_and_one_process_at_a_time(tmp_path: Path) -> None:
    place = place_of("mine", {"MILLSTREAM_HOME": str(tmp_path)})
    assert not place.is_taken()
    lock = place.take()
    assert lock is not None
    assert place.is_taken()
    assert place.take() is None
    lock.close()
    assert not place.is_taken()
    for name in ("..", "", "a/b", ".hidden"):
        with pytest.raises(ValueError, match="cannot be called"):
            place_of(name, {})


def test_a_state_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    place = Place(tmp_path)
    assert place.state() == {}
    place.state_file.write_text("{")
    assert place.state() == {}
    write_whole(place.state_file, "{}")
    assert [each.name for each in tmp_path.iterdir()] == ["state.json"]


def planned(folder: Path, *arguments: str) -> dict[str, Any]:
    return make_plan(up_options(["--any-port", *arguments]), Place(folder))


def test_data_is_that_of_one_cluster(tmp_path: Path) -> None:
    plan = planned(tmp_path, "--brokers", "3")
    remember_cluster(plan)
    assert planned(tmp_path, "--brokers", "3")["cluster_id"] == plan["cluster_id"]
    with pytest.raises(PlanError, match="from 3 broker"):
        planned(tmp_path, "--brokers", "1")
    ephemeral = planned(tmp_path, "--brokers", "1", "--ephemeral")
    assert ephemeral["cluster_id"] != plan["cluster_id"]


def test_controllers_keep_their_ports_and_directories(tmp_path: Path) -> None:
    plan = planned(tmp_path, "--brokers", "3")
    assert list(plan["controller_ports"]) == ["1", "2", "3"]
    remember_cluster(plan)
    again = planned(tmp_path, "--brokers", "3")
    for name in ("initial_controllers", "controller_ports"):
        assert again[name] == plan[name]
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", plan["controller_ports"]["2"]))
        taken.listen()
        moved = planned(tmp_path, "--brokers", "3")
    assert moved["controller_ports"]["2"] != plan["controller_ports"]["2"]
    assert moved["controller_ports"]["3"] == plan["controller_ports"]["3"]
    directories = [text.rpartition(":")[2] for text in plan["initial_controllers"].split(",")]
    found = [text.rpartition(":")[2] for text in moved["initial_controllers"].split(",")]
    assert found == directories


def test_data_without_the_controllers_gets_them(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    (Path(plan["data_folder"]) / "cluster").write_text("an-older-cluster-id-00 1\n")
    found = planned(tmp_path)
    assert found["cluster_id"] == "an-older-cluster-id-00"
    assert list(found["controller_ports"]) == ["1"]
    for damaged in ("only-the-id\n", "id 1\n1@127.0.0.1\n", "id 1\n1@127.0.0.1:x:y\n"):
        (Path(plan["data_folder"]) / "cluster").write_text(damaged)
        with pytest.raises(PlanError, match="cannot be read"):
            planned(tmp_path)


def test_no_port_is_given_twice(tmp_path: Path) -> None:
    for _ in range(20):
        plan = planned(tmp_path, "--brokers", "9", "--ephemeral")
        kinds = ("ports", "controller_ports", "broker_http_ports")
        ports = [port for kind in kinds for port in plan[kind].values()]
        assert len(set(ports)) == len(ports)


def test_a_taken_port_is_refused_with_who_has_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        offset = server.getsockname()[1] - 9092
        options = up_options(["--only", "broker", "--offset-ports", str(offset)])
        with pytest.raises(PlanError, match=f"is taken by process {os.getpid()}"):
            make_plan(options, Place(tmp_path))


def test_a_stack_with_a_name_takes_free_ports_and_says_which(tmp_path: Path) -> None:
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with suppress(OSError):  # Another stack of this machine may have the port.
            server.bind(("127.0.0.1", 9092))
            server.listen()
        options = up_options(["--only", "broker", "--name", "second"])
        plan = make_plan(options, Place(tmp_path))
    port = plan["ports"]["broker-1"]
    assert port != 9092
    assert moved_ports(options, plan) == [f"port 9092 is taken: broker-1 has port {port}"]


@pytest.mark.parametrize("below", ["", "/deeper"])
def test_data_in_a_file_is_refused_in_words(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").touch()
    options = up_options(["--any-port", "--data", f"{tmp_path}/file{below}"])
    with pytest.raises(PlanError, match="this is a file, or below a file"):
        make_plan(options, Place(tmp_path / "stack"))


def test_stopped_brokers_are_named(tmp_path: Path) -> None:
    plan = planned(tmp_path, "--brokers", "3", "--only", "broker")
    parts = {f"broker-{number}": {"state": READY} for number in (1, 2, 3)}
    parts["broker-2"] = {"state": STOPPED}
    assert part_state(plan, {"parts": parts}, "broker") == "stopped: broker-2"


def test_addresses_and_variables_are_of_what_there_is(tmp_path: Path) -> None:
    plan = planned(tmp_path, "--only", "broker,rest-proxy")
    port = plan["ports"]["rest-proxy"]
    assert addresses(plan)["rest-proxy"] == f"http://127.0.0.1:{port}"
    assert list(variables(plan)) == ["KAFKA_BOOTSTRAP_SERVERS", "KAFKA_REST_URL"]


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([READY, READY], READY),
        ([READY, STARTING], STARTING),
        ([ENDED, STARTING], ENDED),
        ([READY], STARTING),
    ],
)
def test_brokers_are_as_the_worst_of_them(tmp_path: Path, states: list[str], expected: str) -> None:
    plan = planned(tmp_path, "--brokers", "2")
    parts = {f"broker-{number}": {"state": each} for number, each in enumerate(states, 1)}
    state: Mapping[str, Any] = {"parts": parts}
    assert part_state(plan, state, "broker") == expected
    assert expected in table(plan, state).splitlines()[0]


def test_aliases_cannot_make_a_seed_larger_than_memory(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 20)]
    merged = ["m0: &m0 {x: y, z: y}"]
    merged += [f"m{n}: &m{n} {{<<: [*m{n - 1}, *m{n - 1}]}}" for n in range(1, 40)]
    file = tmp_path / "seeds.yaml"
    for text, why in (
        ("\n".join(lines), "aliases stand for more"),
        ("\n".join(merged), "aliases stand for more"),
        ("&a [*a]", "an alias stands for what holds it"),
        ('["a", "\\ud800"]', "line 1: .* no Unicode"),
    ):
        file.write_text(text)
        with pytest.raises(SeedError, match=why):
            read_seeds(file)


def test_a_seed_may_use_aliases_and_be_empty(tmp_path: Path) -> None:
    file = tmp_path / "seeds.yaml"
    file.write_text("- &a {name: a, config: &c {retention.ms: 1}}\n- {name: b, config: *c}\n")
    assert [each["config"] for each in read_seeds(file)["topics"]] == [{"retention.ms": "1"}] * 2
    file.write_text("")
    assert read_seeds(file) == {"topics": [], "schemas": []}
