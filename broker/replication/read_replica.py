"""Which replica a consumer should read from: one in its rack, if it may (KIP-392).

The leader names it in the answer to a Fetch and sends no records; the consumer goes there for a
while. Only in-sync followers that have the offset are named: a slow one would send the consumer
back, to be sent there again.
"""

from collections.abc import Callable
from typing import Any

from broker.replication.follower_progress import FollowerProgress
from broker.replication.leader import PartitionLeader

RackOf = Callable[[int], str | None]

LEADER = -1  # stay here


def preferred_read_replica(
    leader: PartitionLeader[Any], consumer_rack: str, fetch_offset: int, rack_of: RackOf
) -> int:
    """Return the most caught-up replica in the consumer's rack; LEADER for this broker, or none.

    This is RackAwareReplicaSelector; where `replica.selector.class` is not set, nobody asks.
    """
    if not consumer_rack or rack_of(leader.node_id) == consumer_rack:
        return LEADER
    candidates = [
        follower
        for follower in leader.followers.values()
        if follower.broker_id in leader.isr.committed
        and follower.log_start_offset <= fetch_offset <= follower.log_end_offset
        and rack_of(follower.broker_id) == consumer_rack
    ]
    return max(candidates, key=_rank).broker_id if candidates else LEADER


def _rank(follower: FollowerProgress) -> tuple[int, int, int]:
    """Order by how far one is, then by how lately it had everything, then the lowest id."""
    return follower.log_end_offset, follower.last_caught_up_ms, -follower.broker_id
