"""A mirror between two clusters with TLS, passwords and rules of their own: records and rules."""

import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from common.credentials.access import KafkaAccess
from common.kafka.admin.configs import Resource, ResourceType, alter, describe
from common.kafka.admin.topics import create_partitions, find_topics
from common.kafka.grants import rules
from common.kafka.rights import Right, programs
from common.process.properties import parse_properties
from millstream.processes.settings_files import properties_text, write_private
from millstream.testing.security import USER
from tests.lib.forked import CONNECT
from tests.lib.mirror_process import QUICK, MirrorProcess
from tests.lib.pipeline_processes import Program
from tests.lib.right_trials import Trials, tried
from tests.lib.secured_broker import SecuredBroker, password_of, unneeded
from tests.lib.waiting import until

pytestmark = pytest.mark.slow

SOURCE, TARGET = "mirror", "mirror-target"
"""The mirror's users, and their rights in rights.yaml."""
SECRETS = [password_of(user) for user in (SOURCE, TARGET, USER)]
ALICE, BEN, EVE = "alice", "ben", "eve"


class Mirrored(NamedTuple):
    source: SecuredBroker
    target: SecuredBroker
    process: MirrorProcess
    file: Path

    @property
    def log(self) -> Path:
        return self.file.with_suffix(".log")


@pytest.fixture(scope="module")
def mirrored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirrored]:
    folder = tmp_path_factory.mktemp("mirror")
    # To the source it comes with tokens of an issuer, to the target with a password.
    with SecuredBroker([SOURCE], folder) as source, SecuredBroker([TARGET]) as target:
        source.allow(SOURCE, programs()[SOURCE])
        target.allow(TARGET, programs()[TARGET])
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
            yield Mirrored(source, target, process, file)


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
    for alias, broker, user in (("a", source, SOURCE), ("b", target, TARGET)):
        client = parse_properties(Path(broker.client_file(user)).read_text())
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
    count = _partitions(mirrored.target, "a.orders")
    return sum(_end_of(mirrored, "a.orders", number) for number in range(count))


def _partitions(broker: SecuredBroker, topic: str) -> int:
    """Count the partitions of a topic, none of a missing one."""
    with broker.admin() as admin:
        return sum(len(found.partitions) for found in find_topics(admin, [topic]))


def _change_the_original(mirrored: Mirrored) -> None:
    """Give it more partitions, a setting, and a reader, and wait until the copy has them."""
    _grow(mirrored, 3)
    _keep(mirrored, 1_000_000)
    _commit(mirrored, 20)
    until(lambda: _partitions(mirrored.target, "a.orders") == 3)
    until(lambda: "1000000" in _settings_of_copy(mirrored))
    until(lambda: bool(_end_of(mirrored, "a.checkpoints.internal", 0)))


def _grow(mirrored: Mirrored, partitions: int) -> None:
    with mirrored.source.admin() as admin:
        create_partitions(admin, {"orders": partitions})


def _keep(mirrored: Mirrored, retention_ms: int) -> None:
    changes = {"retention.ms": str(retention_ms)}
    with mirrored.source.admin() as admin:
        alter(admin, {Resource(ResourceType.TOPIC, "orders"): changes})


def _commit(mirrored: Mirrored, offset: int) -> None:
    reader = Consumer({**mirrored.source.broker.client_settings(), "group.id": "g"})
    reader.commit(offsets=[TopicPartition("orders", 0, offset)], asynchronous=False)
    reader.close()


def _settings_of_copy(mirrored: Mirrored) -> list[str | None]:
    copy = Resource(ResourceType.TOPIC, "a.orders")
    with mirrored.target.admin() as admin:
        return [entry.value for entry in describe(admin, copy, with_synonyms=False)]


def _end_of(mirrored: Mirrored, topic: str, partition: int) -> int:
    consumer = Consumer({**mirrored.target.broker.client_settings(), "group.id": "count"})
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)
    consumer.close()
    return int(end)


def _rules(broker: SecuredBroker) -> set[tuple[str, str]]:
    access = KafkaAccess(broker.bootstrap_servers, broker.broker.client_settings("java"))
    return {
        (who, what)
        for who, what in rules(access)
        if who.removeprefix("User:") not in (SOURCE, TARGET)
    }


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
    for broker, name in ((mirrored.source, SOURCE), (mirrored.target, TARGET)):
        decisions = list(broker.decisions())
        assert [each for each in decisions if not each.is_allowed] == []
        assert unneeded(decisions, programs()[name]) == []


def test_no_password_is_in_what_the_target_stores(mirrored: Mirrored) -> None:
    """In the topic of the connectors' configurations stands where a password is to be found."""
    folder = mirrored.target.broker.data_folder
    stored = b"".join(file.read_bytes() for file in folder.glob("mm2-*/*.log"))
    assert b"${mirror:MirrorSourceConnector:source.cluster.sasl.jaas.config}" in stored
    assert not any(secret.encode() in stored for secret in SECRETS)


def test_no_password_is_in_its_log(mirrored: Mirrored) -> None:
    text = mirrored.log.read_text()
    assert not any(secret in text for secret in SECRETS)


# --- one right fewer ---

_GROWS_EVERY = 5
"""Of so many changes one is a new partition, which lets the mirror's tasks start anew."""


class Changes:
    """What others do at the source while the mirror runs without a right: a change a second."""

    def __init__(self, mirrored: Mirrored) -> None:
        self._mirrored = mirrored
        self._numbers = count(1)
        self._next_seconds = 0.0

    def __call__(self) -> None:
        if time.monotonic() < self._next_seconds:
            return
        self._next_seconds = time.monotonic() + 1
        source, number = self._mirrored.source, next(self._numbers)
        _produce(source, 10)
        _keep(self._mirrored, 1_000_000 + number)
        _commit(self._mirrored, 20 + number)
        source.allow(f"reader-{number}", [Right("topic", "orders", False, "READ")])
        original = _partitions(source, "orders")
        copied = _partitions(self._mirrored.target, "a.orders")
        if number % _GROWS_EVERY == 0 and copied == original:
            _grow(self._mirrored, copied + 1)


def test_the_mirror_fails_with_one_right_fewer(mirrored: Mirrored, tmp_path: Path) -> None:
    """It is denied what the right is about, and says so."""
    mirrored.process.stop()
    mirrored.source.log_decisions("INFO")
    mirrored.target.log_decisions("INFO")
    changes = Changes(mirrored)

    def start(log: Path) -> Program:
        return Program(log, "mirror", str(mirrored.file), server=CONNECT)

    found: list[str] = []
    for broker, user in ((mirrored.source, SOURCE), (mirrored.target, TARGET)):
        found += Trials(broker, tmp_path).find_unneeded(user, tried(user), start, changes)
        text = (tmp_path / f"{user}.trial.log").read_text()
        assert not any(secret in text for secret in SECRETS)
    assert found == [], "\n".join(found)
