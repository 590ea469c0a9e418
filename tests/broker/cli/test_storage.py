"""`millstream storage`: what it writes, what it says, what it refuses."""

from pathlib import Path
from random import Random

import pytest

from broker.cli.storage import main
from broker.config.broker_config import BrokerConfig
from broker.log.checkpoints import read_properties
from broker.log.meta_properties import InconsistentLogDirectory
from broker.log.storage import RealStorage
from broker.metadata.controller import Controller, ControllerConfig, Moment
from broker.metadata.features import FEATURES_AT_FORMAT
from broker.metadata.image import MetadataImage
from broker.server.quorum.formatting import formatted_credentials, formatted_features
from broker.server.quorum.initial_controllers import format_new_node, read_initial_controllers
from broker.server.quorum.raft.snapshot_format import build_snapshot
from broker.server.storage.cluster_id import find_cluster_id
from common.credentials.scram import SCRAM_SHA_512, credential_from, salted_password
from common.kafka.errors import KafkaError
from common.kafka.protocol.records.metadata import FeatureLevelRecord, encode_metadata_record
from common.process.properties import parse_properties
from tests.lib.logs import formatted_voters

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
STORAGE = RealStorage()
STATIC = "controller.quorum.voters=1@127.0.0.1:19093"
DYNAMIC = "controller.quorum.bootstrap.servers=127.0.0.1:19093"


@pytest.fixture
def properties(tmp_path: Path) -> Path:
    return write(tmp_path, STATIC)


def write(tmp_path: Path, quorum: str, **changes: str) -> Path:
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": "PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093",
        "log.dirs": f"{tmp_path}/a,{tmp_path}/b",
        **{name.replace("_", "."): value for name, value in changes.items()},
    }
    path = tmp_path / "server.properties"
    lines = [f"{name}={value}" for name, value in settings.items()]
    path.write_text("\n".join([*lines, quorum]))
    return path


def config_of(properties: Path) -> BrokerConfig:
    return BrokerConfig.from_settings(parse_properties(properties.read_text()))


def format_with(properties: Path, *more: str, cluster: str = CLUSTER) -> int:
    return main(["format", "-t", cluster, "-c", str(properties), *more])


def test_every_directory_is_formatted(properties, tmp_path, capsys):
    assert format_with(properties) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"Formatting data directory {tmp_path}/b with metadata.version 4.3-IV0.",
        f"Formatting metadata directory {tmp_path}/a with metadata.version 4.3-IV0.",
    ]
    found = [read_properties(STORAGE, f"{tmp_path}/{name}/meta.properties") for name in "ab"]
    for said in found:
        assert (said["version"], said["cluster.id"], said["node.id"]) == ("1", CLUSTER, "1")
    assert found[0]["directory.id"] != found[1]["directory.id"]
    assert formatted_features(STORAGE, f"{tmp_path}/a") == FEATURES_AT_FORMAT
    assert formatted_voters(f"{tmp_path}/a/__cluster_metadata-0") == []


def test_a_formatted_directory_is_left_alone(properties, tmp_path, capsys):
    format_with(properties)
    before = (tmp_path / "a/meta.properties").read_bytes()
    assert format_with(properties) == 1
    assert "is already formatted. Use --ignore-formatted" in capsys.readouterr().err
    assert format_with(properties, "-g") == 0
    assert capsys.readouterr().out == "All of the log directories are already formatted.\n"
    assert (tmp_path / "a/meta.properties").read_bytes() == before


def test_a_new_directory_joins_the_formatted_ones(properties, tmp_path, capsys):
    format_with(properties)
    properties.write_text(properties.read_text().replace("/b", f"/b,{tmp_path}/c"))
    assert format_with(properties, "--ignore-formatted") == 0
    assert f"Formatting data directory {tmp_path}/c with" in capsys.readouterr().out


