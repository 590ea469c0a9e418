"""MirrorMaker 2 and our mirror: the same bytes, the same names, and each goes on for the other."""

import random
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.cimpl import NewTopic

from millstream.mirror import (
    Checkpoint,
    Heartbeat,
    OffsetSync,
    RemoteClusterUtils,
    TopicPartition,
)
from millstream.testing import LocalBroker
from mirror.offsets.sync_store import OffsetSyncStore
from tests.lib.apache_kafka import kafka_libs, running_node
from tests.lib.apache_mirror_maker import ApacheMirrorMaker, ask_classes, mirror_libs
from tests.lib.connect_worker import eventually
from tests.lib.mirror_process import (
    MirrorProcess,
    consume_some,
    produce,
    properties_file,
    records,
    topic_names,
)

pytestmark = pytest.mark.interop

START_SECONDS = 90
QUICK_DISCOVERY = {f"{of}plugin.discovery": "service_load" for of in ("", "a.", "b.", "c.")}
"""MirrorMaker 2 looks for plugins once for itself and once for each direction; without this it
reads all classes of all jars each time, which is two thirds of its start."""
AT = TopicPartition("topic", 0)


def history(seed: int) -> tuple[list[tuple[int, int]], list[int]]:
    """Make syncs of one partition, with records left out, and offsets to ask for."""
    chance = random.Random(seed)
    upstream = downstream = 0
    syncs = []
    for _ in range(chance.randrange(1, 400)):
        gap = chance.choice([1, 5, 101, 101, 101, 3000])
        upstream += gap
        downstream += chance.randrange(1, gap + 1)
        syncs.append((upstream, downstream))
    return syncs, [chance.randrange(upstream + 200) for _ in range(60)]


def test_bytes_and_translations_are_those_of_its_classes() -> None:
    at = TopicPartition("tøpic", 7)
    ours = [
        OffsetSync(at, 258, 2**40),
        Checkpoint("grüppe", at, 5, 2**62, "meta"),
        Heartbeat("a", "b", 1_700_000_000_123),
    ]
    histories = [history(seed) for seed in range(40)]
    told = ask_classes(
        mirror_libs(),
        {
            "syncs": [[*at, 258, 2**40]],
            "checkpoints": [["grüppe", *at, 5, 2**62, "meta"]],
            "heartbeats": [["a", "b", 1_700_000_000_123]],
            "stores": [{"syncs": syncs, "offsets": asked} for syncs, asked in histories],
        },
    )
    parts = [part.hex() for each in ours for part in (each.record_key(), each.record_value())]
    assert parts == told["records"]
    read_again_by_ours = read_again_by_theirs = 0
    for (syncs, asked), theirs in zip(histories, told["stores"], strict=True):
        store = OffsetSyncStore()
        for sync in syncs:
            store.replay(OffsetSync(AT, *sync))
        for offset, expected in zip(asked, theirs, strict=True):
            found = store.translate(AT, offset)
            assert (found is None) == (expected == -1)
            if found is not None:
                # The best there is: what the nearest of all syncs says.
                best = max((one, other) for one, other in syncs if one <= offset)
                limit = best[1] + (offset > best[0])
                assert found <= limit
                read_again_by_ours += limit - found
                read_again_by_theirs += limit - expected
    assert read_again_by_ours <= read_again_by_theirs


@dataclass
class Run:
    a: str
    b: str
    properties: Path
    libs: Path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    libs = mirror_libs()
    folder = tmp_path_factory.mktemp("mirror")
    with LocalBroker() as a, LocalBroker() as b:
        addresses = {"a": a.bootstrap_servers, "b": b.bootstrap_servers}
        settings = {
            "a->b.enabled": "true",
            "b->a.emit.heartbeats.enabled": "true",
        } | QUICK_DISCOVERY
        yield Run(
            a.bootstrap_servers,
            b.bootstrap_servers,
            properties_file(folder, addresses, settings),
            libs,
        )


