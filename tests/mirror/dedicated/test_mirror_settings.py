"""mm2.properties: flows, workers and connectors, as MirrorMaker 2 reads them."""

import textwrap
from pathlib import Path

import pytest

from common.process.properties import parse_properties
from connect.definitions.validation import require_valid, validate
from connect.plugins.scan import find_plugins
from millstream.connect.errors import ConfigException
from mirror.dedicated.mirror_maker_settings import CONNECTORS, MirrorMakerSettings, Pair
from mirror.definitions import CHECKPOINT, SOURCE
from mirror.settings import MirrorSettings

TEXT = """
clusters = primary, backup
primary.bootstrap.servers = p:9092
backup.bootstrap.servers = b:9092
backup.security.protocol = SSL
primary.consumer.fetch.max.bytes = 1000
primary->backup.enabled = true
primary->backup.topics = orders.*, payments
replication.factor = 3
offset.storage.replication.factor = 1
tasks.max = 4
"""
FLOW = Pair("primary", "backup")


def settings(more: str = "") -> MirrorMakerSettings:
    return MirrorMakerSettings(parse_properties(TEXT + more))


def source(more: str = "") -> MirrorSettings:
    return MirrorSettings.of(SOURCE, settings(more).connector(FLOW, "MirrorSourceConnector"))


def test_only_flows_that_are_enabled() -> None:
    assert settings().flows() == [FLOW]
    both = settings("backup->primary.enabled = true")
    assert both.flows() == [FLOW, Pair("backup", "primary")]


def test_a_setting_that_nobody_reads_is_told() -> None:
    assert settings().unread() == []
    assert settings("replication.facter = 2").unread() == ["replication.facter"]


def test_the_worker_lives_in_the_target() -> None:
    worker = settings().worker(FLOW)
    assert worker["bootstrap.servers"] == "b:9092"
    assert worker["security.protocol"] == "SSL"
    assert worker["group.id"] == "primary-mm2"
    assert worker["config.storage.topic"] == "mm2-configs.primary.internal"
    assert worker["offset.storage.replication.factor"] == "1"


def test_a_connector_is_told_both_clusters_and_its_flow() -> None:
    made = source()
    assert (made.source, made.target) == FLOW
    assert made["enabled"]
    assert made["replication.factor"] == 3
    assert made.written["tasks.max"] == "4"
    assert made.flow().why_not("customers") == "not included"
    assert made.flow().replicates("orders-eu")
    assert made.offset_syncs_topic == "mm2-offset-syncs.backup.internal"
    consumer = made.consumer("source", "replication")
    assert consumer["bootstrap.servers"] == "p:9092"
    assert consumer["fetch.max.bytes"] == "1000"
    assert consumer["client.id"] == "primary->backup|MirrorSourceConnector|replication"
    producer = made.producer("target", "syncs")
    assert producer["security.protocol"] == "SSL"
    assert "fetch.max.bytes" not in producer
    assert made.written["producer.override.linger.ms"] == "1"
    assert "override.linger.ms" not in producer


def test_the_flow_counts_more_than_what_is_said_of_all() -> None:
    more = "offset-syncs.topic.location = target\nprimary->backup.replication.factor = 1\n"
    made = source(more + "refresh.topics.enabled = false\nsync.topic.acls.interval.seconds = 5")
    assert made["replication.factor"] == 1
    assert made.offset_syncs_topic == "mm2-offset-syncs.primary.internal"
    assert made.interval_seconds("refresh.topics") is None
    assert made.interval_seconds("sync.topic.acls") == 5
    assert made.reads_committed
    assert not source("primary.consumer.isolation.level = read_uncommitted").reads_committed


def test_heartbeats_go_into_a_source_that_no_flow_leads_to() -> None:
    back = settings().beats_back(FLOW)
    assert back is not None
    assert back["source.cluster.alias"] == "backup"
    assert back["target.cluster.alias"] == "primary"
    assert back["producer.override.bootstrap.servers"] == "p:9092"
    assert settings("backup->primary.enabled = true").beats_back(FLOW) is None
    assert settings("emit.heartbeats.enabled = false").beats_back(FLOW) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "clusters = a",
        "clusters = a, b",
        "clusters = a, b\na->b.enabled = true",
        "clusters = a, b\na.bootstrap.servers=x\nb.bootstrap.servers=y\na->c.enabled = true",
    ],
)
def test_files_that_say_too_little_are_refused(text: str) -> None:
    with pytest.raises(ConfigException):
        MirrorMakerSettings(parse_properties(text)).flows()


@pytest.mark.parametrize(
    "more",
    [
        "primary->backup.topics = (",
        "offset-syncs.topic.location = moon",
        "replication.policy.class = Mine",
        "replication.factor = many",
    ],
)
def test_bad_values_are_refused(more: str) -> None:
    with pytest.raises(ConfigException):
        source(more).flow()


def test_checkpoints_have_settings_of_their_own() -> None:
    written = settings("sync.group.offsets.enabled=true").connector(
        FLOW, "MirrorCheckpointConnector"
    )
    made = MirrorSettings.of(CHECKPOINT, written)
    assert made.interval_seconds("sync.group.offsets") == 60
    assert made.checkpoints_topic == "primary.checkpoints.internal"
    assert not made.name_filter("groups").takes("connect-x")


def test_the_file_in_the_readme_is_one() -> None:
    readme = Path(__file__).parents[3] / "mirror" / "README.md"
    lines = readme.read_text().split("<<END\n")[1].split("    END\n")[0]
    told = MirrorMakerSettings(parse_properties(textwrap.dedent(lines)))
    assert told.flows() == [FLOW]
    plugins = find_plugins([])
    for name in CONNECTORS:
        require_valid(validate(plugins, told.connector(FLOW, name)))
    assert told.worker(FLOW)["offset.storage.replication.factor"] == "1"


@pytest.mark.parametrize(
    ("connector", "name"),
    [
        ("MirrorSourceConnector", "topic.filter.class"),
        ("MirrorSourceConnector", "config.property.filter.class"),
        ("MirrorSourceConnector", "forwarding.admin.class"),
        ("MirrorCheckpointConnector", "group.filter.class"),
    ],
)
def test_a_class_of_ones_own_is_refused_and_not_passed_over(connector: str, name: str) -> None:
    config = settings(f"{name} = com.example.Mine").connector(FLOW, connector)
    with pytest.raises(ConfigException, match=r"com\.example\.Mine"):
        MirrorSettings.of(SOURCE if connector == "MirrorSourceConnector" else CHECKPOINT, config)