def test_another_cluster_or_node_is_refused(properties, tmp_path, capsys):
    format_with(properties)
    assert format_with(properties, "-g", cluster="another") == 1
    assert "Expected another, but read " + CLUSTER in capsys.readouterr().err
    write(tmp_path, "controller.quorum.voters=2@127.0.0.1:19093", node_id="2")
    assert format_with(properties, "-g") == 1
    assert "Stored node id 1 doesn't match the configured node id 2" in capsys.readouterr().err


def test_a_standalone_controller_is_its_only_voter(tmp_path, capsys):
    properties = write(tmp_path, DYNAMIC)
    assert format_with(properties) == 1
    assert "you must specify one of the following: --standalone" in capsys.readouterr().err
    assert format_with(properties, "--standalone") == 0
    assert "Formatting dynamic metadata voter directory" in capsys.readouterr().out
    assert formatted_voters(f"{tmp_path}/a/__cluster_metadata-0") == [(1, "127.0.0.1", 19093)]


def test_initial_controllers_are_the_voters_of_all(tmp_path):
    directory_id = "JEXY6aqzQY-32P5TStzaFg"
    properties = write(tmp_path, DYNAMIC)
    both = f"2@b:19094:MvDxzVmcRsaTz33bUuRU6A,1@a:19093:{directory_id}"
    assert format_with(properties, "-I", both) == 0
    assert formatted_voters(f"{tmp_path}/a/__cluster_metadata-0") == [
        (1, "a", 19093),
        (2, "b", 19094),
    ]
    said = read_properties(STORAGE, f"{tmp_path}/a/meta.properties")
    assert said["directory.id"] == directory_id


def test_no_initial_controllers_says_nothing_of_them(tmp_path):
    assert format_with(write(tmp_path, DYNAMIC), "-N") == 0
    assert formatted_voters(f"{tmp_path}/a/__cluster_metadata-0") == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-s"], "You cannot specify controller.quorum.voters and format the node with"),
        (["-r", "3.9"], "Unknown metadata.version '3.9'"),
        (["-f", "nonsense.version=1"], "Unsupported feature: nonsense.version"),
        (["-f", "metadata.version=1"], "No feature:metadata.version with feature level 1"),
        (["-f", "xx"], "Can't parse feature=level string xx"),
        (["-I", "1@a:19093"], "You cannot specify controller.quorum.voters"),
    ],
)
def test_what_does_not_go_together_is_refused(properties, tmp_path, capsys, arguments, says):
    assert format_with(properties, *arguments) == 1
    assert says in capsys.readouterr().err
    assert not (tmp_path / "a").exists()


def test_an_initial_controller_has_four_parts(tmp_path, capsys):
    properties = write(tmp_path, DYNAMIC)
    assert format_with(properties, "-I", "1@a:19093") == 1
    assert format_with(properties, "-I", "1@a:19093:short") == 1
    assert format_with(properties, "-I", "a:19093:JEXY6aqzQY-32P5TStzaFg") == 1


