"""Who leads a partition instead, told with a refusal so that a client need not ask (KIP-951)."""

from typing import Any

from broker.errors import ErrorCode
from broker.server.cluster.cluster_view import Address, find_live
from broker.server.cluster.metadata_quorum import ClusterMetadata

SAYS_WHO_LEADS = {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH}


def tell_leader(
    metadata: ClusterMetadata, topic: str, partition: int, current_leader: Any
) -> set[int]:
    """Fill in leader and epoch of a partition; return the leader, nothing when it is not known."""
    image = metadata.image.topics.by_name.get(topic)
    known = None if image is None else image.partitions.get(partition)
    if known is None:
        return set()
    current_leader.leader_id = known.leader
    current_leader.leader_epoch = known.leader_epoch
    return {known.leader}


def endpoints_of(metadata: ClusterMetadata, leaders: set[int], listener_name: str) -> list[Address]:
    """Return where a client of a listener reaches them, those that live."""
    found = (find_live(metadata.image.brokers, leader, listener_name) for leader in sorted(leaders))
    return [address for address in found if address is not None]
