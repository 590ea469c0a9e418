"""The cluster as a client of one listener sees it: which brokers live, and where they are."""

from typing import TYPE_CHECKING, NamedTuple

from broker.metadata.image import BrokerImage, PartitionImage

if TYPE_CHECKING:
    from broker.server.broker import Broker


class Address(NamedTuple):
    """A broker as clients are told of it."""

    node_id: int
    host: str
    port: int
    rack: str | None


def address_of(image: BrokerImage, listener_name: str) -> Address | None:
    """Return where clients of a listener reach a broker; None when it has no such listener."""
    endpoint = image.endpoints.get(listener_name)
    return None if endpoint is None else Address(image.broker_id, *endpoint, image.rack)


def live_brokers(broker: "Broker", listener_name: str) -> list[Address]:
    """Return every broker that is not fenced, in the order of their ids."""
    brokers = broker.cluster.brokers
    found = (
        address_of(brokers[node_id], listener_name)
        for node_id in sorted(brokers)
        if not brokers[node_id].is_fenced
    )
    return [address for address in found if address is not None]


def find_live(broker: "Broker", node_id: int, listener_name: str) -> Address | None:
    """Return where a broker is, None when it is not there."""
    image = broker.cluster.brokers.get(node_id)
    return None if image is None or image.is_fenced else address_of(image, listener_name)


def controller_id(broker: "Broker") -> int:
    """Return the broker that clients are to ask for changes: any can, it passes them on."""
    image = broker.cluster.brokers.get(broker.quorum.leader_id)
    return broker.config.node_id if image is None or image.is_fenced else image.broker_id


def offline_replicas(broker: "Broker", partition: PartitionImage) -> list[int]:
    """Return the replicas of a partition whose broker is fenced or gone."""
    brokers = broker.cluster.brokers
    return [
        node_id
        for node_id in partition.replicas
        if (image := brokers.get(node_id)) is None or image.is_fenced
    ]
