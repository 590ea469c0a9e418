"""The cluster as a client of one listener sees it: the live brokers and their addresses."""

from collections.abc import Mapping, Set
from typing import NamedTuple

from broker.metadata.image import BrokerImage, PartitionImage
from broker.server.cluster.metadata_quorum import ClusterMetadata

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
