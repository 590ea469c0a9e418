"""Which replica a consumer should read from: one in its rack, if possible (KIP-392).

The leader names the replica in its answer to a Fetch and sends no records; the consumer then reads
from that replica for a while. The leader names only in-sync followers that have the offset: a slow
one would send the consumer back to the leader, which would name it again.
"""

from collections.abc import Callable
from typing import Any

from broker.replication.follower_progress import FollowerProgress
from broker.replication.leader import PartitionLeader

RackOf = Callable[[int], str | None]

LEADER = -1  # read from the leader


def preferred_read_replica(
    leader: PartitionLeader[Any], consumer_rack: str, fetch_offset: int, rack_of: RackOf
) -> int:
    """Return the most caught-up replica in the consumer's rack; LEADER to read from the leader.

    This is Kafka's RackAwareReplicaSelector. The shell calls it only if `replica.selector.class`
    is set.
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
    """Order by log end offset, then by the last caught-up time, then by the lowest id."""
    return follower.log_end_offset, follower.last_caught_up_ms, -follower.broker_id
