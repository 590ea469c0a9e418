"""The cluster as a client of one listener sees it: the live brokers and their addresses.

A refusal for a partition that this broker does not lead names the current leader, which saves the
client a request (KIP-951).
"""

from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any, NamedTuple

from broker.metadata.image import BrokerImage, PartitionImage
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.share.session import PartitionKey
from common.kafka.errors import ErrorCode

Brokers = Mapping[int, BrokerImage]


class Address(NamedTuple):
    """A broker as it is named to clients."""

    node_id: int
    host: str
    port: int
    rack: str | None


def address_of(image: BrokerImage, listener_name: str) -> Address | None:
    """Return the address of a broker for clients of a listener; None without such a listener."""
    endpoint = image.endpoints.get(listener_name)
    return None if endpoint is None else Address(image.broker_id, *endpoint, image.rack)


def live_brokers(brokers: Brokers, listener_name: str, besides: Set[int]) -> list[Address]:
    """Return every broker that is not fenced, and the given fenced ones, in order of their ids."""
    found = (
        address_of(brokers[node_id], listener_name)
        for node_id in sorted(brokers)
        if not brokers[node_id].is_fenced or node_id in besides
    )
    return [address for address in found if address is not None]


def find_live(brokers: Brokers, node_id: int, listener_name: str) -> Address | None:
    """Return the address of a broker, None if it is not registered."""
    image = brokers.get(node_id)
    return None if image is None or image.is_fenced else address_of(image, listener_name)


def controller_id(metadata: ClusterMetadata, node_id: int) -> int:
    """Return the broker that clients send changes to: every broker forwards them."""
    image = metadata.image.brokers.get(metadata.leader_id)
    return node_id if image is None or image.is_fenced else image.broker_id


def offline_replicas(brokers: Brokers, partition: PartitionImage) -> list[int]:
    """Return the replicas of a partition whose broker is fenced or gone."""
    return [
        node_id
        for node_id in partition.replicas
        if (image := brokers.get(node_id)) is None or image.is_fenced
    ]


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
