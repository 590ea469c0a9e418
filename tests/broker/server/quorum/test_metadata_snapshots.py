"""Snapshots of the metadata: when one is taken, what is in it, what goes with it."""

from pathlib import Path

from broker.metadata.image import MetadataImage
from broker.model import OffsetAndEpoch
from broker.raft.config import NEVER_MS
from broker.server.quorum.quorum import Quorum
from broker.server.quorum.raft.snapshot_format import snapshot_values
from common.kafka.protocol.records.metadata import (
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
    decode_metadata_record,
)
from tests.lib.logs import store_snapshot
from tests.lib.quorum_nodes import create_topic, open_quorum, run

BETWEEN = "metadata.log.max.record.bytes.between.snapshots"
INTERVAL = "metadata.log.max.snapshot.interval.ms"
NEVER = {BETWEEN: "1000000000", INTERVAL: "0"}
TOPIC_ID = b"t" * 16


def commit(quorum: Quorum, *records) -> None:
    for _ in quorum._leadership._append(records):
        pass
    quorum._pump()
    while quorum.raft.is_applying:
        quorum._pump()


def image_in(quorum: Quorum, snapshot_id: OffsetAndEpoch) -> MetadataImage:
    log, image = quorum.raft.log, MetadataImage()
    for value in snapshot_values(log.read_snapshot(snapshot_id, 0, 1 << 30)):
        image.replay(decode_metadata_record(value))
    return image


def test_a_snapshot_is_of_one_moment_though_it_is_written_bit_by_bit(tmp_path: Path) -> None:
    async def scenario() -> None:
        quorum = open_quorum(tmp_path, NEVER)
        quorum.start()
        partitions = [
            PartitionRecord(partition_id=i, topic_id=TOPIC_ID, replicas=[1], isr=[1], leader=1)
            for i in range(1_200)
        ]
        commit(quorum, TopicRecord(name="large", topic_id=TOPIC_ID), *partitions)
        then = OffsetAndEpoch(quorum.applied_offset, quorum.node.leader_epoch)
        snapshots = quorum.snapshots
        snapshots.begin(0, 0)
        commit(
            quorum, PartitionChangeRecord(partition_id=1_100, topic_id=TOPIC_ID, leader=-1, isr=[])
        )
        assert await create_topic(quorum, "later") == 0
        while snapshots.is_writing:
            snapshots.advance(0, 0)
        assert quorum.raft.log.snapshot_ids() == [then]
        image = image_in(quorum, then)
        assert list(image.topics.by_name) == ["large"]
        assert image.topics.by_name["large"].partitions[1_100].leader == 1
        assert quorum.image.topics.by_name["large"].partitions[1_100].leader == -1
        quorum._close()

    run(scenario)


def test_the_records_before_the_former_snapshot_go_and_a_restart_goes_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        quorum = open_quorum(tmp_path, {BETWEEN: "1"})
        quorum.start()
        for name in "abcd":
            assert await create_topic(quorum, name) == 0
        ids = quorum.raft.log.snapshot_ids()
        assert len(ids) == 2
        assert quorum.raft.log.start_offset == ids[0].offset
        assert ids[1].offset == quorum.applied_offset
        assert image_in(quorum, ids[1]) == quorum.image
        quorum._close()
        again = open_quorum(tmp_path, {BETWEEN: "1"})
        again.start()
        assert again.image == quorum.image
        again._close()

    run(scenario)


def test_age_alone_makes_one_due_only_when_something_was_committed(tmp_path: Path) -> None:
    async def scenario() -> None:
        quorum = open_quorum(tmp_path, {INTERVAL: "1000"})
        quorum.start()
        snapshots = quorum.snapshots
        due_ms = snapshots.next_deadline_ms()
        snapshots.advance(due_ms - 1, 0)
        assert quorum.raft.log.snapshot_ids() == []
        snapshots.advance(due_ms, 0)
        assert len(quorum.raft.log.snapshot_ids()) == 1
        assert snapshots.next_deadline_ms() == NEVER_MS
        assert await create_topic(quorum, "a") == 0
        assert snapshots.next_deadline_ms() < NEVER_MS
        quorum._close()

    run(scenario)


def test_an_own_snapshot_goes_when_the_leader_sent_a_later_one(tmp_path: Path) -> None:
    async def scenario() -> None:
        quorum = open_quorum(tmp_path, NEVER)
        quorum.start()
        log, snapshots = quorum.raft.log, quorum.snapshots
        snapshots.begin(0, 0)
        early, snapshots._unfinished = snapshots._unfinished, None
        for name in "abc":
            assert await create_topic(quorum, name) == 0
        later = OffsetAndEpoch(quorum.applied_offset, quorum.node.leader_epoch)
        store_snapshot(log, later, b"")
        log.delete_before_snapshot(later)
        snapshots._write_slice(early)
        assert log.snapshot_ids() == [later]
        quorum._close()

    run(scenario)
    assert not list(tmp_path.rglob("*.part"))
