"""`millstream metadata-quorum add-controller`: what it reads, prints and refuses."""

import pytest

from broker.cli.arguments import ToolFailed
from broker.cli.metadata_quorum import added_controller, main
from broker.config.listeners import Endpoint
from broker.log.checkpoints import decode_uuid

DIRECTORY_ID = "JEXY6aqzQY-32P5TStzaFg"


def properties(tmp_path, **changes):
    (tmp_path / "meta.properties").write_text(
        f"version=1\ncluster.id=c\nnode.id=4\ndirectory.id={DIRECTORY_ID}\n"
    )
    given = {
        "node.id": "4",
        "process.roles": "controller",
        "controller.listener.names": "CONTROLLER",
        "listeners": "CONTROLLER://:9093",
        "log.dirs": f"{tmp_path},/somewhere/else",
    }
    for name, value in changes.items():
        given[name.replace("_", ".")] = value
    return {name: value for name, value in given.items() if value is not None}


def test_a_controller_is_described_by_its_own_file(tmp_path):
    endpoint = Endpoint("CONTROLLER", "localhost", 9093)
    described = (4, decode_uuid(DIRECTORY_ID), [endpoint])
    assert added_controller(properties(tmp_path)) == described
    advertised = properties(tmp_path, advertised_listeners="CONTROLLER://away:19093")
    assert added_controller(advertised)[2] == [Endpoint("CONTROLLER", "away", 19093)]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"node_id": None}, "node.id not found in configuration file"),
        ({"node_id": "-1"}, "node.id was negative in configuration file"),
        ({"node_id": "x"}, 'For input string: "x"'),
        ({"process_roles": "broker"}, "process.roles did not contain 'controller'"),
        ({"log_dirs": None}, "Neither metadata.log.dir nor log.dirs were found"),
        ({"log_dirs": "/not/formatted"}, "Unable to read meta.properties from /not/formatted"),
        ({"controller_listener_names": None}, "controller.listener.names was not found"),
        ({"listeners": None}, "Cannot find information about controller listener name: controller"),
    ],
)
def test_a_file_of_no_controller_is_refused(tmp_path, changes, why):
    with pytest.raises(ToolFailed, match=why):
        added_controller(properties(tmp_path, **changes))


def test_a_dry_run_prints_what_would_be_done(tmp_path, capsys):
    file = tmp_path / "server.properties"
    lines = [f"{name}={value}\n" for name, value in properties(tmp_path).items()]
    file.write_text("".join(lines))
    connection = ["--bootstrap-server", "127.0.0.1:1", "--command-config", str(file)]
    assert main([*connection, "add-controller", "--dry-run"]) == 0
    assert capsys.readouterr().out == (
        f"DRY RUN of adding controller 4 with directory id {DIRECTORY_ID} and endpoints: "
        "CONTROLLER://localhost:9093\n"
    )
    assert main([*connection, "remove-controller", "-i", "4", "-d", DIRECTORY_ID, "--dry-run"]) == 0
    assert capsys.readouterr().out == (
        f"DRY RUN of removing  KRaft controller 4 with directory id {DIRECTORY_ID}\n"
    )


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["add-controller"], "You must supply the configuration file of the controller"),
        (["remove-controller", "-i", "-4", "-d", DIRECTORY_ID], "Invalid negative --controller-id"),
        (["remove-controller", "-i", "4", "-d", "x"], "Failed to parse --controller-directory-id"),
    ],
)
def test_wrong_arguments_are_refused(arguments, why, capsys):
    assert main(["--bootstrap-server", "127.0.0.1:1", *arguments]) == 1
    assert why in capsys.readouterr().err
