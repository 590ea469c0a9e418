"""Moves between log directories go no faster than they may."""

from typing import Any

from broker.model import TopicPartition
from broker.quotas.rate import RateLimit
from broker.server.storage import mover as mover_module
from broker.server.storage.mover import Mover
from tests.lib.served_replica import TOPIC, ServedReplica

KEY = TopicPartition(TOPIC, 0)


def move_now(node: ServedReplica, rate: RateLimit) -> None:
    """Begin a move, and go on with it as far as its rate allows in four seconds."""
    failures: Any = None
    mover = Mover(
        node.loop, node.clock, node.directories, failures, rate, on_moved=node.partition.use_log
    )
    mover.move(KEY, "/more")
    node.loop.advance(4_000)


def test_a_move_goes_no_faster_than_its_limit_and_ends(monkeypatch: Any):
    node = ServedReplica(directories=["/data", "/more"])
    for _ in range(10):
        node.produce(acks=1)
    size_bytes = node.partition.log.size_bytes
    batch_bytes = size_bytes // 10
    monkeypatch.setattr(mover_module, "PIECE_BYTES", batch_bytes)
    rate = RateLimit(batch_bytes)
    move_now(node, rate)
    (future,) = (directory.future_logs[KEY] for directory in node.directories.directories[1:])
    assert 4 * batch_bytes <= future.size_bytes <= 6 * batch_bytes
    rate.limit_per_second = 1_000_000
    node.loop.advance(2_000)
    assert node.partition.log.directory.startswith("/more")
    assert (node.partition.log.size_bytes, node.directories.moving()) == (size_bytes, [])


def test_a_leader_that_was_moved_knows_its_epoch():
    node = ServedReplica(directories=["/data", "/more"])
    node.produce(acks=1)
    node.change(leader=1)
    epoch = node.partition.leader.leader_epoch
    assert node.partition.log.leader_epoch == epoch
    move_now(node, RateLimit())
    assert node.partition.log.directory.startswith("/more")
    assert node.partition.log.leader_epoch == node.partition.leader.log.leader_epoch == epoch
