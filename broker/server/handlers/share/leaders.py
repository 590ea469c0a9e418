"""The leaders of partitions that this broker does not lead, in answers to members (KIP-951)."""

from collections.abc import Callable, Iterable
from typing import Any

from broker.server.cluster.cluster_view import Address
from broker.server.cluster.current_leaders import endpoints_of, find_leader
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.share.session import PartitionKey


def tell_leaders(
    metadata: ClusterMetadata,
    listener_name: str,
    misdirected: Iterable[tuple[PartitionKey, Any]],
    leader_class: Callable[..., Any],
) -> list[Address]:
    """Set the `current_leader` of each answer, and return the addresses of these brokers."""
    leaders: set[int] = set()
    for (topic_id, number), answer in misdirected:
        topic = metadata.image.topics.by_id.get(topic_id)
        found = None if topic is None else find_leader(metadata, topic.name, number)
        if found is not None:
            answer.current_leader = leader_class(**found._asdict())
            leaders.add(found.leader_id)
    return endpoints_of(metadata, leaders, listener_name)