def make_topic(servers: str, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    config = {"cleanup.policy": "compact", "max.message.bytes": "2000000"}
    admin.create_topics([NewTopic(name, 2, 1, config=config)])[name].result(20)


def configs(servers: str, topics: list[str]) -> dict[str, dict[str, Any]]:
    admin = AdminClient({"bootstrap.servers": servers})
    resources = [ConfigResource(ConfigResource.Type.TOPIC, each) for each in topics]
    futures = admin.describe_configs(resources)
    return {
        each.name: {name: entry.value for name, entry in future.result(20).items()}
        for each, future in futures.items()
    }


def is_copied(run: Run, count: int) -> bool:
    if "a.orders" not in topic_names(run.b):
        return False
    return len(found := records(run.b, "a.orders")) >= count and found == records(run.a, "orders")


def translated(run: Run) -> dict[TopicPartition, int]:
    found = RemoteClusterUtils.translate_offsets({"bootstrap.servers": run.b}, "a", "readers")
    return {at: each.offset for at, each in found.items()}


def test_each_goes_on_where_the_other_stopped(run: Run) -> None:
    """The same file, the same topics of configurations and offsets: nothing twice, nothing lost."""
    make_topic(run.a, "orders")
    produce(run.a, "orders", range(200), 2)
    consume_some(run.a, "orders", "readers", 200)
    with ApacheMirrorMaker(run.properties, run.libs) as theirs:
        eventually(lambda: is_copied(run, 200), START_SECONDS)
        by_theirs = eventually(lambda: len(found := translated(run)) == 2 and found, 30)
        made_by_theirs = topic_names(run.b)
        assert theirs.stop() in (0, 143)
    kept = configs(run.b, sorted(made_by_theirs))
    produce(run.a, "orders", range(200, 400), 2)
    with MirrorProcess(run.properties) as ours:
        eventually(lambda: is_copied(run, 400), 30)
        consume_some(run.a, "orders", "readers", 200)
        eventually(lambda: all(translated(run)[at] > before for at, before in by_theirs.items()))
        assert configs(run.b, sorted(made_by_theirs)) == kept
        assert topic_names(run.b) == made_by_theirs
        assert ours.stop() == 0
    beats = [
        (key or b"", value or b"", sent) for key, value, _, _, sent in records(run.b, "heartbeats")
    ]
    asked = {"servers": run.b, "alias": "a", "group": "readers"}
    told = ask_classes(
        run.libs, {**asked, "beats": [[key.hex(), value.hex()] for key, value, _ in beats]}
    )
    # Its own and ours, one after the other.
    assert told["beats"] == [["a", "b", sent] for _, _, sent in beats]
    assert [[*astuple(Heartbeat.of_record(*each[:2]))] for each in beats] == told["beats"]
    ours_says = {f"{at.topic}-{at.partition}": offset for at, offset in translated(run).items()}
    assert told["offsets"] == ours_says
    assert (told["hops"], told["upstream"]) == (1, ["a"])
    produce(run.a, "orders", range(400, 500), 2)
    with ApacheMirrorMaker(run.properties, run.libs):
        eventually(lambda: is_copied(run, 500), START_SECONDS)
        # What it knows of offsets until now was written by ours.
        by_ours = translated(run)
        consume_some(run.a, "orders", "readers", 100)
        eventually(lambda: all(translated(run)[at] > before for at, before in by_ours.items()), 30)


SETTINGS = {
    "retention.ms": "123456789",
    "max.message.bytes": "2000000",
    "compression.type": "lz4",
    "segment.bytes": "10485760",
    # These stay behind.
    "message.timestamp.type": "LogAppendTime",
    "min.insync.replicas": "1",
    "unclean.leader.election.enable": "true",
}


def test_each_makes_the_same_copy_of_one_source(tmp_path: Path) -> None:
    """Topics, partitions, settings as they are made and as they change, records as they are."""
    libs = mirror_libs()
    with LocalBroker() as a, LocalBroker() as b, LocalBroker() as c:
        source, by_ours, by_theirs = (each.bootstrap_servers for each in (a, b, c))
        admin = AdminClient({"bootstrap.servers": source})
        new = [NewTopic("orders", 3, 1, config=SETTINGS), NewTopic("lines.x", 1, 1)]
        for future in admin.create_topics(new).values():
            future.result(20)
        produce(source, "orders", range(300), 3)
        produce(source, "lines.x", range(50))
        files = {}
        for target, servers in (("b", by_ours), ("c", by_theirs)):
            (tmp_path / target).mkdir()
            settings = {f"a->{target}.enabled": "true"} | QUICK_DISCOVERY
            addresses = {"a": source, target: servers}
            files[target] = properties_file(tmp_path / target, addresses, settings)
        with MirrorProcess(files["b"]), ApacheMirrorMaker(files["c"], libs):
            for topic in ("orders", "lines.x"):
                expected = records(source, topic)
                copied = partial(records, topic=f"a.{topic}")
                eventually(lambda: copied(by_ours) == expected, 30)  # noqa: B023
                eventually(lambda: copied(by_theirs) == expected, START_SECONDS)  # noqa: B023
            assert topics_of(by_ours) == topics_of(by_theirs)
            names = ["a.lines.x", "a.orders"]
            made = configs(by_ours, names)
            assert made["a.orders"]["compression.type"] == "lz4"
            assert made["a.orders"]["message.timestamp.type"] == "CreateTime"
            eventually(lambda: configs(by_theirs, names) == configs(by_ours, names))
            give_up(admin, "orders", "retention.ms")
            for servers in (by_ours, by_theirs):
                eventually(lambda: is_default(servers, "a.orders", "retention.ms"))  # noqa: B023
            assert configs(by_theirs, names) == configs(by_ours, names)


def topics_of(servers: str) -> dict[str, int]:
    """Give the topics of a target, and how many partitions each has."""
    found = AdminClient({"bootstrap.servers": servers}).list_topics(timeout=20).topics
    return {name: len(each.partitions) for name, each in found.items()}


def give_up(admin: AdminClient, topic: str, name: str) -> None:
    change = ConfigEntry(name, None, incremental_operation=AlterConfigOpType.DELETE)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[change])
    admin.incremental_alter_configs([resource])[resource].result(20)


