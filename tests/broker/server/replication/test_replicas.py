"""The logs of a node follow the metadata: what it leads, what it drops, what it never touches."""

from collections.abc import Sequence
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from broker.config.broker_config import BrokerConfig
from broker.log.config import LogConfig
from broker.log.log_directories import LogDirectories
from broker.log.log_directory import DirectorySettings
from broker.metadata.image import MetadataImage
from broker.model import TopicPartition
from broker.records.build import build_batch
from broker.server.replication.file_steps import AT_ONCE, PER_TURN
from broker.server.replication.partitions import Partitions
from broker.server.replication.replicas import Replicas
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.message import Message
from common.kafka.protocol.records.metadata import (
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tests.lib.logs import NOW_MS
from tests.lib.served_replica import SimulatedLoop
from tests.lib.simulated_storage import SimulatedStorage

NODE, OTHER = 1, 2
FIRST_ID, SECOND_ID = b"1" * 16, b"2" * 16
ORDERS_0 = TopicPartition("orders", 0)


class Node:
    """A broker as `Replicas` sees it, over a simulated disk; `replay` changes its metadata."""

    def __init__(
        self, storage: SimulatedStorage | None = None, paths: Sequence[str] = ("/data",)
    ) -> None:
        self.storage = storage or SimulatedStorage()
        ids = (b"directory-id-%03d" % number for number in count())
        settings = DirectorySettings("cluster", NODE, lambda topic: LogConfig(), ids.__next__)
        self.directories = LogDirectories(self.storage, paths, settings)
        self.directories.open(NOW_MS)
        self.image = MetadataImage()
        metadata: Any = SimpleNamespace(image=self.image)
        clock: Any = SimpleNamespace(timestamp_ms=lambda: NOW_MS, now_ms=lambda: 0)
        self.partitions = Partitions(
            NODE, metadata, clock, wake=lambda fetches: None, on_flush_wanted=lambda: None
        )
        static = BrokerConfig.from_settings({"node.id": str(NODE)})
        self.settings: Any = SimpleNamespace(
            static=static, current=SimpleNamespace(log=LogConfig())
        )
        self.loop: Any = SimulatedLoop()
        self.failures: list[Any] = []
        self.opened: list[TopicPartition] = []
        self.replicas = Replicas(
            self.loop,
            self.settings,
            metadata,
            self.partitions,
            self.directories,
            clock,
            on_deleted=lambda: None,
            on_failure=lambda *failure: self.failures.append(failure),
        )
        self.replicas.on_opened = self.opened.extend

    def replay(self, *records: Message) -> None:
        """Let the metadata change, and follow it."""
        for record in records:
            self.image.replay(record)
        self.replicas.apply(self.image.take_delta())

    def start(self, *records: Message) -> None:
        """Let the metadata be so when the node starts."""
        for record in records:
            self.image.replay(record)
        self.replicas.note_deleted(self.image.take_delta())
        self.replicas.open_all()

    def leads(self) -> list[TopicPartition]:
        return sorted(
            partition.topic_partition for partition in self.partitions if partition.leader
        )

    def restarted(self) -> "Node":
        self.directories.close()
        return Node(self.storage)


def topic(
    topic_id: bytes = FIRST_ID, leader: int = NODE, epoch: int = 0, partition_count: int = 1
) -> list[Message]:
    partitions = [
        PartitionRecord(
            partition_id=number,
            topic_id=topic_id,
            replicas=[leader],
            isr=[leader],
            leader=leader,
            leader_epoch=epoch,
            partition_epoch=0,
            directories=[bytes(16)],
        )
        for number in range(partition_count)
    ]
    return [TopicRecord(name="orders", topic_id=topic_id), *partitions]


def append(node: Node) -> None:
    log = node.partitions.get(*ORDERS_0).log
    batch = build_batch([(None, b"value", (), NOW_MS)])
    log.append_as_leader(batch, leader_epoch=log.leader_epoch, timestamp_ms=NOW_MS)


def test_it_leads_what_it_is_given_and_nothing_else() -> None:
    node = Node()
    node.replay(*topic())
    assert node.leads() == [ORDERS_0]
    other = Node()
    other.replay(*topic(leader=OTHER))
    assert other.leads() == []
    assert other.directories.get(ORDERS_0) is None


def test_a_leader_that_is_taken_away_keeps_its_log_and_gets_it_back() -> None:
    node = Node()
    node.replay(*topic())
    append(node)
    node.replay(PartitionChangeRecord(partition_id=0, topic_id=FIRST_ID, leader=-1))
    assert node.leads() == []
    node.replay(PartitionChangeRecord(partition_id=0, topic_id=FIRST_ID, leader=NODE))
    log = node.partitions.get(*ORDERS_0).log
    assert (log.log_end_offset, log.high_watermark, log.leader_epoch) == (1, 1, 2)


def test_a_deleted_topic_is_gone_and_its_name_is_free() -> None:
    node = Node()
    node.replay(*topic())
    append(node)
    node.replay(RemoveTopicRecord(topic_id=FIRST_ID), *topic(SECOND_ID))
    log = node.partitions.get(*ORDERS_0).log
    assert (log.topic_id, log.log_end_offset) == (SECOND_ID, 0)


def test_a_topic_deleted_and_made_again_while_the_node_was_down_begins_empty() -> None:
    node = Node()
    node.start(*topic())
    append(node)
    again = node.restarted()
    again.start(*topic(), RemoveTopicRecord(topic_id=FIRST_ID), *topic(SECOND_ID))
    log = again.partitions.get(*ORDERS_0).log
    assert (log.topic_id, log.log_end_offset) == (SECOND_ID, 0)


def test_a_log_that_is_not_known_to_be_deleted_is_set_aside_and_not_led_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """After a lost metadata log, or with a `partition.metadata` that names another topic."""
    node = Node()
    node.start(*topic())
    append(node)
    again = node.restarted()
    again.start(*topic(SECOND_ID))
    stray = f"/data/orders-0.{FIRST_ID.hex()}-stray"
    for _ in range(2):
        assert again.leads() == []
        with pytest.raises(KafkaError) as refusal:
            again.partitions.get(*ORDERS_0)
        assert refusal.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        assert again.storage.names("/data").count("orders-0") == 0
        assert again.storage.status(f"{stray}/{0:020d}.log").size_bytes > 0  # type: ignore[union-attr]
        again = again.restarted()
        again.start(*topic(SECOND_ID))
    warnings = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert f"stray partition set aside directory={stray} log_end_offset=1" in warnings[0]
    assert "topic id" in warnings[0]
    assert "move it out of the log directory" in warnings[0]


@pytest.mark.parametrize(("in_sync", "begins"), [([OTHER], True), ([OTHER, NODE], False)])
def test_a_replica_that_its_leader_fills_begins_anew_beside_a_stray(
    in_sync: list[int], begins: bool
) -> None:
    """But not one that should have everything: somebody may count on that."""
    node = Node()
    node.start(*topic())
    append(node)
    again = node.restarted()
    created, partition = topic(SECOND_ID, leader=OTHER)
    assert isinstance(partition, PartitionRecord)
    partition.replicas, partition.isr = [OTHER, NODE], in_sync
    partition.directories = [bytes(16), bytes(16)]
    again.start(created, partition)
    assert f"orders-0.{FIRST_ID.hex()}-stray" in again.storage.names("/data")
    found = again.directories.get(ORDERS_0)
    assert (found is not None) == begins
    assert found is None or (found.log_end_offset, found.topic_id) == (0, SECOND_ID)
    if begins:
        assert again.restarted().directories.get(ORDERS_0) is not None


def test_a_stray_goes_back_to_work_when_it_has_its_name_again() -> None:
    node = Node()
    node.start(*topic())
    append(node)
    again = node.restarted()
    again.start(*topic(SECOND_ID))
    again.directories.close()
    again.storage.rename(f"/data/orders-0.{FIRST_ID.hex()}-stray", "/data/orders-0")
    again.storage.remove("/data/orders-0/partition.metadata")
    mended = Node(again.storage)
    mended.start(*topic(SECOND_ID))
    assert mended.partitions.get(*ORDERS_0).log.log_end_offset == 1


def test_a_topic_that_goes_takes_no_log_of_another_with_its_name() -> None:
    node = Node()
    node.start(*topic())
    append(node)
    again = node.restarted()
    again.start(*topic(SECOND_ID, leader=OTHER))
    again.replay(RemoveTopicRecord(topic_id=SECOND_ID))
    assert again.directories.get(ORDERS_0) is not None


def test_its_records_are_there_after_a_restart() -> None:
    node = Node()
    node.start(*topic())
    append(node)
    again = node.restarted()
    again.start(*topic(epoch=3))
    log = again.partitions.get(*ORDERS_0).log
    assert (log.log_end_offset, log.high_watermark, log.leader_epoch) == (1, 1, 3)


@pytest.mark.parametrize("records", [[], topic(leader=OTHER)], ids=["gone", "elsewhere"])
def test_what_a_start_finds_and_does_not_know_is_kept_and_named(
    records: list[Message], caplog: pytest.LogCaptureFixture
) -> None:
    node = Node()
    node.start(*topic())
    append(node)
    again = node.restarted()
    again.start(*records)
    assert again.leads() == []
    assert again.directories.get(ORDERS_0) is not None
    assert "not assigned to this node: directory=/data/orders-0" in caplog.text


def test_a_directory_that_the_cluster_knows_and_is_not_here_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its partitions have no leader, and a `directory.id` that was changed looks like that."""
    node = Node()
    created, partition = topic(leader=-1)
    assert isinstance(partition, PartitionRecord)
    partition.replicas, partition.directories = [NODE], [b"directory-id-two"]
    node.start(created, partition)
    assert "directory.id=ZGlyZWN0b3J5LWlkLXR3bw replicas=1" in caplog.text
    assert "put right in /data/meta.properties" in caplog.text


def test_settings_reach_the_log() -> None:
    node = Node()
    node.replay(*topic())
    setting = ConfigRecord(
        resource_type=2, resource_name="orders", name="retention.ms", value="1234"
    )
    node.replay(setting)
    assert node.partitions.get(*ORDERS_0).log.config.retention_ms == 1234


def test_a_disk_that_fails_is_no_end(caplog: pytest.LogCaptureFixture) -> None:
    node = Node()
    node.storage.fail_after(0)
    node.replay(*topic())
    assert node.leads() == []
    assert "cannot open a log" in caplog.text


def test_a_replica_whose_disk_has_failed_is_not_made_anew_on_another() -> None:
    node = Node(paths=["/one", "/two"])
    node.start(*topic())
    (lost,) = [each for each in node.directories.directories if each.logs]
    placed = PartitionChangeRecord(
        partition_id=0, topic_id=FIRST_ID, directories=[lost.directory_id]
    )
    node.replay(placed)
    node.replicas.forget(node.directories.take_offline(lost.path, OSError(5, "input/output error")))
    node.replay(PartitionChangeRecord(partition_id=0, topic_id=FIRST_ID, leader=-1))
    assert node.directories.get(ORDERS_0) is None
    # Another topic of its name has nothing to do with that.
    node.replay(RemoveTopicRecord(topic_id=FIRST_ID), *topic(SECOND_ID))
    assert node.leads() == [ORDERS_0]


# --- very many partitions ---

MANY = 3 * AT_ONCE


def test_very_many_partitions_come_a_few_in_a_turn() -> None:
    node = Node()
    node.replay(*topic(partition_count=MANY))
    assert len(node.leads()) == AT_ONCE
    assert not node.partitions.is_complete("orders")
    with pytest.raises(KafkaError) as refusal:
        node.partitions.get("orders", MANY - 1)
    assert refusal.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER, "ask again, it is coming"
    assert node.opened == []
    node.loop.advance()
    assert len(node.leads()) == MANY
    assert node.opened == node.leads()[AT_ONCE:], "what came later is told"
    assert node.partitions.is_complete("orders")


def test_no_turn_opens_more_than_a_few() -> None:
    node = Node()
    node.replay(*topic(partition_count=MANY))
    opened = [len(node.leads())]
    while opened[-1] < MANY:
        node.loop.take_turn()
        opened.append(len(node.leads()))
    assert opened == [*range(AT_ONCE, MANY, PER_TURN), MANY]


def test_very_many_partitions_go_at_once_and_their_files_a_few_in_a_turn() -> None:
    node = Node()
    node.replay(*topic(partition_count=MANY))
    node.loop.advance()
    node.replay(RemoveTopicRecord(topic_id=FIRST_ID))
    assert node.leads() == []
    assert len(list(node.directories.all())) == MANY - AT_ONCE
    node.loop.advance()
    assert not list(node.directories.all())


def test_a_topic_that_is_deleted_before_it_is_open_never_is() -> None:
    node = Node()
    node.replay(*topic(partition_count=MANY))
    node.replay(RemoveTopicRecord(topic_id=FIRST_ID))
    assert node.partitions.is_complete("orders")
    node.loop.advance()
    assert node.leads() == []
    assert not list(node.directories.all())
    assert len(node.storage.names("/data")) <= 4 + AT_ONCE, "the others were never made"


@pytest.mark.parametrize("advances", [True, False])
def test_a_topic_made_again_at_once_has_nothing_of_the_one_before(*, advances: bool) -> None:
    node = Node()
    node.replay(*topic(partition_count=MANY))
    node.loop.advance()
    append(node)
    node.replay(RemoveTopicRecord(topic_id=FIRST_ID))
    if advances:
        node.loop.advance()
    node.replay(*topic(SECOND_ID, partition_count=MANY))
    node.loop.advance()
    assert len(node.leads()) == MANY
    logs = list(node.directories.all())
    assert {(log.topic_id, log.log_end_offset) for log in logs} == {(SECOND_ID, 0)}
    assert not any(name.endswith("-stray") for name in node.storage.names("/data"))


def test_a_replica_that_comes_back_before_its_files_are_gone_keeps_them() -> None:
    node = Node()
    node.replay(*topic(partition_count=MANY))
    node.loop.advance()
    elsewhere = [
        PartitionChangeRecord(
            partition_id=number, topic_id=FIRST_ID, replicas=[OTHER], isr=[OTHER], leader=OTHER
        )
        for number in range(MANY)
    ]
    back = PartitionChangeRecord(
        partition_id=MANY - 1, topic_id=FIRST_ID, replicas=[OTHER, NODE], isr=[OTHER]
    )
    node.replay(*elsewhere)
    node.replay(back)
    node.loop.advance()
    kept = [log.topic_partition for log in node.directories.all()]
    assert kept == [TopicPartition("orders", MANY - 1)]
    assert node.partitions.find(*kept[0]) is not None


def test_a_stop_leaves_no_files_of_what_was_deleted() -> None:
    node = Node()
    node.replay(*topic(partition_count=MANY))
    node.loop.advance()
    node.replay(RemoveTopicRecord(topic_id=FIRST_ID))
    node.replicas.stop()
    assert not list(node.restarted().directories.all())


def test_a_disk_that_fails_as_a_topic_goes_is_told() -> None:
    node = Node()
    node.replay(*topic())
    node.storage.fail_after(0)
    node.replay(RemoveTopicRecord(topic_id=FIRST_ID))
    ((name, number, error),) = node.failures
    assert (name, number) == ORDERS_0
    assert isinstance(error, OSError)
    assert node.directories.directory_of(ORDERS_0) is not None, "which directory it was is known"
