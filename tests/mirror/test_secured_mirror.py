"""A mirror between two clusters with TLS, passwords and rules of their own: records and rules."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions

from millrace.security.access import KafkaAccess
from millrace.security.grants import rules
from millrace.security.properties import parse_properties, properties_text, write_private
from millrace.security.rights import Right, programs
from millrace.testing.security import USER
from tests.lib.mirror_process import QUICK, MirrorProcess
from tests.lib.secured_broker import SecuredBroker, unneeded
from tests.lib.waiting import until

pytestmark = pytest.mark.slow

MIRROR = "mirror"
ALICE, BEN, EVE = "alice", "ben", "eve"


class Mirrored(NamedTuple):
    source: SecuredBroker
    target: SecuredBroker
    process: MirrorProcess
    log: Path


@pytest.fixture(scope="module")
def mirrored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirrored]:
    folder = tmp_path_factory.mktemp("mirror")
    # To the source it comes with tokens of an issuer, to the target with a password.
    with SecuredBroker([MIRROR], folder) as source, SecuredBroker([MIRROR]) as target:
        source.allow(MIRROR, programs()[MIRROR])
        target.allow(MIRROR, programs()["mirror-target"])
        source.broker.create_topic("orders", 2)
        source.broker.create_topic("left-out", 1)
        _produce(source, 100)
        source.allow(ALICE, [Right("topic", "orders", False, "READ")])
        source.allow(BEN, [Right("topic", "orders", False, "WRITE")])
        source.allow(EVE, [Right("topic", "orders", False, "ALL")])
        source.allow(ALICE, [Right("topic", "left-out", False, "READ")])
        source.allow(ALICE, [Right("topic", "ord", True, "DESCRIBE")])
        file = folder / "mm2.properties"
        write_private(file, properties_text(_settings(source, target)))
        with MirrorProcess(file) as process:
            yield Mirrored(source, target, process, file.with_suffix(".log"))


def _settings(source: SecuredBroker, target: SecuredBroker) -> dict[str, str]:
    told = {
        **QUICK,
        "clusters": "a, b",
        "a->b.enabled": "true",
        "topics": "orders",
        "offset-syncs.topic.location": "target",
        "sync.topic.acls.interval.seconds": "1",
        "b->a.emit.heartbeats.enabled": "false",
    }
    for alias, broker in (("a", source), ("b", target)):
        client = parse_properties(Path(broker.client_file(MIRROR)).read_text())
        told |= {f"{alias}.{name}": value for name, value in client.items()}
        told[f"{alias}.bootstrap.servers"] = broker.bootstrap_servers
    return told


def _produce(broker: SecuredBroker, count: int) -> None:
    producer = Producer(broker.broker.client_settings())
    for number in range(count):
        producer.produce("orders", b"%d" % number)
    assert producer.flush(30) == 0


def _records(mirrored: Mirrored) -> int:
    """Count the records that the target has, as its administrator sees them."""
    found = mirrored.target.admin.list_topics(timeout=10).topics
    if "a.orders" not in found:
        return 0
    return sum(_end_of(mirrored, "a.orders", number) for number in found["a.orders"].partitions)


def _change_the_original(mirrored: Mirrored) -> None:
    """Give it more partitions, a setting, and a reader, and wait until the copy has them."""
    admin = mirrored.source.admin
    admin.create_partitions([NewPartitions("orders", 3)])["orders"].result(20)
    retention = ConfigEntry("retention.ms", "1000000", incremental_operation=AlterConfigOpType.SET)
    topic = ConfigResource(ConfigResource.Type.TOPIC, "orders", incremental_configs=[retention])
    admin.incremental_alter_configs([topic])[topic].result(20)
    reader = Consumer({**mirrored.source.broker.client_settings(), "group.id": "g"})
    reader.commit(offsets=[TopicPartition("orders", 0, 20)], asynchronous=False)
    reader.close()
    target = mirrored.target.admin
    until(lambda: len(target.list_topics(timeout=10).topics["a.orders"].partitions) == 3)
    until(lambda: "1000000" in _settings_of_copy(mirrored))
    until(lambda: bool(_end_of(mirrored, "a.checkpoints.internal", 0)))


def _settings_of_copy(mirrored: Mirrored) -> list[str]:
    copy = ConfigResource(ConfigResource.Type.TOPIC, "a.orders")
    found = mirrored.target.admin.describe_configs([copy])[copy].result(20)
    return [entry.value for entry in found.values()]


def _end_of(mirrored: Mirrored, topic: str, partition: int) -> int:
    consumer = Consumer({**mirrored.target.broker.client_settings(), "group.id": "count"})
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)
    consumer.close()
    return int(end)


def _rules(broker: SecuredBroker) -> set[tuple[str, str]]:
    access = KafkaAccess(broker.bootstrap_servers, broker.broker.client_settings("java"))
    return {(who, what) for who, what in rules(access) if MIRROR not in who}


def test_records_arrive(mirrored: Mirrored) -> None:
    until(lambda: _records(mirrored) == 100, shown=mirrored.log.read_text)


def test_who_may_read_the_original_may_read_the_copy(mirrored: Mirrored) -> None:
    """As in MirrorMaker 2: WRITE is not copied, ALL becomes READ, prefixes stay where they are."""
    wanted = {
        (f"User:{ALICE}", "ALLOW READ on topic a.orders"),
        (f"User:{EVE}", "ALLOW READ on topic a.orders"),
    }
    until(lambda: _rules(mirrored.target) == wanted, shown=lambda: _rules(mirrored.target))


def test_a_rule_that_comes_later_is_copied_within_the_interval(mirrored: Mirrored) -> None:
    mirrored.source.allow(BEN, [Right("topic", "orders", False, "READ")])
    until(lambda: (f"User:{BEN}", "ALLOW READ on topic a.orders") in _rules(mirrored.target))


def test_the_mirror_was_denied_nothing_and_needs_every_right(mirrored: Mirrored) -> None:
    _change_the_original(mirrored)
    mirrored.process.stop()
    mirrored.process.start()
    _produce(mirrored.source, 10)
    until(lambda: _records(mirrored) == 110, shown=mirrored.log.read_text)
    for broker, name in ((mirrored.source, MIRROR), (mirrored.target, "mirror-target")):
        decisions = list(broker.decisions())
        assert [each for each in decisions if not each.is_allowed] == []
        assert unneeded(decisions, programs()[name]) == []


def test_no_password_is_in_what_the_target_stores(mirrored: Mirrored) -> None:
    """In the topic of the connectors' configurations stands where a password is to be found."""
    folder = mirrored.target.broker.data_folder
    stored = b"".join(file.read_bytes() for file in folder.glob("mm2-*/*.log"))
    assert b"${mirror:MirrorSourceConnector:source.cluster.sasl.jaas.config}" in stored
    assert b"mirror-secret" not in stored


def test_no_password_is_in_its_log(mirrored: Mirrored) -> None:
    text = mirrored.log.read_text()
    assert "mirror-secret" not in text
    assert f"{USER}-secret" not in text