def is_default(servers: str, topic: str, name: str) -> bool:
    admin = AdminClient({"bootstrap.servers": servers})
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    return bool(admin.describe_configs([resource])[resource].result(20)[name].is_default)


AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:ANONYMOUS",
}
"""Rules are kept, and stand in nobody's way who says nothing of itself."""
FOLLOWS_ALL = {
    "a->b.enabled": "true",
    "sync.group.offsets.enabled": "true",
    "sync.topic.acls.interval.seconds": "1",
}


@pytest.fixture(scope="module")
def apaches_clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    libs = kafka_libs()
    folders = [tmp_path_factory.mktemp(alias) for alias in "ab"]
    with (
        running_node(libs, folders[0], AUTHORIZER) as a,
        running_node(libs, folders[1], AUTHORIZER) as b,
    ):
        yield a, b


def test_ours_follows_apaches_clusters(apaches_clusters: tuple[str, str], tmp_path: Path) -> None:
    a, b = apaches_clusters
    make_topic(a, "orders")
    produce(a, "orders", range(200), 2)
    consume_some(a, "orders", "readers", 200)
    properties = properties_file(tmp_path, {"a": a, "b": b}, FOLLOWS_ALL)
    run = Run(a, b, properties, tmp_path)
    with MirrorProcess(properties) as ours:
        eventually(lambda: is_copied(run, 200), 30)
        ends = {TopicPartition("a.orders", number): 100 for number in (0, 1)}
        eventually(lambda: translated(run) == ends)
        assert configs(b, ["a.orders"])["a.orders"]["max.message.bytes"] == "2000000"
        assert ours.stop() == 0


class Rule(NamedTuple):
    """An access rule of a topic, in Kafka's words."""

    topic: str
    user: str
    operation: str
    permission: str = "ALLOW"
    pattern: str = "LITERAL"


def give_rules(servers: str, *rules: Rule) -> None:
    bindings = [
        AclBinding(
            ResourceType.TOPIC,
            each.topic,
            ResourcePatternType[each.pattern],
            f"User:{each.user}",
            "*",
            AclOperation[each.operation],
            AclPermissionType[each.permission],
        )
        for each in rules
    ]
    admin = AdminClient({"bootstrap.servers": servers})
    for future in admin.create_acls(bindings).values():
        future.result(20)


def rules_of(servers: str) -> set[Rule]:
    any_text: Any = None
    everything = AclBindingFilter(
        ResourceType.ANY,
        any_text,
        ResourcePatternType.ANY,
        any_text,
        any_text,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    admin = AdminClient({"bootstrap.servers": servers})
    return {
        Rule(
            each.name,
            each.principal.removeprefix("User:"),
            each.operation.name,
            each.permission_type.name,
            each.resource_pattern_type.name,
        )
        for each in admin.describe_acls(everything).result(20)
    }


def test_access_rules_follow_between_apaches_clusters(
    apaches_clusters: tuple[str, str], tmp_path: Path
) -> None:
    a, b = apaches_clusters
    make_topic(a, "secrets")
    give_rules(
        a,
        Rule("secrets", "reads", "READ"),
        Rule("secrets", "writes", "WRITE"),
        Rule("secrets", "does", "ALL"),
        Rule("secrets", "stranger", "WRITE", "DENY"),
        Rule("secrets", "nobody", "ALL", "DENY"),
        Rule("sec", "reads-more", "READ", pattern="PREFIXED"),
        Rule("*", "reads-all", "READ"),
        Rule("secrets.replica", "reads", "READ"),
    )
    there = {
        Rule("a.secrets", "reads", "READ"),
        Rule("a.secrets", "does", "READ"),
        Rule("a.secrets", "stranger", "WRITE", "DENY"),
        Rule("a.secrets", "nobody", "ALL", "DENY"),
    }
    with MirrorProcess(properties_file(tmp_path, {"a": a, "b": b}, FOLLOWS_ALL)):
        eventually(lambda: rules_of(b) == there)
        give_rules(a, Rule("secrets", "comes-later", "DESCRIBE"))
        eventually(lambda: rules_of(b) == there | {Rule("a.secrets", "comes-later", "DESCRIBE")})
