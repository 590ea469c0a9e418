"""The command-line tools against our broker, and against Apache Kafka beside Kafka's own tools."""

import json
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest

from millrace.testing import LocalBroker
from tests.lib.apache_kafka import kafka_libs, run_tool, running_node

pytestmark = pytest.mark.interop

Run = Callable[..., tuple[int, list[str]]]

MAIN_CLASSES = {
    "topics": "org.apache.kafka.tools.TopicCommand",
    "configs": "kafka.admin.ConfigCommand",
    "features": "org.apache.kafka.tools.FeatureCommand",
}
BY_COMMAND = {"cluster"}  # their bootstrap servers are an argument of the command


def arguments_of(tool: str, bootstrap: str, line: str) -> list[str]:
    first, *rest = line.split()
    server = ["--bootstrap-server", bootstrap]
    return [first, *server, *rest] if tool in BY_COMMAND else [*server, first, *rest]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[[str], Run]:
    """Runs a tool in this process: `run(bootstrap)("topics", "--list")` gives status and lines."""

    def bound(bootstrap: str) -> Run:
        def run_one(tool: str, line: str) -> tuple[int, list[str]]:
            capsys.readouterr()
            main = import_module(f"broker.cli.{tool.replace('-', '_')}").main
            status = main(arguments_of(tool, bootstrap, line))
            return status, capsys.readouterr().out.splitlines()

        return run_one

    return bound


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with LocalBroker() as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def tool(run: Callable[[str], Run], bootstrap: str) -> Run:
    return run(bootstrap)


def test_a_topic_lives_and_dies(tool: Run) -> None:
    created = tool("topics", "--create --topic a.b --partitions 2 --config retention.ms=1000")
    assert created[0] == 0
    assert created[1][-1] == "Created topic a.b."
    status, lines = tool("topics", "--create --topic a.b")
    assert status == 1
    assert lines[-1].startswith("Error while executing topic command : ")
    assert tool("topics", "--create --topic a.b --if-not-exists")[0] == 0
    assert tool("topics", "--alter --topic a.b --partitions 3") == (0, [])
    assert tool("topics", "--list --topic a.*") == (0, ["a.b"])
    status, lines = tool("topics", "--describe --topic a.b")
    assert status == 0
    assert re.match(
        r"Topic: a.b\tTopicId: \S{22}\tPartitionCount: 3\tReplicationFactor: 1", lines[0]
    )
    assert "retention.ms=1000" in lines[0]
    assert [line.split("\t")[2] for line in lines[1:]] == [f"Partition: {n}" for n in range(3)]
    paged = tool("topics", "--describe --topic a.b --partition-size-limit-per-response 1")
    assert paged == (0, lines)
    by_id = tool("topics", f"--describe --topic-id {lines[0].split()[3]}")
    assert by_id[1][0] == lines[0]
    assert tool("topics", "--describe --under-replicated-partitions") == (0, [])
    assert tool("topics", "--delete --topic a.b") == (0, [])
    assert tool("topics", "--delete --topic a.b")[0] == 1
    assert tool("topics", "--delete --topic a.b --if-exists") == (0, [])


def test_settings_of_a_topic_and_a_broker(tool: Run) -> None:
    assert tool("topics", "--create --topic settings")[0] == 0
    done = (0, ["Completed updating config for topic settings."])
    changed = tool(
        "configs", "--alter --topic settings --add-config cleanup.policy=[compact,delete]"
    )
    assert changed == done
    status, lines = tool("configs", "--describe --topic settings")
    assert (status, lines[0]) == (0, "Dynamic configs for topic settings are:")
    assert lines[1].startswith(
        "  cleanup.policy=compact,delete sensitive=false "
        "synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete"
    )
    assert tool("configs", "--alter --topic settings --delete-config cleanup.policy") == done
    assert tool("configs", "--describe --topic settings")[1][1:] == []
    assert tool("configs", "--alter --topic settings --add-config nosuch=1")[0] == 1
    gone = ["The topic 'nosuch' doesn't exist and doesn't have dynamic config."]
    assert tool("configs", "--describe --topic nosuch") == (0, gone)
    status, lines = tool("configs", "--describe --broker 1 --all")
    assert status == 0
    assert any(line.startswith("  node.id=1 sensitive=false") for line in lines)


def test_the_cluster_and_moves_that_change_nothing(tool: Run, tmp_path: Path) -> None:
    status, lines = tool("cluster", "cluster-id")
    assert status == 0
    assert re.fullmatch(r"Cluster ID: \S{22}", lines[0])
    status, lines = tool("cluster", "list-endpoints")
    assert (status, lines[1].split()[0]) == (0, "1")
    assert tool("topics", "--create --topic moves --partitions 2")[0] == 0
    partitions = [{"topic": "moves", "partition": n, "replicas": [1]} for n in range(2)]
    file = tmp_path / "moves.json"
    file.write_text(json.dumps({"version": 1, "partitions": partitions}))
    flag = f"--reassignment-json-file {file}"
    assert tool("reassign-partitions", "--list") == (0, ["No partition reassignments found."])
    status, lines = tool("reassign-partitions", f"--verify --preserve-throttles {flag}")
    assert (status, lines[:3]) == (
        0,
        [
            "Status of partition reassignment:",
            "Reassignment of partition moves-0 is completed.",
            "Reassignment of partition moves-1 is completed.",
        ],
    )
    status, lines = tool("leader-election", "--election-type preferred --topic moves --partition 0")
    assert (status, lines) == (0, ["Valid replica already elected for partitions moves-0"])
    status, lines = tool("features", "describe")
    assert status == 0
    assert all(line.startswith("Feature: ") for line in lines)


def comparable(lines: list[str]) -> list[str]:
    # The epoch of the features grows with every record of the metadata log.
    return [re.sub(r"Epoch: \d+", "Epoch: N", line).rstrip() for line in lines]


SAME = [
    ("topics", "--describe --topic same"),
    ("configs", "--describe --topic same"),
    ("features", "describe"),
]


def test_kafka_s_tools_and_ours_print_the_same_about_apache_kafka(
    run: Callable[[str], Run], tmp_path: Path
) -> None:
    libs = kafka_libs()
    with running_node(libs, tmp_path) as bootstrap:
        tool = run(bootstrap)
        create = "--create --topic same --partitions 3 --config retention.ms=1000"
        assert tool("topics", create) == (0, ["Created topic same."])
        for name, line in SAME:
            theirs = run_tool(libs, MAIN_CLASSES[name], *arguments_of(name, bootstrap, line))
            assert theirs.returncode == 0, theirs.stderr
            status, lines = tool(name, line)
            assert (status, comparable(lines)) == (0, comparable(theirs.stdout.splitlines()))
        status, lines = tool("metadata-quorum", "describe --status")
        assert status == 0
        assert lines[1].split() == ["LeaderId:", "1"]
        assert len(tool("metadata-quorum", "describe --replication")[1]) == 2