def test_info_tells_what_is_there(properties, tmp_path, capsys):
    assert main(["info", "-c", str(properties)]) == 1
    assert f"  {tmp_path}/a does not exist" in capsys.readouterr().out
    format_with(properties)
    capsys.readouterr()
    assert main(["info", "-c", str(properties)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:4] == ["Found log directories:", f"  {tmp_path}/a", f"  {tmp_path}/b", ""]
    assert lines[4].startswith(f"Found metadata: {{cluster.id={CLUSTER}, directory.id=")
    (tmp_path / "b/meta.properties").unlink()
    assert main(["info", "-c", str(properties)]) == 1
    assert f"  {tmp_path}/b is not formatted." in capsys.readouterr().out


def test_a_random_uuid_is_one_of_kafkas(capsys):
    assert main(["random-uuid"]) == 0
    text = capsys.readouterr().out.strip()
    assert len(text) == 22
    assert not text.startswith("-")


def test_levels_that_are_not_built_here_are_left_out(tmp_path):
    def with_levels(**levels: int) -> dict[str, int]:
        values = [
            encode_metadata_record(
                FeatureLevelRecord(name=name.replace("_", "."), feature_level=level)
            )
            for name, level in levels.items()
        ]
        (tmp_path / "bootstrap.checkpoint").write_bytes(build_snapshot(values, 0, 0, 0))
        return formatted_features(STORAGE, str(tmp_path))

    levels = with_levels(metadata_version=30, share_version=1, future_version=1)
    assert levels == {"metadata.version": 30, "share.version": 1}
    with pytest.raises(InconsistentLogDirectory, match=r"metadata\.version 21"):
        with_levels(metadata_version=21)


def test_only_a_node_alone_makes_up_a_cluster_id(tmp_path):
    alone = config_of(write(tmp_path, ""))
    assert len(find_cluster_id(STORAGE, alone, None)) == 22
    assert find_cluster_id(STORAGE, alone, "told") == "told"
    three = config_of(write(tmp_path, "controller.quorum.voters=1@a:1,2@b:1,3@c:1"))
    assert find_cluster_id(STORAGE, three, "told") == "told"
    with pytest.raises(InconsistentLogDirectory, match="millstream storage format"):
        find_cluster_id(STORAGE, three, None)
    format_with(tmp_path / "server.properties")
    assert find_cluster_id(STORAGE, three, None) == CLUSTER


@pytest.mark.parametrize("damage", ["cut", "flipped", "emptied"])
def test_a_damaged_bootstrap_checkpoint_is_named(tmp_path, damage):
    format_with(write(tmp_path, ""))
    path = tmp_path / "a" / "bootstrap.checkpoint"
    data = path.read_bytes()
    changed = {"cut": data[:-9], "flipped": data[:70] + b"!" + data[71:], "emptied": b""}
    path.write_bytes(changed[damage])
    with pytest.raises(InconsistentLogDirectory, match=r"a/bootstrap.checkpoint is damaged"):
        formatted_features(STORAGE, str(tmp_path / "a"))


def test_a_directory_in_use_is_not_formatted_anew(tmp_path, capsys):
    """Else a node whose `meta.properties` is lost would become another one."""
    properties = write(tmp_path, "")
    (tmp_path / "a" / "orders-0").mkdir(parents=True)
    (tmp_path / "a" / "orders-0" / "partition.metadata").touch()
    assert main(["format", "--cluster-id", CLUSTER, "--config", str(properties)]) == 1
    assert (
        "meta.properties is missing in a directory that has partitions" in capsys.readouterr().err
    )


def test_a_cluster_begins_with_the_credentials_it_was_formatted_with(properties, tmp_path):
    given = "SCRAM-SHA-512=[name=alice,password=a-secret,iterations=8192]"
    assert format_with(properties, "--add-scram", given) == 0
    (record,) = formatted_credentials(STORAGE, f"{tmp_path}/a")
    salted = salted_password(SCRAM_SHA_512, "a-secret", record.salt, 8192)
    expected = credential_from(SCRAM_SHA_512, salted, record.salt, 8192)
    assert (record.name, record.mechanism) == ("alice", 2)
    assert record.stored_key == expected.stored_key
    config = ControllerConfig(credentials_at_format=(record,))
    image = MetadataImage()
    for each in Controller(image, config, Random(1)).activate(Moment(0, 0, 0)):
        image.replay(each)
    assert image.scram["alice", 2] == expected


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("SCRAM-SHA-1=[name=a,password=b]", "not supported"),
        ("SCRAM-SHA-256=[password=b]", "must supply 'name'"),
        ("SCRAM-SHA-256=[name=a]", "either password or saltedpassword"),
    ],
)
def test_a_wrong_credential_formats_nothing(properties, tmp_path, capsys, given, says):
    assert format_with(properties, "--add-scram", given) == 1
    assert says in capsys.readouterr().err
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("quorum", "flags", "why"),
    [
        (DYNAMIC, ["-s", "-f", "kraft.version=0"], "Cannot set kraft.version to 0 if"),
        (DYNAMIC, ["-N", "-f", "kraft.version=0"], "Cannot set kraft.version to 0 if"),
        (STATIC, ["-f", "kraft.version=1"], "Cannot set kraft.version to 1 unless"),
        (DYNAMIC, ["-s", "-f", "kraft.version=2"], "No feature:kraft.version with feature level 2"),
        (DYNAMIC, ["-I", ","], "names no controller, or one twice"),
    ],
)
def test_a_level_of_kraft_version_that_the_flags_contradict_is_refused(
    tmp_path, capsys, quorum, flags, why
):
    assert format_with(write(tmp_path, quorum), *flags) == 1
    assert why in capsys.readouterr().err


