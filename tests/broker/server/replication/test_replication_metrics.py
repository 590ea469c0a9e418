"""The numbers of replication are those of the partitions that are led and followed here."""

from broker.replication.fetch_session.session_cache import FetchSessionCache
from broker.server.metrics import Metrics
from broker.server.replication.replication_metrics import replication_numbers
from tests.lib.served_replica import ServedReplica

NAMES = ("leader_count", "under_replicated", "under_min_isr", "at_min_isr", "max_lag")


def numbers(node: ServedReplica) -> tuple[int, ...]:
    said = replication_numbers(list(node.partitions), Metrics(), FetchSessionCache(lambda: 1))
    return tuple(next(each.value for each in said if name in each.name) for name in NAMES)


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
