"""The numbers of replication are those of the partitions that are led and followed here."""

from collections.abc import Sequence

from broker.replication.fetch_session.session_cache import FetchSessionCache
from broker.server.metrics import Metrics
from broker.server.replication.parked_fetches import ParkedFetch, ParkedFetches
from broker.server.replication.replication_metrics import (
    assignment_families,
    purgatories,
    replication_families,
)
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.fetch import PartitionData
from tests.lib.served_replica import ServedReplica

NAMES = ("leadercount", "underreplicated", "underminisr", "atminisr", "maxlag")


def numbers(node: ServedReplica, names: Sequence[str] = NAMES) -> tuple[float, ...]:
    said = [*replication_families(list(node.partitions), Metrics(), FetchSessionCache(lambda: 1))]
    return tuple(
        next(each.samples[0].value for each in said if name in each.name) for name in names
    )


def test_what_a_leader_counts_follows_its_in_sync_set():
    node = ServedReplica()
    assert numbers(node) == (1, 0, 0, 0, 0)
    node.change(isr=[1, 2])
    assert numbers(node) == (1, 1, 0, 1, 0)
    node.change(isr=[1])
    assert numbers(node) == (1, 1, 1, 0, 0)


def test_a_follower_counts_what_it_lacks():
    node = ServedReplica(leader=2)
    node.partition.lag = 7
    assert numbers(node) == (0, 0, 0, 0, 7)


def assigned(node: ServedReplica) -> tuple[float, ...]:
    """Give OfflineReplicaCount, ReassigningPartitions and OfflineLogDirectoryCount."""
    said = assignment_families(1, node.image, node.partitions, node.directories)
    return tuple(family.samples[0].value for family in said)


def test_a_replica_whose_disk_has_failed_is_offline():
    node = ServedReplica()
    assert assigned(node) == (0, 0, 0)
    (directory,) = node.directories.directories
    node.replicas.forget(directory.fail("input/output error"))
    assert assigned(node) == (1, 0, 1)


def test_a_partition_that_gets_another_replica_is_reassigning():
    node = ServedReplica()
    node.change(replicas=[1, 2, 3, 4], adding_replicas=[4])
    assert assigned(node) == (0, 1, 0)
    node.change(replicas=[1, 2, 4], adding_replicas=[])
    assert assigned(node) == (0, 0, 0)


def test_who_waits_is_counted_by_what_for():
    node = ServedReplica()
    node.follow(2, 0)
    node.produce()
    node.partition.log.advance_high_watermark(1)
    node.delete_records(1)
    node.fetch(1)
    node.follow(2, 1, wait_ms=500)
    shares = ParkedFetches(node.loop)
    parked = (node.parked_fetches, node.parked_produces, node.parked_deletions, shares)
    for_shares = ParkedFetch(shares, [node.partition, ServedReplica().partition], 1)
    shares.park(for_shares, 500)
    found = purgatories(list(node.partitions), *parked)
    assert [tuple(each) for each in found] == [
        ("Fetch", 2, 2),
        ("ShareFetch", 1, 1),
        ("Produce", 1, 1),
        ("DeleteRecords", 1, 1),
    ]
    node.loop.advance(60_000)
    assert [each.operation_count for each in purgatories(list(node.partitions), *parked)] == [0] * 4


def test_a_follower_that_is_fenced_fetches_no_more():
    node = ServedReplica(leader=2)
    follower = node.partition.replica.follower
    refused = PartitionData(error_code=ErrorCode.FENCED_LEADER_EPOCH)
    follower.handle_fetch_answer(follower.position(), refused, 0)
    assert numbers(node, ["failedpartitions"]) == (1,)