@pytest.mark.parametrize(
    ("quorum", "flags"),
    [(DYNAMIC, ["-s", "-f", "kraft.version=1"]), (STATIC, ["-f", "kraft.version=0"])],
)
def test_the_level_of_kraft_version_that_the_flags_mean_may_be_said(tmp_path, quorum, flags):
    assert format_with(write(tmp_path, quorum), *flags) == 0


def test_a_controller_is_named_once(tmp_path, capsys):
    first, second = "JEXY6aqzQY-32P5TStzaFg", "MvDxzVmcRsaTz33bUuRU6A"
    twice = f"1@a:19093:{first},1@b:19093:{second}"
    assert format_with(write(tmp_path, DYNAMIC), "-I", twice) == 1
    assert "one twice" in capsys.readouterr().err


def test_a_new_node_has_its_voters_in_one_place(tmp_path):
    config = config_of(write(tmp_path, STATIC))
    controllers = read_initial_controllers("1@a:19093:JEXY6aqzQY-32P5TStzaFg")
    with pytest.raises(KafkaError, match="exclude each other"):
        format_new_node(config, CLUSTER, controllers)
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("controllers", "why"),
    [
        (f"{2**31}@a:19093:JEXY6aqzQY-32P5TStzaFg", "node id is too large"),
        ("1@:19093:JEXY6aqzQY-32P5TStzaFg", "that others can reach"),
        ("1@0.0.0.0:19093:JEXY6aqzQY-32P5TStzaFg", "that others can reach"),
        ("1@a:0:JEXY6aqzQY-32P5TStzaFg", "that others can reach"),
        ("1@a:19093:AAAAAAAAAAAAAAAAAAAAAA", "directory id is reserved"),
        ("1@a:19093:AAAAAAAAAAAAAAAAAAAAAQ", "directory id is reserved"),
    ],
)
def test_a_controller_that_cannot_be_is_refused(tmp_path, capsys, controllers, why):
    assert format_with(write(tmp_path, DYNAMIC), "-I", controllers) == 1
    assert why in capsys.readouterr().err
    assert not (tmp_path / "a" / "meta.properties").exists()


def test_a_new_node_is_formatted_with_the_first_controllers_and_then_left_alone(tmp_path):
    config = config_of(write(tmp_path, DYNAMIC))
    first, second = "JEXY6aqzQY-32P5TStzaFg", "MvDxzVmcRsaTz33bUuRU6A"
    controllers = read_initial_controllers(f"1@a:19093:{first},2@b:19093:{second}")
    format_new_node(config, CLUSTER, controllers)
    said = read_properties(STORAGE, f"{tmp_path}/a/meta.properties")
    assert (said["cluster.id"], said["directory.id"]) == (CLUSTER, first)
    assert formatted_voters(f"{tmp_path}/a/__cluster_metadata-0") == [
        (1, "a", 19093),
        (2, "b", 19093),
    ]
    format_new_node(config, "another", read_initial_controllers(f"1@c:19093:{second}"))
    assert read_properties(STORAGE, f"{tmp_path}/a/meta.properties") == said
