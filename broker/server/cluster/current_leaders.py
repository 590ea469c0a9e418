"""The current leader of a partition, added to a refusal to save the client a request (KIP-951)."""

from typing import NamedTuple

from broker.server.cluster.cluster_view import Address, find_live
from broker.server.cluster.metadata_quorum import ClusterMetadata
from common.kafka.errors import ErrorCode

SAYS_WHO_LEADS = {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH}


class CurrentLeader(NamedTuple):
    """The leader of a partition and its epoch; the fields are named as in the answers."""

    leader_id: int
    leader_epoch: int


def find_leader(metadata: ClusterMetadata, topic: str, partition: int) -> CurrentLeader | None:
    """Return the leader of a partition, None if the partition is unknown."""
    image = metadata.image.topics.by_name.get(topic)
    known = None if image is None else image.partitions.get(partition)
    return None if known is None else CurrentLeader(known.leader, known.leader_epoch)


def endpoints_of(metadata: ClusterMetadata, leaders: set[int], listener_name: str) -> list[Address]:
    """Return the addresses of the live ones among them for clients of a listener."""
    found = (find_live(metadata.image.brokers, leader, listener_name) for leader in sorted(leaders))
    return [address for address in found if address is not None]
