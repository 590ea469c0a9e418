"""Directories that one storage tool has formatted under the other: Apache Kafka's and ours."""

from pathlib import Path

import pytest

from broker.cli.storage import main
from broker.log.storage import RealStorage
from broker.metadata.features import METADATA_VERSION
from broker.model import OffsetAndEpoch
from broker.server.quorum.formatting import BOOTSTRAP_CHECKPOINT, formatted_features
from broker.server.quorum.raft.snapshot_files import file_name
from tests.lib.apache_kafka import CLUSTER_ID, Tool, kafka_libs, run_tool, run_tools
from tests.lib.logs import formatted_voters

pytestmark = pytest.mark.interop

TOOL = "kafka.tools.StorageTool"
DUMP = "org.apache.kafka.tools.DumpLogSegments"
NOTHING = file_name(OffsetAndEpoch(0, 0))


def write_properties(folder: Path) -> str:
    """Write a controller whose voters are in its log; both tools read the same file."""
    path = folder / "server.properties"
    path.write_text(
        f"""process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=127.0.0.1:19093
log.dirs={folder}/logs
"""
    )
    return str(path)


def test_ours_takes_what_apache_kafka_has_formatted(tmp_path: Path, capsys) -> None:
    properties = write_properties(tmp_path)
    formatted = run_tool(
        kafka_libs(), TOOL, "format", "-t", CLUSTER_ID, "-c", properties, "--standalone"
    )
    assert formatted.returncode == 0, formatted.stderr
    assert main(["info", "-c", properties]) == 0
    assert f"cluster.id={CLUSTER_ID}" in capsys.readouterr().out
    assert main(["format", "-t", CLUSTER_ID, "-c", properties, "-s", "-g"]) == 0
    assert "already formatted" in capsys.readouterr().out
    assert formatted_voters(f"{tmp_path}/logs/__cluster_metadata-0") == [(1, "127.0.0.1", 19093)]
    assert METADATA_VERSION in formatted_features(RealStorage(), f"{tmp_path}/logs")


def test_apache_kafka_takes_what_ours_has_formatted(tmp_path: Path, capsys) -> None:
    libs, properties = kafka_libs(), write_properties(tmp_path)
    assert main(["format", "-t", CLUSTER_ID, "-c", properties, "--standalone"]) == 0
    told = capsys.readouterr().out
    logs = tmp_path / "logs"
    files = f"{logs}/__cluster_metadata-0/{NOTHING},{logs}/{BOOTSTRAP_CHECKPOINT}"
    info, again, dumped = run_tools(
        libs,
        [
            Tool(TOOL, ("info", "-c", properties)),
            Tool(TOOL, ("format", "-t", CLUSTER_ID, "-c", properties, "-s", "-g")),
            Tool(DUMP, ("--cluster-metadata-decoder", "--files", files)),
        ],
    )
    assert info.status == 0, info.output + info.errors
    assert main(["info", "-c", properties]) == 0
    assert info.output.strip() == capsys.readouterr().out.strip()
    assert again.status == 0, again.errors
    assert "All of the log directories are already formatted." in again.output
    assert "Formatting dynamic metadata voter directory" in told
    assert '"kRaftVersion":1' in dumped.output
    assert '"endpoints":[{"name":"CONTROLLER","host":"127.0.0.1","port":19093}]' in dumped.output
    assert '{"name":"metadata.version","featureLevel":30}' in dumped.output
    assert "isvalid: false" not in dumped.output
